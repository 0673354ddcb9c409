# SPDX-License-Identifier: Apache-2.0
"""How long a text may be: what verifiers have said of their context and of their memory."""
from __future__ import annotations

from collections.abc import Iterable

from outrider.v1 import types_pb2

# A verifier that was there so long ago may come back: a startup probe of deploy/ gives it this time to load weights.
_BACK_SECONDS = 600.0


def room_of(verifier: types_pb2.NodeDescription) -> int:
    """The longest text that it can ever have; 0 where it does not say."""
    # Coordinators count it so, too. An older node does not say how much memory it has.
    return min(verifier.context_length, verifier.kv_cache_tokens or verifier.context_length)


class Rooms:
    """The rooms of verifiers that are there, or were of late, by their model's name."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], float] = {}  # when last

    def note(self, verifiers: Iterable[types_pb2.NodeDescription], now: float) -> None:
        # What is old is forgotten only where there is something new: a model whose verifiers are all away keeps its.
        self._seen |= {(verifier.model_name, room_of(verifier)): now for verifier in verifiers}
        self._seen = {key: at for key, at in self._seen.items() if now < at + _BACK_SECONDS}

    def longest(self, name: str) -> int:
        """Returns the longest text of the model of this name; 0 where nobody has said it."""
        return max((room for model, room in self._seen if model == name), default=0)
