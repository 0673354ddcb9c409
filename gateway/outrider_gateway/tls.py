# SPDX-License-Identifier: Apache-2.0
"""What connections to coordinators show and trust: files that are read again when they change."""
from __future__ import annotations

import dataclasses
import logging
import pathlib
import ssl

import grpc

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Files:
    """PEM files; a certificate has its key."""

    authority: pathlib.Path
    certificate: pathlib.Path | None = None
    key: pathlib.Path | None = None


class Credentials:
    """Those of the files, or of plain text. What cannot be used leaves what was before in use."""

    def __init__(self, files: Files | None) -> None:
        """Raises OSError or ValueError where the files cannot be used now."""
        self._files = files
        self._current: grpc.ChannelCredentials | None = None
        self._stamp: object = None
        if files is not None:
            self._stamp = _stamp(files)
            self._current = _read(files)

    @property
    def current(self) -> grpc.ChannelCredentials | None:
        """None: plain text."""
        return self._current

    def changed(self) -> bool:
        """Looks at the files: whether `current` is new since the last time."""
        if self._files is None:
            return False
        try:
            stamp = _stamp(self._files)
            if stamp == self._stamp:
                return False
            self._stamp = stamp  # said once of each change
            self._current = _read(self._files)
        except (OSError, ValueError) as error:
            log.error("the certificates before stay in use: %s", error)
            return False
        log.info("certificates have been read again")
        return True


def _paths(files: Files) -> list[pathlib.Path]:
    return [path for path in (files.authority, files.certificate, files.key) if path is not None]


def _stamp(files: Files) -> object:
    return [(status.st_mtime_ns, status.st_size, status.st_ino) for status in map(pathlib.Path.stat, _paths(files))]


def _read(files: Files) -> grpc.ChannelCredentials:
    # gRPC would say so at the first handshake only, and not which file.
    try:
        context = ssl.create_default_context(cafile=files.authority)
        if files.certificate is not None and files.key is not None:
            context.load_cert_chain(files.certificate, files.key)
    except ssl.SSLError as error:
        raise ValueError(f"{', '.join(map(str, _paths(files)))}: {error}") from error
    own = [path.read_bytes() if path is not None else None for path in (files.key, files.certificate)]
    return grpc.ssl_channel_credentials(files.authority.read_bytes(), *own)
