# SPDX-License-Identifier: Apache-2.0
"""What connections to coordinators show and trust: files that are read again when they change."""
from __future__ import annotations

import dataclasses
import logging
import pathlib
import ssl
import time

import grpc

from . import expiry

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Files:
    """PEM files; a certificate has its key."""

    authority: pathlib.Path
    certificate: pathlib.Path | None = None
    key: pathlib.Path | None = None


@dataclasses.dataclass(frozen=True)
class _Content:
    """What the files held."""

    credentials: grpc.ChannelCredentials
    authorities: list[float]  # when each of them expires
    chain: list[float]


class Credentials:
    """Those of the files, or of plain text. What cannot be used leaves what was before in use."""

    def __init__(self, files: Files | None) -> None:
        """Raises OSError or ValueError where the files cannot be used now."""
        self._files = files
        self._content: _Content | None = None
        self._stamp: object = None
        self._problem = ""  # that the log has
        if files is not None:
            self._stamp = _stamp(files)
            self._content = _read(files)

    @property
    def current(self) -> grpc.ChannelCredentials | None:
        """None: plain text."""
        return self._content.credentials if self._content is not None else None

    def expiries(self) -> dict[str, float]:
        """When what is in use expires, by the flag of its file: of a chain the first, of authorities the next one."""
        content, times = self._content, {}
        if content is not None and content.authorities:
            times["tls-ca"] = expiry.next_of(content.authorities)
        if content is not None and content.chain:
            times["tls-cert"] = min(content.chain)
        return times

    def changed(self) -> bool:
        """Looks at the files: whether `current` is new since the last time."""
        if self._files is None:
            return False
        try:
            stamp = _stamp(self._files)
            if stamp != self._stamp:
                self._content = _read(self._files)
        except (OSError, ValueError) as error:
            if str(error) != self._problem:
                log.error("the certificates before stay in use: %s", error)
            self._problem = str(error)  # they are tried again: a certificate may only have to begin
            return False
        has_changed, self._stamp, self._problem = stamp != self._stamp, stamp, ""
        if has_changed:
            log.info("certificates have been read again")
        return has_changed


def _paths(files: Files) -> list[pathlib.Path]:
    return [path for path in (files.authority, files.certificate, files.key) if path is not None]


def _stamp(files: Files) -> object:
    return [(status.st_mtime_ns, status.st_size, status.st_ino) for status in map(pathlib.Path.stat, _paths(files))]


def _read(files: Files) -> _Content:
    # gRPC would say so at the first handshake only, and not which file.
    chain: list[float] = []
    try:
        authorities = expiry.of_authorities(ssl.create_default_context(cafile=files.authority))
        if files.certificate is not None and files.key is not None:
            chain = expiry.of_chain(files.certificate, files.key)
        if authorities and expiry.next_of(authorities) < time.time():
            raise ValueError(f"{files.authority}: the certificate has expired")
    except ssl.SSLError as error:
        raise ValueError(f"{', '.join(map(str, _paths(files)))}: {error}") from error
    own = [path.read_bytes() if path is not None else None for path in (files.key, files.certificate)]
    return _Content(grpc.ssl_channel_credentials(files.authority.read_bytes(), *own), authorities, chain)
