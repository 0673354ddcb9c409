# SPDX-License-Identifier: Apache-2.0
"""The requests that run: how many may, and how they end with the process."""
from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from .errors import ApiError
from .metrics import METRICS


def _draining() -> ApiError:
    return ApiError(503, "this gateway is about to end; ask again, and another one answers", code="draining",
                    retry_after=1.0)


class Admission:
    """Counts requests, from their heads to the last byte of their answers. Confined to one event loop."""

    def __init__(self, max_requests: int) -> None:
        self._max_requests = max_requests
        self._running: set[Admitted] = set()
        self.is_draining = False
        self.idle = asyncio.Event()  # no request runs
        self.idle.set()

    @contextlib.contextmanager
    def request(self) -> Iterator[Admitted]:
        """The time that a request runs in; ApiError where it may not, or where `cut_off` ends it."""
        if self.is_draining:
            raise _draining()
        if len(self._running) >= self._max_requests:
            raise ApiError(429, "the gateway has as many requests as it may; try again later",
                           code="rate_limit_exceeded", retry_after=1.0)
        admitted = Admitted()
        self._running.add(admitted)
        self.idle.clear()
        METRICS.running.set(len(self._running))
        try:
            with admitted.may_be_cut_off():
                yield admitted
        finally:
            self._running.discard(admitted)
            METRICS.running.set(len(self._running))
            if not self._running:
                self.idle.set()

    def cut_off(self) -> None:
        """Ends what still runs, each with a refusal that its reader gets."""
        for admitted in self._running:
            admitted.cut_off()


class Admitted:
    """A request that runs, in the task that its server made for it."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._is_cut_off = False

    def cut_off(self) -> None:
        if self._task is not None and not self._is_cut_off:
            self._is_cut_off = True
            self._task.cancel()

    @contextlib.contextmanager
    def may_be_cut_off(self) -> Iterator[None]:
        """ApiError 503 where `cut_off` comes in the time of this; whoever else cancels the task is obeyed."""
        try:
            yield
        except asyncio.CancelledError:
            if not self._is_cut_off or self._task is None or self._task.uncancel() > 0:
                raise
            raise _draining() from None
