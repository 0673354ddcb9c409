# SPDX-License-Identifier: Apache-2.0
"""vLLM's `stop_token_ids`, which coordinators do not know: a continuation ends before the text of such a token."""
from __future__ import annotations

from collections.abc import Sequence

from outrider.v1 import generation_pb2 as pb

from .tokens import Tokens


class StopTokens:
    """The stop tokens of one choice; sees its messages in order."""

    def __init__(self, ids: Sequence[int], tokens: Tokens | None, stop_strings: Sequence[str] = ()) -> None:
        """With `tokens`, text that the coordinator holds back at the end is not lost: half a character, a run of byte
        tokens, or what may become one of the `stop_strings`."""
        self._stops = frozenset(ids)
        self._tokens = tokens
        self._stop_strings = stop_strings
        self._ids: list[int] = []
        self._shown = ""

    def apply(self, message: pb.GenerateResponse) -> None:
        """Cuts the message after the first stop token and makes it the last one; else leaves it."""
        for i, token in enumerate(message.tokens):
            if token.id in self._stops:
                self._end(message, i)
                return
            self._ids.append(token.id)
            self._shown += token.text

    def _end(self, message: pb.GenerateResponse, index: int) -> None:
        del message.tokens[index + 1:]
        message.tokens[index].text = ""
        message.finish.CopyFrom(pb.GenerationFinish(
            reason=pb.FINISH_REASON_STOP, trailing_text=self._held_back(),
            cached_prompt_tokens=message.finish.cached_prompt_tokens))

    def _held_back(self) -> str:
        """The end of the text before the stop token that has not been shown.

        A coordinator's stream of text is the tokenizer's own text of the whole continuation, in pieces.
        """
        if self._tokens is None:
            return ""
        whole = self._tokens.text_of(self._ids)
        if not whole.startswith(self._shown):
            return ""
        rest = whole[len(self._shown):]
        # A byte that no other follows becomes U+FFFD at the end, with which a stop string may be complete.
        ends = [end for end in (rest.find(stop) for stop in self._stop_strings if stop) if end >= 0]
        return rest[:min(ends)] if ends else rest
