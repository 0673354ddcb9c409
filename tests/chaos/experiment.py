# SPDX-License-Identifier: Apache-2.0
"""One row of the matrix: a cluster, its load, the faults, and what is found."""
from __future__ import annotations

import asyncio
import collections
import dataclasses
import os
import random
import time

import moved
from cluster import Cluster
from disturbance import Disturbance
from load import LONGEST, Clients, Load, texts
from proxy import Proxies

# More than while it serves all, a process may have these: gRPC starts threads as it needs them.
# What is left behind by each stream or call is far more.
SPARE = (4 + 2 * os.cpu_count(), 8)  # threads, descriptors
MOVES = ("lost", "late", "draining", "replaced", "outgrown", "failed")  # why sessions left a verifier
# What ends by itself takes no longer, on a slow machine too.
PATIENCE = 60


@dataclasses.dataclass(frozen=True)
class Scale:
    num_texts: int
    longest: int  # tokens of a stream
    calm: float  # seconds before the first fault
    seconds: float  # for which faults come
    between: tuple  # two faults
    users: int | None = None  # None: as many as each row has
    is_short: bool = False


SHORT = Scale(num_texts=6, longest=128, calm=1, seconds=1, between=(0.3, 0.6), users=12, is_short=True)
FULL = Scale(num_texts=16, longest=LONGEST, calm=6, seconds=30, between=(2, 5))


@dataclasses.dataclass
class Found:
    """What a run of a row has shown."""
    row: object
    seed: int
    users: int  # streams at a time
    started: int = 0
    finished: int = 0
    held: int = 0
    resumed: int = 0
    errors: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # that clients saw
    breaks: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # after which they went on
    moves: dict = dataclasses.field(default_factory=dict)  # of the coordinators that are there at the end
    differences: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    recovery: dict = dataclasses.field(default_factory=dict)
    goodput: float = 0  # tokens a second, from the first fault to the last
    goodput_undisturbed: float = 0
    reprefilled: int = 0
    acceptance: tuple = ()  # before, and after
    orphans: float = 0
    orphans_gone_after: float = 0
    faults: list = dataclasses.field(default_factory=list)
    targets: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)
    failures: list = dataclasses.field(default_factory=list)  # what must not be, whatever the machine
    seconds: float = 0
    origin: dict = dataclasses.field(default_factory=dict)  # when, of which commit, where, under which load


async def run_row(row, seed, scale, goldens):
    """`goldens` is filled, and used by the next rows."""
    begin = time.monotonic()
    chance = random.Random(f"{seed} {row.number}")
    proxies = Proxies() if row.is_proxied else None
    cluster = await asyncio.to_thread(
        Cluster, proxy=proxies.before if proxies else None, **row.cluster)
    try:
        some_texts = texts(random.Random(seed), scale.num_texts)
        clients = Clients([one.address for one in cluster.coordinators], goldens,
                          cluster.security and cluster.security.credentials(), scale.longest)
        try:
            await clients.learn(some_texts, await asyncio.to_thread(cluster.model_of, cluster.verifiers[0]))
            found = await _disturb(row, seed, scale, cluster, clients, some_texts, chance, proxies)
        finally:
            await clients.close()
    finally:
        await asyncio.to_thread(cluster.close)
        if proxies:
            proxies.close()
    found.seconds = time.monotonic() - begin
    return found


async def _disturb(row, seed, scale, cluster, clients, some_texts, chance, proxies):
    options = {"users": scale.users or row.users, "longest": scale.longest, **row.load}
    plain_goodput = await _plain_goodput(scale, clients, some_texts, chance, options) if row.has_plain and not scale.is_short else 0
    rows_before = await cluster.total(cluster.verifiers, "pass_rows_sum")
    load = Load(clients, some_texts, chance, **options)
    begin = time.monotonic()
    await load.has_begun(PATIENCE)
    calm = time.monotonic()
    await asyncio.sleep(scale.calm)
    before = cluster.threads_and_descriptors()
    run = Disturbance(cluster, load, chance, scale, (calm, time.monotonic()), proxies, plain_goodput, some_texts,
                      options["users"])
    await row.inject(run)
    end = run.ended or time.monotonic()
    await load.finish()
    for check in run.afterwards:
        check()
    found = Found(row, seed, options["users"], faults=[(at - begin, what) for at, what in run.faults],
                  targets=run.targets, notes=run.notes, recovery=run.recovery(), held=run.held())
    found.goodput = load.goodput(run.calm[1], end)
    found.goodput_undisturbed = load.goodput(*run.calm)
    found.acceptance = (load.acceptance(*run.calm), load.acceptance(run.calm[1], end))
    _check(found, run, clients)
    run.at_least("drafts accepted", sum(one.num_accepted for one in load.arrivals(begin, time.monotonic())), 1)
    await _look_for_orphans(found, run, cluster)
    await _look_for_growth(found, cluster, before)
    found.moves = {reason: round(count) for reason in MOVES if (count := await cluster.total(
        cluster.coordinators, "session_moves_total", peer="verifier", reason=reason))}
    rows = await cluster.total(cluster.verifiers, "pass_rows_sum") + run.rows_of_the_dead - rows_before
    needed = sum(stream.prompt_length + sum(one.num_drafted + 1 + one.num_more for one in stream.arrivals) for stream in load.streams)
    found.reprefilled = round(max(0, rows - needed))
    if row.not_covered:
        found.notes.append(f"not covered: {row.not_covered}")
    if row.moves_streams:
        await moved.check(run, found.reprefilled)
    if found.failures:
        found.notes += [f"{member.name}: {line}" for member in cluster.members
                        for line in member.log().splitlines() if " E " in line][:20]
    return found


async def _plain_goodput(scale, clients, some_texts, chance, options):
    load = Load(clients, some_texts, chance, **{**options, "ks": (0,)})
    await load.has_begun(PATIENCE)
    begin = time.monotonic()
    await asyncio.sleep(2 * scale.calm)
    end = time.monotonic()
    await load.finish()
    return load.goodput(begin, end)


def _check(found, run, clients):
    streams = run.load.streams + run.streams_elsewhere
    found.failures += run.failures
    found.started = len(streams)
    found.finished = sum(stream.ended is not None for stream in streams)
    found.resumed = sum(bool(stream.breaks) and stream.ended is not None for stream in streams)
    for stream in streams:
        found.breaks.update(code for _, code, _ in stream.breaks)
        if stream.error is not None:
            found.errors[stream.error] += 1
            if not run.excuses(stream):
                found.failures.append(f"a client saw {stream.error} after {len(stream.tokens)} tokens: {stream.breaks[-3:]}")
        for kind, count in clients.differences(stream).items():
            found.differences[kind] += count
            found.failures.append(f"{count} tokens {kind}, of {stream.num_tokens}, breaks {stream.breaks}, {stream.text}")


async def _look_for_orphans(found, run, cluster):
    """Blocks are owned by nobody within the lease and 5 s."""
    found.orphans = await cluster.blocks()
    found.orphans_gone_after = await run.until(run.no_block_is_owned, PATIENCE)
    run.at_most("orphan blocks are gone", found.orphans_gone_after, cluster.lease + 5)
    if left := await cluster.blocks():
        found.failures.append(f"{left:.0f} blocks stay owned")


async def _look_for_growth(found, cluster, before):
    """Looks for growth of threads and descriptors, once what a fault has broken is put away."""
    end = time.monotonic() + PATIENCE
    while True:
        grown = [f"{name} had {old} threads and descriptors, and has {new}"
                 for (name, pid), new in cluster.threads_and_descriptors().items()
                 if (old := before.get((name, pid))) and any(b > a + more for a, b, more in zip(old, new, SPARE))]
        if not grown or time.monotonic() > end:
            break
        await asyncio.sleep(0.5)
    found.failures += grown
