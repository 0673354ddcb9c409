# SPDX-License-Identifier: Apache-2.0
"""OpenAI's `obfuscation`: events that are padded, so that their sizes do not tell which tokens they have."""
from __future__ import annotations

import secrets

# An event's choice has some 80 bytes beside its text, so that nearly all are of one size.
_SIZE = 256
_EMPTY = ',"obfuscation":""'


def padding(rest: str) -> str:
    """Returns the field that makes an event's part of this JSON as long as a multiple of 256 bytes.

    What events of a stream have in common is left out: it moves no event to another multiple.
    """
    missing = -(len(rest.encode()) + len(_EMPTY)) % _SIZE
    # A proxy that compresses streams does not make random text vanish.
    return f'{_EMPTY[:-1]}{secrets.token_urlsafe(missing)[:missing]}"'
