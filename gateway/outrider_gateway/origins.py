# SPDX-License-Identifier: Apache-2.0
"""Web pages that may ask the gateway from a browser: CORS by Starlette's own middleware, and who else is refused."""
from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from .errors import ApiError

# A browser sends an origin like this, and compares it letter by letter. "null" is that of a file's page.
_ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/\s,*?#@A-Z]+")
# A page's script reads no other headers of an answer but the few of CORS itself.
_EXPOSED = ["x-request-id", "retry-after", "x-should-retry"]


def origins_of(values: Iterable[str]) -> list[str]:
    """The origins of a flag that may be repeated, each time with several. Raises ValueError."""
    origins = [one.strip() for value in values for one in value.split(",")]
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ValueError(f"{origin!r} is no origin: it is SCHEME://HOST[:PORT] in small letters, without a path, "
                             "or * for all")
    return origins


def allowing(origins: Sequence[str], app: ASGIApp) -> ASGIApp:
    """The same application, which answers preflights under /v1/ and says who may read what it answers there.

    Itself without origins. The rest, such as metrics, is for nobody's page.
    """
    if not origins:
        return app
    # Keys are in a header of the script's own: browsers have no cookies of ours to send.
    api = CORSMiddleware(app, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["*"],
                         expose_headers=_EXPOSED)

    async def allowed(scope: Scope, receive: Receive, send: Send) -> None:
        is_api = scope["type"] == "http" and scope["path"].startswith("/v1/")
        await (api if is_api else app)(scope, receive, send)

    return allowed


def guarding(origins: Sequence[str], app: ASGIApp, *, is_on_loopback: bool) -> ASGIApp:
    """The same application, for a gateway without keys: it refuses what pages of other origins than these send.

    A browser asks nobody before it sends a POST of plain text, whatever page it is of. `is_on_loopback`: hosts by
    another name than this machine's are refused, too, as a page whose server gives its own name our address (DNS
    rebinding) is of our origin to the browser.
    """
    if "*" in origins:
        return app
    names = {_name_of(origin.partition("://")[2]) for origin in origins}

    def refusal_of(headers: Headers) -> ApiError | None:
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        if is_on_loopback and host and not _is_of_this_machine(host) and _name_of(host) not in names:
            # Another page's origin would not let the host in, and is nobody's to allow.
            return _host_refused(host, origin if origin and _is_origin_of(host, origin) else f"http://{host}")
        # Browsers write Sec-Fetch-Site, and no script can: it tells our own page behind a proxy that changes Host.
        is_own = origin is None or _is_origin_of(host, origin) or headers.get("sec-fetch-site") == "same-origin"
        return None if is_own or origin in origins else _origin_refused(origin or "")

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        refusal = refusal_of(Headers(scope=scope)) if scope["type"] == "http" else None
        await (app if refusal is None else refusal.response())(scope, receive, send)

    return guarded


def _host_refused(host: str, origin: str) -> ApiError:
    return ApiError(403, f"the Host {_shown(host)} is no name of this machine: without API keys a gateway on "
                         "loopback answers to localhost and to IP addresses, as any other name may be that of "
                         "anybody's web page. If a proxy or a name of yours leads here, start it with "
                         f"--allowed-origins {_shown(origin)}, or with --api-keys", code="host_not_allowed")


def _origin_refused(origin: str) -> ApiError:
    return ApiError(403, f"web pages of {_shown(origin)} may not use this gateway, which has no API keys. If they "
                         f"should, start it with --allowed-origins {_shown(origin)}, or with --api-keys",
                    code="origin_not_allowed")


def _shown(value: str) -> str:
    return value if len(value) <= 200 and value.isprintable() else f"{value[:200]!r}..."


def _name_of(authority: str) -> str:
    """Leaves out the port."""
    return re.sub(r":\d*$", "", authority)


def _is_of_this_machine(host: str) -> bool:
    name = _name_of(host).removesuffix(".")
    # No public page has a name under these two; containers reach this machine as host.docker.internal.
    if name == "localhost" or name.endswith((".localhost", ".internal")):
        return True
    try:
        return bool(ipaddress.ip_address(name.removeprefix("[").removesuffix("]")))
    except ValueError:
        return False


def _is_origin_of(host: str, origin: str) -> bool:
    """Whether the page comes from there; its scheme is that of a proxy which ends its TLS."""
    scheme, _, authority = origin.lower().partition("://")
    port = {"http": ":80", "https": ":443"}.get(scheme, "")  # some proxies write it, and no browser does
    return authority != "" and authority.removesuffix(port) == host.removesuffix(port)
