# SPDX-License-Identifier: Apache-2.0
"""The fault matrix: what is broken, how, and what has to come of it."""
from __future__ import annotations

import collections.abc
import dataclasses

import process_rows


@dataclasses.dataclass(frozen=True)
class Row:
    number: int
    fault: str
    by: str  # how it is injected
    expected: str
    target: str
    inject: collections.abc.Callable
    is_smoke: bool = False
    has_plain: bool = False  # it compares with plain decoding
    is_proxied: bool = False  # nodes are behind proxies
    cluster: dict = dataclasses.field(default_factory=dict)
    load: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ElsewhereRow:
    """What this program does not run."""
    number: int
    fault: str
    proof: str  # what shows it, or why nothing does


ROWS = (
    Row(1, "a drafter is killed", "kill -9", "plain rounds, later drafts again",
        "errors 0; added stall p99 <= 100 ms; drafts again <= 5 s after its return",
        process_rows.a_drafter_is_killed, is_smoke=True, has_plain=True),
    Row(2, "all drafters are gone", "kill -9", "plain decoding",
        "errors 0; goodput >= 95 % of plain", process_rows.all_drafters_are_gone, has_plain=True),
    Row(3, "a verifier is killed", "kill -9", "sessions move",
        "errors 0; recovery p99 <= 1 s + prefill; goodput >= .9 (N-1)/N",
        process_rows.a_verifier_is_killed, is_smoke=True),
    Row(4, "all verifiers are gone for 10 s", "kill -9", "streams hold, and go on",
        "held 100 %; p99 <= 3 s after their return", process_rows.all_verifiers_are_gone),
    Row(5, "a coordinator is killed", "kill -9", "clients resume on the other",
        "resumed >= 99.9 %; p99 <= 3 s; orphans freed within the lease",
        process_rows.a_coordinator_is_killed, is_smoke=True),
    Row(6, "each role hangs for 1, 5, 20 s", "SIGSTOP, SIGCONT", "a step's deadline; late replies are dropped",
        "wrong tokens 0; p99 <= 1.5 s", process_rows.each_role_is_stopped, is_smoke=True),
    Row(22, "a rolling update of each role", "SIGTERM, one after the other", "drains",
        "errors 0; drain p99 <= 30 s", process_rows.all_are_rolled, is_smoke=True),
)
