# SPDX-License-Identifier: Apache-2.0
"""JSON for readers: compact, with the characters that some readers of events take for the end of a line escaped."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

# Made once: json.dumps with options makes an encoder for each call.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
# JSON may have them as they are; Python's splitlines, and clients that use it, end a line at each.
_LINE_ENDS = re.compile("[\u0085\u2028\u2029]")
_SLICE = 64


def to_json(value: Any) -> str:
    text = _encode(value)
    return text if text.isascii() else _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def in_parts(value: Any) -> Iterator[str]:
    """The same text in parts, none of which takes long to make: between them other threads have their turn."""
    if isinstance(value, dict) and value:
        opening = "{"
        for name, one in value.items():
            yield f"{opening}{to_json(name)}:"
            yield from in_parts(one)
            opening = ","
        yield "}"
    elif isinstance(value, list) and len(value) > _SLICE:
        opening = "["
        for begin in range(0, len(value), _SLICE):
            yield f"{opening}{to_json(value[begin:begin + _SLICE])[1:-1]}"
            opening = ","
        yield "]"
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        opening = "["
        for one in value:
            yield opening
            yield from in_parts(one)
            opening = ","
        yield "]"
    else:
        yield to_json(value)
