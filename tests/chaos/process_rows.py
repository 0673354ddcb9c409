# SPDX-License-Identifier: Apache-2.0
"""Rows of the matrix whose faults are signals: programs that die, hang and drain."""
from __future__ import annotations

import asyncio
import time


async def drafts_again(run, drafter):
    """Seconds until one that is new drafts for some stream."""
    async def drafts():
        return await drafter.value("requests_total", method="Draft", code="OK") > 0
    return await run.until(drafts)


def added_stall(run):
    """The same streams are silent now and then though nothing fails."""
    usual = run.usual_silence()["p99"]
    run.at_most(f"added stall p99, to {usual:.2f} s undisturbed", max(0, run.recovery()["p99"] - usual), 0.1)


async def a_drafter_is_killed(run):
    back = []
    async for _ in run.schedule():
        drafter = run.pick(run.cluster.drafters)
        await run.kill(drafter)
        await run.pause(0.5, 2)
        await drafter.is_back()
        back.append(await drafts_again(run, drafter))
    added_stall(run)
    run.at_most("drafts again, after its return", max(back), 5)


async def the_only_drafter_is_killed(run):
    (drafter,) = run.cluster.drafters
    usual = run.load.tokens_a_round(*run.calm)
    away, back = [], []
    async for _ in run.schedule():
        killed = await run.kill(drafter)
        await run.pause(0.5, 2)
        await drafter.is_back()
        away.append(time.monotonic() - killed)
        back.append(await run.until(lambda: gives_as_many(run, usual)))
    run.notes.append(f"away for {min(away):.1f} to {max(away):.1f} s; {usual:.2f} tokens a round before")
    added_stall(run)
    run.at_most("as many tokens a round, after its return", max(back), 5)
    run.at_least("rounds whose drafts were made ahead", await run.cluster.total(
        run.cluster.coordinators, "drafted_ahead_total", outcome="hit"), 1)


async def gives_as_many(run, usual, window=0.5):
    """Whether rounds of the last moments gave the tokens that they usually give."""
    await asyncio.sleep(window)
    now = time.monotonic()
    return run.load.tokens_a_round(now - window, now) >= 0.9 * usual


async def all_drafters_are_gone(run):
    for drafter in run.cluster.drafters:
        await run.kill(drafter)
    away = 3 if run.is_short else 20
    begin = time.monotonic()
    await asyncio.sleep(away)
    run.notes.append(f"away for {away} s, not 5 min")
    goodput = run.load.goodput(begin, time.monotonic())
    if run.plain_goodput:
        run.at_least("goodput without drafters, of plain", goodput / run.plain_goodput, 0.95)
    for drafter in run.cluster.drafters:
        await drafter.is_back()
    run.at_most("drafts again, after its return", await drafts_again(run, run.cluster.drafters[0]), 5)
    added_stall(run)


async def a_verifier_is_killed(run):
    async for _ in run.schedule():
        verifier = run.pick(run.cluster.verifiers)
        await run.kill(verifier)
        await run.pause(1, 3)
        await verifier.is_back()
        await run.cluster.wait_until_complete()
    run.at_most("recovery p99", run.recovery()["p99"], 1 + run.first_token_p99())
    count = len(run.cluster.verifiers)
    run.at_least("goodput, of undisturbed", run.goodput_ratio(), 0.9 * (count - 1) / count)


async def all_verifiers_are_gone(run):
    # Who comes meanwhile is told to come later.
    run.excuses = lambda stream: stream.error == "UNAVAILABLE" and not stream.tokens
    for verifier in run.cluster.verifiers:
        await run.kill(verifier)
    await asyncio.sleep(3 if run.is_short else 10)
    await asyncio.gather(*(verifier.is_back() for verifier in run.cluster.verifiers))
    run.fault("all verifiers are back")
    run.at_most("recovery p99 after their return", await recovery_of_the_last(run), 3)


async def recovery_of_the_last(run):
    """p99 of the last fault alone, once all streams that it met have gone on."""
    at, what = run.faults[-1]
    waiting = [stream for stream in run.load.running() if stream.times and stream.times[0] < at]

    async def have_gone_on():
        return all(stream.times[-1] > at or stream.error or stream.ended for stream in waiting)
    await run.until(have_gone_on)
    return run.recovery(lambda name: name == what)["p99"]


async def a_coordinator_is_killed(run):
    async for _ in run.schedule():
        coordinator = run.pick(run.cluster.coordinators)
        await run.kill(coordinator)
        await run.pause(0.5, 2)
        await coordinator.is_back()
        await run.cluster.wait_until_complete()
    run.at_most("recovery p99", run.recovery()["p99"], 3)


async def each_role_is_stopped(run):
    for seconds in (1,) if run.is_short else (1, 5, 20):
        for members in (run.cluster.verifiers, run.cluster.drafters, run.cluster.coordinators):
            await run.pause(1, 2)
            member = run.pick(members)
            what = f"SIGSTOP {member.name} for {seconds} s"
            run.fault(what, member.stop)
            await asyncio.sleep(seconds)
            member.go_on()
            if not run.is_short:
                await run.pause(2, 3)
                run.at_most(f"recovery p99, {member.role}, {seconds} s",
                            run.recovery(lambda name, what=what: name == what)["p99"], 1.5)
    if run.is_short:
        run.at_most("recovery p99", run.recovery()["p99"], 1.5)
    else:
        run.notes.append("20 s in place of 60 s")


async def all_are_rolled(run):
    drains = []
    each_role = (run.cluster.verifiers, run.cluster.drafters, run.cluster.coordinators)
    for member in [member for members in each_role for member in (members[:1] if run.is_short else members)]:
        if member.role == "verifier":
            run.rows_of_the_dead += await member.value("pass_rows_sum")
        run.fault(f"SIGTERM {member.name}")
        drains.append(await member.drain())
        await member.is_back()
        await run.cluster.wait_until_complete()
    run.at_most("longest drain", max(drains), 30)
