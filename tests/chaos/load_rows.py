# SPDX-License-Identifier: Apache-2.0
"""Rows of the matrix whose faults are clients: slow ones, those that leave, too many of them."""
from __future__ import annotations

import asyncio
import pathlib
import sys
import time

from figures import ratio_of_means, spread
from load import LONGEST, Load

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from closed_window import ClosedWindowClient  # noqa: E402

STALLED = 25  # seconds: what a coordinator has free goes back every 10 s
ROOM = 64 << 10  # bytes that a stalled stream may hold


async def clients_stall(run):
    """Their windows are closed, and each has more to come than its place holds."""
    count = 16 if run.is_short else 100
    run.notes.append(f"{count} clients, not 1000")
    coordinators = run.cluster.coordinators
    before = [one.memory() for one in coordinators]
    run.fault(f"{count} clients do not read")
    stalled = [ClosedWindowClient(coordinators[number % len(coordinators)].address,
                                  run.pick(run.texts).request(900, logprobs=20).SerializeToString())
               for number in range(count)]

    # They have stalled, and the memory that their beginning took has gone back.
    await asyncio.sleep(STALLED - 3)
    check_room(run, max(one.memory() - old for one, old in zip(coordinators, before)), count)
    stalled_at = time.monotonic()

    async def are_dropped():
        return sum(one.log().count("has stopped reading") for one in coordinators) >= count
    run.at_most(f"dropped, of those that read nothing for {STALLED} s", await run.until(are_dropped), 30)
    gaps = run.gaps(stalled_at, time.monotonic())
    run.at_most("p99 gap of the others from then on, of undisturbed",
                spread(gaps)["p99"] / spread(run.gaps(*run.calm))["p99"], 1.1, "")
    for client in stalled:
        client.close()


def check_room(run, grown, count):
    """`grown`: by how many bytes the coordinator has that needs most for its share of so many streams."""
    run.at_most("a coordinator's memory for each", grown / 1024 / (count / len(run.cluster.coordinators)), ROOM / 1024, "KiB")


async def clients_leave(run):
    """They leave at random points, amid the load, then on a cluster that is idle but for them: how soon is all free?"""
    async def leave(stub):
        text = run.pick(run.texts)
        call = stub.Generate(text.request(LONGEST, num_speculative_tokens=run.pick((0, 2, 4))), timeout=60)

        async def read():
            async for _ in call:
                pass
        reader = asyncio.ensure_future(read())
        await asyncio.wait([reader], timeout=run.random.choice((0, 0.01, 0.1, run.random.uniform(0, 1))))
        call.cancel()
        await asyncio.wait([reader])
        if not reader.cancelled():
            reader.exception()

    async def burst(count):
        stubs = run.load.clients.stubs
        await asyncio.gather(*(leave(stubs[number % len(stubs)]) for number in range(count)))
    run.fault("clients leave")
    num_bursts = 4 if run.is_short else 25
    for _ in range(num_bursts):
        await burst(16)
    await run.load.finish()
    freed = []
    for _ in range(num_bursts):
        await burst(16)
        freed.append(await run.until(run.no_block_is_owned))
    run.notes.append(f"{2 * 16 * num_bursts} cancels, not 10 000")
    run.at_most("blocks are free again, p99", spread(freed)["p99"], 1)


async def the_cache_is_full(run):
    """The load itself fills it, from its beginning; for a while it has three times as many users."""
    more = Load(run.load.clients, run.texts, run.random, users=2 * run.num_users, longest=min(256, run.longest))
    await asyncio.sleep(2 if run.is_short else 15)
    await more.finish()
    run.join(more)
    preempted = await run.cluster.total(run.cluster.verifiers, "preemptions_total")
    refused = await run.cluster.total(run.cluster.verifiers, "requests_total", code="RESOURCE_EXHAUSTED")
    run.notes.append(f"{preempted:.0f} sessions preempted, {refused:.0f} calls refused for want of blocks")
    run.at_least("sessions preempted or calls refused", preempted + refused, 1, "")


async def three_times_as_many(run):
    """More than all coordinators together take: who comes too late is told when to come again."""
    run.excuses = lambda stream: stream.error == "RESOURCE_EXHAUSTED" and not stream.tokens
    seconds = 4 if run.is_short else 30
    begin = time.monotonic()
    run.fault("three times as many users")
    more = Load(run.load.clients, run.texts, run.random, users=2 * run.num_users, longest=run.longest)
    await asyncio.sleep(seconds)
    end = time.monotonic()
    await more.finish()
    run.join(more)
    await asyncio.sleep(3)
    calm = run.load.goodput(*run.calm)
    after = time.monotonic()
    await asyncio.sleep(3 if run.is_short else 10)
    run.notes.append(f"overload for {seconds} s, not 60")
    run.at_least("goodput in overload, of undisturbed", run.load.goodput(begin, end) / calm, 0.8)
    # Both are samples of some seconds, whose own scatter no overload has made.
    ratio, error = ratio_of_means(run.load.goodputs(after, time.monotonic()), run.load.goodputs(*run.calm))
    run.at_least(f"goodput after it, of undisturbed, +- {error:.2f} (1 standard error; 0.99 less two)", ratio, 0.99 - 2 * error)
