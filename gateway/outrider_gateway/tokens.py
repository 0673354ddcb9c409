# SPDX-License-Identifier: Apache-2.0
"""Text to tokens and back, by Hugging Face's tokenizers, for what coordinators do not do:
chat prompts, whose special tokens stand in their text, and the names of alternatives."""
from __future__ import annotations

import functools
import json
import pathlib

import tokenizers

from .fingerprint import fingerprint_of

# Names that are kept: more than the tokens that texts are made of, less than those of large vocabularies.
_NUM_NAMES = 1 << 15
_LEAST_SEGMENT = 1 << 14


class TooManyTokensError(Exception):
    """A text has more tokens than there is any room for; it was not taken apart to its end."""

    def __init__(self, num_tokens: int) -> None:
        super().__init__(f"at least {num_tokens} tokens")
        self.num_tokens = num_tokens


class Tokens:
    """One model's tokenizer. Thread-safe."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, fingerprint: str | None = None) -> None:
        """`fingerprint`: what nodes call it by; none where they would not read it."""
        self._tokenizer = tokenizer
        # A file may ask for both, which texts of another length than one was made for would suffer from.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._is_byte_level = _has_byte_level(tokenizer)
        self.fingerprint = fingerprint
        self._added = {token: added.content for token, added in tokenizer.get_added_tokens_decoder().items()}
        # The library names those that it looks for in a normalised text as they look there.
        self._respelled = {token for token, text in self._added.items() if tokenizer.id_to_token(token) != text}
        self.vocab_size = 1 + max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
        # Each alternative of each token is looked up, twenty times a token in the worst case.
        self.shown = functools.lru_cache(_NUM_NAMES)(self._look_up)

    @classmethod
    def load(cls, directory: pathlib.Path) -> Tokens:
        """Raises what tokenizers raises, OSError and ValueError."""
        text = (directory / "tokenizer.json").read_text("utf-8")
        return cls(tokenizers.Tokenizer.from_str(text), fingerprint_of(json.loads(text)))

    def encode(self, text: str) -> list[int]:
        """Adds no tokens of its own: those of a chat prompt stand in the text. Lets other threads work meanwhile."""
        # Of the library's ways to encode this one releases the GIL, and keeps no offsets, which nobody reads here.
        return list(self._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids)

    def encode_within(self, text: str, most: int) -> list[int]:
        """TooManyTokensError where the text has far more tokens than `most`.

        A token takes a hundred bytes while a text is encoded, so one that may be far too long is counted in segments
        first. A cut changes a few tokens about it: twice the most is beyond doubt.
        """
        segment = max(_LEAST_SEGMENT, 2 * most)
        if len(text) > 2 * segment:
            num_tokens = 0
            for begin in range(0, len(text), segment):
                num_tokens += len(self.encode(text[begin:begin + segment]))
                if num_tokens > 2 * most:
                    raise TooManyTokensError(num_tokens // 2)
        return self.encode(text)

    def decode(self, ids: list[int]) -> str:
        """Lets other threads work meanwhile."""
        first = len(ids)
        if not self._respelled.isdisjoint(ids):
            first = next(i for i, token in enumerate(ids) if token in self._respelled)
        # The library's way to decode one text alone keeps the GIL.
        text = str(self._tokenizer.decode_batch([ids[:first]], skip_special_tokens=False)[0])
        return text + b"".join(map(self.piece, ids[first:])).decode(errors="replace")

    def _look_up(self, token: int) -> tuple[str, bytes]:
        """Its name and its bytes."""
        data = self._bytes_of(token)
        try:
            return data.decode(), data
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data), data

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for; they need not be whole characters."""
        return self.shown(token)[1]

    def name(self, token: int) -> str:
        """What people read: a text, or `bytes:` and what it is made of, as OpenAI writes it."""
        return self.shown(token)[0]

    def _bytes_of(self, token: int) -> bytes:
        name = self._added.get(token) or self._tokenizer.id_to_token(token)
        if name is None:
            return b""
        if self._is_byte_level and all(c in _byte_alphabet() for c in name):
            return bytes(_byte_alphabet()[c] for c in name)
        if len(name) == 6 and name.startswith("<0x") and name.endswith(">"):  # SentencePiece's byte tokens
            return bytes([int(name[3:5], 16)])
        # SentencePiece's blank; to others it is a character, as in the special tokens of DeepSeek.
        return str(name if self._is_byte_level else name.replace("\u2581", " ")).encode()


def _has_byte_level(tokenizer: tokenizers.Tokenizer) -> bool:
    # The decoder's own description says which parts it is made of.
    return "ByteLevel" in repr(tokenizer.decoder)


@functools.cache
def _byte_alphabet() -> dict[str, int]:
    """GPT-2's characters for bytes: printable ones stand for themselves, the others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in set(printable))
    return alphabet | {chr(0x100 + i): byte for i, byte in enumerate(others)}
