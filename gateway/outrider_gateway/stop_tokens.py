# SPDX-License-Identifier: Apache-2.0
"""vLLM's `stop_token_ids`, which coordinators do not know: a continuation ends before the text of such a token."""
from __future__ import annotations

from outrider.v1 import generation_pb2 as pb

from .tokens import Tokens


class StopTokens:
    """The stop tokens of one choice; sees its messages in order."""

    def __init__(self, ids: list[int], tokens: Tokens | None) -> None:
        """With `tokens`, text that the coordinator holds back at the end, as part of a stop string, is not lost."""
        self._ids = frozenset(ids)
        self._tokens = tokens
        self._whole = b""  # of all tokens so far
        self._shown = ""

    def apply(self, message: pb.GenerateResponse) -> None:
        """Cuts the message after the first stop token and makes it the last one; else leaves it."""
        for i, token in enumerate(message.tokens):
            if token.id in self._ids:
                self._end(message, i)
                return
            if self._tokens is not None:
                self._whole += self._tokens.piece(token.id)
            self._shown += token.text

    def _end(self, message: pb.GenerateResponse, index: int) -> None:
        del message.tokens[index + 1:]
        message.tokens[index].text = ""
        whole = self._whole.decode(errors="replace")
        held_back = whole[len(self._shown):] if whole.startswith(self._shown) else ""
        message.finish.CopyFrom(pb.GenerationFinish(
            reason=pb.FINISH_REASON_STOP, trailing_text=held_back,
            cached_prompt_tokens=message.finish.cached_prompt_tokens))
