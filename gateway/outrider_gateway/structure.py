# SPDX-License-Identifier: Apache-2.0
"""What a body of JSON is made of, told before it is taken apart.

A list of empty lists takes fifty times its bytes as Python's objects, and far more time to take apart than as much
text does: who sends structure in place of text would hold up all others, and take their memory.
"""
from __future__ import annotations

import re

from .errors import INVALID_VALUE, ApiError, context_exceeded

# A chat of as many messages as one may have needs so many, with calls of functions in them.
MOST_PIECES = 1 << 16
# So much was measured of the worst pieces: names of an object's values, and parts of a message's text.
PIECE_BYTES = 192
# All but what begins or parts pieces, and texts.
_OTHERS = bytes(set(range(256)) - set(b'[{:,"'))
_BEGINNINGS = re.compile(rb"[\[{:]")


def num_pieces(body: bytes | bytearray, counted: bytes, longest_text: int | None = None) -> int:
    """How many of these characters stand outside of its texts. ApiError 400 where they are more than MOST_PIECES.

    Of JSON each value in a list is behind one of `[` and `,`, each in an object behind one of `{` and `,`, and has a
    `:` before it. Where commas are not counted, a list may still have no more values than `longest_text`, which is
    the longest text of any verifier where that is known: only a prompt's token ids may be so many.
    """
    # Backslashes stand in texts alone, in pairs or before what they escape.
    bare = bytes(body.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _OTHERS))
    if bare.count(b'"') > 4 * MOST_PIECES:  # so many texts, or names and texts
        raise _too_many()
    outside = b"".join(bare.split(b'"')[::2])
    count = sum(outside.count(one) for one in counted)
    if count > MOST_PIECES:
        raise _too_many()
    if longest_text and b"," not in counted:
        # A token id takes ten times as long to be taken apart as to be counted. All streams stand still meanwhile, on
        # whatever thread it is done: the parser keeps Python's lock to its end.
        most_values = max(run.count(b",") for run in _BEGINNINGS.split(outside))
        if most_values > max(longest_text, MOST_PIECES):
            raise context_exceeded(longest_text, most_values, is_whole=False)
    return count


def _too_many() -> ApiError:
    return ApiError(400, f"the request has more than {MOST_PIECES} lists, objects and values in them; send less",
                    code=INVALID_VALUE)
