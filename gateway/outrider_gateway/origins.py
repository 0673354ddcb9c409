# SPDX-License-Identifier: Apache-2.0
"""Web pages of other origins that may ask the gateway from a browser: CORS, by Starlette's own middleware."""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

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
