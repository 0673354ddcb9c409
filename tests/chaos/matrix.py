# SPDX-License-Identifier: Apache-2.0
"""The fault matrix: what is broken, how, and what has to come of it."""
from __future__ import annotations

import collections.abc
import dataclasses

import clocks
import file_rows
import link_rows
import load_rows
import names
import process_rows
from load import AUTO


@dataclasses.dataclass(frozen=True)
class Row:
    number: int
    fault: str
    by: str  # how it is injected
    expected: str
    target: str
    inject: collections.abc.Callable
    users: int = 32  # streams at a time
    not_covered: str = ""  # of the fault, as it is named
    is_smoke: bool = False
    has_plain: bool = False  # it compares with plain decoding
    is_proxied: bool = False  # nodes are behind proxies
    moves_streams: bool = False  # away from verifiers, several at once
    lacks: collections.abc.Callable = lambda: None  # why it cannot be run here, if so
    cluster: dict = dataclasses.field(default_factory=dict)
    load: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ProvedRow:
    """What no disturbed process can show, and tests do, which are run."""
    number: int
    fault: str
    why: str  # it is not played
    proof: str  # what the tests show instead
    tests: tuple  # patterns of ctest's names, each of which has to find some
    not_covered: str = ""
    is_smoke: bool = False
    lacks: collections.abc.Callable = lambda: None


ROWS = (
    Row(1, "a drafter is killed", "kill -9", "plain rounds, later drafts again",
        "errors 0; added stall p99 <= 100 ms; goodput >= 95 % of plain; drafts again <= 5 s after its return",
        process_rows.a_drafter_is_killed, users=64, is_smoke=True, has_plain=True),
    Row(2, "all drafters are gone", "kill -9", "plain decoding",
        "errors 0; goodput >= 95 % of plain", process_rows.all_drafters_are_gone, has_plain=True),
    Row(3, "a verifier is killed", "kill -9", "sessions move",
        "errors 0; the first that moves is back <= 1 s + its prefill, the last <= their prefills / .25; goodput >= .9 (N-1)/N",
        process_rows.a_verifier_is_killed, users=64, is_smoke=True, moves_streams=True),
    Row(4, "all verifiers are gone for 10 s", "kill -9", "streams hold, and go on",
        "held 100 %; p99 <= 3 s after their return, the last <= their prefills / .25 / N; prefill <= 25 %", process_rows.all_verifiers_are_gone, users=64),
    Row(5, "a coordinator is killed", "kill -9", "clients resume on the other",
        "resumed >= 99.9 %; p99 <= 3 s; orphans freed within the lease",
        process_rows.a_coordinator_is_killed, users=64, is_smoke=True),
    Row(6, "each role hangs for 1, 5, 20 s", "SIGSTOP, SIGCONT", "a step's deadline; late replies are dropped",
        "wrong tokens 0; p99 <= 1.5 s", process_rows.each_role_is_stopped, users=64, is_smoke=True),
    Row(7, "connections to nodes break", "proxy: RST or FIN in a request or a reply", "the same step again",
        "one state change a step; p99 <= 500 ms", link_rows.connections_break, is_proxied=True),
    Row(8, "a reply is lost when its node has done the work", "proxy: the reply dropped, then RST",
        "asked again, the same result", "no token is another", link_rows.replies_are_lost, is_smoke=True, is_proxied=True),
    Row(9, "a connection is half open, both ways", "proxy: all bytes held", "a step's deadline",
        "p99 <= 1.5 s; descriptor freed <= 10 s", link_rows.a_connection_is_half_open, is_proxied=True, moves_streams=True),
    Row(10, "a verifier is partitioned, one way", "proxy: one direction held", "sessions move",
        "as row 3", link_rows.a_node_is_partitioned, is_proxied=True, moves_streams=True),
    Row(11, "packets are lost: 1, 5 and 20 %", "a tunnel before each verifier", "TCP repairs it",
        "errors 0; goodput at 1 % >= 90 % of undisturbed", link_rows.packets_are_lost,
        cluster={"losses": (0.01, 0.05, 0.2)}, lacks=link_rows.lacks_networks),
    Row(12, "round trips of 1 to 200 ms, with jitter", "proxy: delay", "slower, and K adapts",
        "errors 0; no session leaves a slow verifier; with K = auto more drafts a round where it is longer",
        link_rows.all_links_are_slow, is_proxied=True, load={"ks": (2, 4, 6, AUTO)}),
    Row(14, "1 Mbit/s to each node", "proxy: throttled", "slower, and nothing else",
        "errors 0; <= 64 KiB a stream at a coordinator", link_rows.all_links_are_narrow, is_proxied=True),
    Row(16, "clients that stop reading", "their HTTP/2 windows stay closed", "their streams pause, then are dropped",
        "<= 64 KiB each; p99 of the others <= +10 %", load_rows.clients_stall,
        cluster={"coordinator_flags": ("--slow-client-seconds", load_rows.STALLED)}),
    Row(17, "clients that leave at random points", "cancel", "released on both sides",
        "blocks back <= 1 s p99; leak 0", load_rows.clients_leave, is_smoke=True),
    Row(18, "the KV cache is full: openings, growth", "a small pool, three times the users", "refused, preempted, filled again",
        "no hang; errors of live streams 0", load_rows.the_cache_is_full, cluster={"kv_memory": "10MiB"}),
    Row(21, "a request that kills whatever verifier has it", "proxy: kill -9 when its bytes pass", "it is given up",
        "<= 2 verifiers lost, also where it is sent again; no other stream ends; the first that moves is back <= 1 s + its prefill, the last <= their prefills / .25",
        link_rows.a_request_is_poison, is_proxied=True, moves_streams=True),
    Row(23, "other weights, and other protocols, at a verifier's address", "a verifier started again with the drafter's weights; "
        "proxy: a description that names protocol N-1, N-2",
        "streams move only where the weights are theirs; N-1 is served, N-2 refused",
        "errors 0; no stream of two models; refused or served <= 5 s after it says so",
        process_rows.a_verifier_is_another, is_proxied=True),
    Row(24, "the clock jumps by an hour", "libfaketime, in one program of each role and in all", "nothing",
        "errors 0; no session expires or moves; added stall p99 <= 100 ms; then, when a verifier hangs: p99 <= 1.5 s, the first that moves is back <= 1 s + its prefill, the last <= their prefills / .25",
        process_rows.the_clock_jumps, moves_streams=True,
        not_covered="a clock that is set in the simulation, whose cores are given no clock but the steady one",
        cluster={"surroundings": clocks.Clocks}, lacks=clocks.lacks_clocks),
    Row(25, "overload: three times the users", "load, beyond --max-sessions", "shed, then as before",
        "goodput >= 80 % during, >= 99 % after", load_rows.three_times_as_many,
        cluster={"coordinator_flags": ("--max-sessions", 12)}),
    Row(26, "certificates are rotated", "files, with mutual TLS", "read again while all serve",
        "errors 0", file_rows.certificates_are_rotated,
        not_covered="revoked certificates, as no list of them is read; expired ones, which tests/integration/tls_test.py has",
        cluster={"is_secure": True}),
    Row(27, "full disks, and names that cannot be resolved", "standard error to /dev/full; /etc/hosts emptied, and no name service",
        "all serve on, at the addresses that they know", "errors 0; the last that moves is back <= 1 s + prefills / .25",
        file_rows.names_are_gone_and_disks_are_full, moves_streams=True,
        not_covered="a read-only disk, and a full one but for what is logged, as a program that serves writes nothing else",
        cluster={"surroundings": names.NamesOnFullDisks},
        lacks=names.lacks_namespaces),
    Row(22, "a rolling update of each role", "SIGTERM, one after the other", "drains",
        "errors 0; drain p99 <= 30 s", process_rows.all_are_rolled, users=64, is_smoke=True),
    *(Row(number, f"the only drafter is killed, --schedule {schedule}", "kill -9 while it drafts ahead",
          "plain rounds, later drafts again", "errors 0; added stall p99 <= 100 ms; drafts as before, or half of them and as fast, <= 5 s after its return",
          process_rows.the_only_drafter_is_killed, is_smoke=schedule == "predraft",
          cluster={"verifiers": 1, "drafters": 1, "coordinators": 1, "coordinator_flags": ("--schedule", schedule)},
          users=50)
      for number, schedule in ((28, "predraft"), (29, "auto"))),
    Row(30, "one of two verifiers is killed", "kill -9", "half of all sessions move at once",
        "errors 0; the first is back <= 1 s + its prefill, the last <= their prefills / .25",
        process_rows.one_of_two_verifiers_is_killed, cluster={"verifiers": 2}, users=100, moves_streams=True),
)

PROVED = (
    ProvedRow(13, "messages doubled, reordered, replayed", "TCP does neither, and HTTP/2 frames cannot be replayed",
              "all orders, in virtual time; and weaker protocols are caught",
              (r"simulation_tests\.SimulationTest", r"weak_protocols_tests\..*WeakProtocolsTest"),
              not_covered="replays minutes later: the simulation's come up to 40 s later, of its own time"),
    ProvedRow(15, "a drafter whose delay depends on its tokens", "a question of law, which no sample of streams answers",
              "by enumeration: who drops late drafts has another law, who decides beforehand has not",
              (r"exactness_law_tests\..*LateDraftTest",)),
    ProvedRow(19, "any session evicted at any step", "no flag evicts a session; row 18 preempts",
              "the simulation evicts, in virtual time; the law after each move, by enumeration",
              (r"simulation_tests\.SimulationTest", r"exactness_law_tests\.MovesTest", r"exactness_law_tests\.MovesMutantsTest")),
    ProvedRow(20, "NaN, out of memory, an error of the device", "no program has a switch to fail so",
              "one session fails for a bad row; work fails alone for an exception; a lost device is told once and ends all",
              (r"integration_tests\.MalformedRowsTest", r"engine_tests\.NodeEngineTest", r"engine_tests\.BatchSchedulerTest",
               r"gpu_node_tests\..*")),
)
