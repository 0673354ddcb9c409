# SPDX-License-Identifier: Apache-2.0
"""Text to tokens and back, by Hugging Face's tokenizers, for what coordinators do not do:
chat prompts, whose special tokens stand in their text, and the names of alternatives."""
from __future__ import annotations

import functools
import pathlib

import tokenizers


class Tokens:
    """One model's tokenizer. Thread-safe."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._is_byte_level = _has_byte_level(tokenizer)

    @classmethod
    def load(cls, directory: pathlib.Path) -> Tokens:
        """Raises what tokenizers raises."""
        return cls(tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json")))

    def encode(self, text: str) -> list[int]:
        """Adds no tokens of its own: those of a chat prompt stand in the text."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for; they need not be whole characters."""
        name = self._tokenizer.id_to_token(token)
        if name is None:
            return b""
        if self._is_byte_level and all(c in _byte_alphabet() for c in name):
            return bytes(_byte_alphabet()[c] for c in name)
        if len(name) == 6 and name.startswith("<0x") and name.endswith(">"):  # SentencePiece's byte tokens
            return bytes([int(name[3:5], 16)])
        return str(name).replace("\u2581", " ").encode()

    def name(self, token: int) -> str:
        """What people read: a text, or `bytes:` and what it is made of, as OpenAI writes it."""
        data = self.piece(token)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)


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
