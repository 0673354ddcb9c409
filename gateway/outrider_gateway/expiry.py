# SPDX-License-Identifier: Apache-2.0
"""When certificates expire, as Unix times, by what OpenSSL reads of them."""
from __future__ import annotations

import contextlib
import pathlib
import ssl
import time
from collections.abc import Sequence
from typing import Any

_NO_CHECK_TIME = 0x200000  # OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python has no name for


def of_authorities(context: ssl.SSLContext) -> list[float]:
    """Those of all authorities that a context has loaded."""
    return [_not_after(certificate) for certificate in context.get_ca_certs()]


def of_chain(certificate: pathlib.Path, key: pathlib.Path) -> list[float]:
    """Those of a client's certificate and its issuers. Raises ssl.SSLError where the certificate is not valid now."""
    # Python tells of a certificate only to a peer that has checked it: so it is shown to ourselves.
    shower, checker = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for context in (shower, checker):
        context.load_cert_chain(certificate, key)
    shower.check_hostname = False
    shower.verify_mode = ssl.CERT_NONE
    checker.verify_mode = ssl.CERT_REQUIRED
    checker.load_verify_locations(certificate)
    # It vouches for itself. An issuer beside it may be over, where another way leads to an authority.
    checker.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    shown = _shown(shower, checker)
    if not ssl.cert_time_to_seconds(shown["notBefore"]) <= time.time() < _not_after(shown):
        raise ssl.SSLError("the certificate has expired, or is not valid yet: "
                           f"it is valid from {shown['notBefore']} to {shown['notAfter']}")
    return [_not_after(shown), *of_authorities(checker)]


def next_of(times: Sequence[float]) -> float:
    """The first that has not passed; where all have, the last."""
    return min((one for one in times if one > time.time()), default=max(times))


def _shown(shower: ssl.SSLContext, checker: ssl.SSLContext) -> Any:
    """What a server's end hears of the certificate that a client's end shows."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, server = shower.wrap_bio(back, there), checker.wrap_bio(there, back, server_side=True)
    for end in (client, server, client, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    return server.getpeercert()


def _not_after(certificate: Any) -> float:
    return float(ssl.cert_time_to_seconds(certificate["notAfter"]))
