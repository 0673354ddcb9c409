# SPDX-License-Identifier: Apache-2.0
"""The hash of a tokenizer's content that nodes report: of the fields of core/tokenizer/fingerprint, in their order.

Equal tokenizers in different files have equal ones. Nodes read fewer kinds of tokenizers than the library does: of
others there is no fingerprint, and nothing to compare it with.
"""
from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

Fields = dict[str, Any]

# These stand for numbers of enums in C++.
_NFC, _PREPEND, _REPLACE = 0, 1, 2
_NO_PIECES, _METASPACE, _BYTE_LEVEL = 0, 1, 2
_WHOLE, _GPT2, _LLAMA3, _QWEN2 = 0, 1, 2, 3
_DECODES_BYTES, _DECODES_PIECES, _DECODES_METASPACE = 0, 1, 2
_SCHEMES = {"never": 0, "first": 1, "always": 2}
_PATTERNS = {
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+": _LLAMA3,
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+": _QWEN2,
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": _GPT2,
}


class _UnknownKindError(Exception):
    """No node reads such a tokenizer."""


class _Hash:
    """Numbers have 8 bytes, little-endian; texts and lists their length in front."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def numbers(self, *values: int) -> None:
        for value in values:
            self._hash.update(int(value).to_bytes(8, "little", signed=True))

    def text(self, value: str) -> None:
        data = value.encode()
        self.numbers(len(data))
        self._hash.update(data)

    def hex(self) -> str:
        return self._hash.hexdigest()


def fingerprint_of(file: Fields) -> str | None:
    """What a parsed tokenizer.json is called; none where nodes would not read it."""
    hashed = _Hash()
    try:
        hashed.text("outrider tokenizer 1")
        _add_model(file["model"], hashed)
        _add_added_tokens(file.get("added_tokens") or [], hashed)
        _add_normalizer(list(_steps(file.get("normalizer"))), hashed)
        _add_pretokenizer(file.get("pre_tokenizer"), hashed)
        for ids in _around(file.get("post_processor")):
            hashed.numbers(len(ids), *ids)
        _add_decoder(file["decoder"], hashed)
    except (_UnknownKindError, KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    return hashed.hex()


def _value(fields: Fields, name: str, default: Any) -> Any:
    value = fields.get(name)
    return default if value is None else value


def _require(is_known: bool) -> None:
    if not is_known:
        raise _UnknownKindError


def _add_model(model: Fields, hashed: _Hash) -> None:
    _require(_value(model, "type", "BPE") == "BPE")
    _require(not any(model.get(name) for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix")))
    ids: dict[str, int] = model["vocab"]
    names: list[str | None] = [None] * (max(ids.values()) + 1)
    for name, i in ids.items():
        names[i] = name
    hashed.numbers(len(names))
    for token in names:
        hashed.numbers(token is not None)
        if token is not None:
            hashed.text(token)
    merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]
              if not (isinstance(merge, str) and merge.startswith("#version"))]
    hashed.numbers(len(merges))
    for left, right in merges:
        hashed.numbers(ids[left], ids[right], ids[left + right])
    unknown = model.get("unk_token")
    hashed.numbers(-1 if unknown is None else ids[unknown])
    hashed.numbers(*(_value(model, name, False) for name in ("fuse_unk", "byte_fallback", "ignore_merges")))


def _add_added_tokens(tokens: Sequence[Fields], hashed: _Hash) -> None:
    found = sorted((token for token in tokens if token["content"]), key=lambda token: int(token["id"]))
    hashed.numbers(len(found))
    for token in found:
        is_special = _value(token, "special", False)
        hashed.numbers(token["id"])
        hashed.text(token["content"])
        hashed.numbers(is_special, *(_value(token, name, False) for name in ("single_word", "lstrip", "rstrip")),
                       _value(token, "normalized", not is_special))


def _steps(normalizer: Fields | None) -> Iterable[tuple[int, str, str]]:
    """Each as (kind, pattern, content)."""
    if normalizer is None:
        return
    kind = normalizer["type"]
    if kind == "Sequence":
        for part in normalizer["normalizers"]:
            yield from _steps(part)
    elif kind == "NFC":
        yield _NFC, "", ""
    elif kind == "Prepend":
        yield _PREPEND, "", normalizer["prepend"]
    else:
        _require(kind == "Replace")
        yield _REPLACE, normalizer["pattern"]["String"], normalizer["content"]


def _add_normalizer(steps: Sequence[tuple[int, str, str]], hashed: _Hash) -> None:
    hashed.numbers(len(steps))
    for kind, pattern, content in steps:
        hashed.numbers(kind)
        hashed.text(pattern)
        hashed.text(content)


def _scheme(fields: Fields) -> int:
    scheme: str = _value(fields, "prepend_scheme", "always")
    _require(bool(_value(fields, "add_prefix_space", scheme != "never")) or scheme == "never")
    return _SCHEMES[scheme]


def _add_pretokenizer(fields: Fields | None, hashed: _Hash) -> None:
    kind, pattern, prepend, replacement, is_cut = _NO_PIECES, _WHOLE, 0, "", False
    if fields is not None and fields["type"] == "Metaspace":
        kind, prepend, replacement = _METASPACE, _scheme(fields), fields["replacement"]
        is_cut = _value(fields, "split", True)
    elif fields is not None:
        kind = _BYTE_LEVEL
        pattern, prepend = _byte_level(fields)
    hashed.numbers(kind, pattern, prepend)
    hashed.text(replacement)
    hashed.numbers(is_cut)


def _byte_level(fields: Fields) -> tuple[int, int]:
    """(pattern, whether a space is put before)."""
    if fields["type"] == "Sequence":
        *first, last = fields["pretokenizers"]
        _require(last["type"] == "ByteLevel" and len(first) < 2)
        if not first:
            return _byte_level(last)
        split = first[0]
        _require(split["type"] == "Split" and split["behavior"] == "Isolated" and not split.get("invert"))
        _require(_byte_level(last) == (_WHOLE, _SCHEMES["never"]))
        return _PATTERNS[split["pattern"]["Regex"]], _SCHEMES["never"]
    _require(fields["type"] == "ByteLevel")
    return (_GPT2 if _value(fields, "use_regex", True) else _WHOLE,
            _SCHEMES["always" if _value(fields, "add_prefix_space", True) else "never"])


def _around(processor: Fields | None) -> tuple[list[int], list[int]]:
    """The tokens before and after each text."""
    before: list[int] = []
    after: list[int] = []
    if processor is None or processor["type"] == "ByteLevel":
        return before, after
    if processor["type"] == "Sequence":
        for part in processor["processors"]:
            more = _around(part)
            before, after = more[0] + before, after + more[1]
        return before, after
    _require(processor["type"] == "TemplateProcessing")
    side = before
    for piece in processor["single"]:
        if "Sequence" in piece:
            side = after
        else:
            side += processor["special_tokens"][piece["SpecialToken"]["id"]]["ids"]
    return before, after


def _add_decoder(fields: Fields, hashed: _Hash) -> None:
    kind, pattern, content, has_byte_fallback, strip, most_stripped = _DECODES_BYTES, "", "", False, "", 0
    if fields["type"] == "Metaspace":
        kind = _DECODES_PIECES if _scheme(fields) == _SCHEMES["never"] else _DECODES_METASPACE
        pattern, content = fields["replacement"], " "
    elif fields["type"] == "Sequence":
        kind = _DECODES_PIECES
        for part in fields["decoders"]:
            if part["type"] == "Replace":
                pattern, content = part["pattern"]["String"], part["content"]
            elif part["type"] == "Strip":
                _require(not part["stop"])
                strip, most_stripped = part["content"], part["start"]
            else:
                _require(part["type"] in ("ByteFallback", "Fuse"))
                has_byte_fallback |= part["type"] == "ByteFallback"
    else:
        _require(fields["type"] == "ByteLevel")
    hashed.numbers(kind)
    hashed.text(pattern)
    hashed.text(content)
    hashed.numbers(has_byte_fallback)
    hashed.text(strip)
    hashed.numbers(most_stripped)
