# SPDX-License-Identifier: Apache-2.0
"""Rows of the matrix whose faults are programs: that die, hang, drain, come back as others, and whose clock jumps."""
from __future__ import annotations

import asyncio
import dataclasses
import statistics
import time

from cluster import DRAFT
from figures import recoveries
from moved import SHARE
from stubs import types_pb2

HOUR = 3600
LEAST_DRAFTED = 0.1  # of the tokens


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
    if run.plain_goodput:
        calm, goodput = (run.load.goodput(*when) / run.plain_goodput for when in (run.calm, (run.calm[1], time.monotonic())))
        run.at_least(f"goodput, of plain decoding, to {calm:.2f} undisturbed", goodput, 0.95)
    run.at_most("drafts again, after its return", max(back), 5)


async def the_only_drafter_is_killed(run):
    (drafter,) = run.cluster.drafters
    usual = Pace.of(run.load, *run.calm)
    run.at_least("drafts among the tokens before the fault, to see them come back", usual.drafted, LEAST_DRAFTED)
    away, back = [], []
    async for _ in run.schedule():
        killed = await run.kill(drafter)
        await run.pause(0.5, 2)
        await drafter.is_back()
        away.append((killed, time.monotonic()))
        back.append(await run.until(lambda: is_as_before(run, usual), patience=10 if run.is_short else 60))
    times = [end - begin for begin, end in away]
    plain = statistics.median(Pace.of(run.load, *when).goodput for when in away)
    run.notes.append(f"away for {min(times):.1f} to {max(times):.1f} s; {usual.goodput:.0f} tokens a second before, "
                     f"{usual.drafted:.2f} of them drafts, {plain:.0f} while it is away")
    added_stall(run)
    run.at_most("drafts as before, or half of them and as fast, after its return", max(back), 5)
    # A target, and no failure: a drafter that gets no time to run drafts nothing ahead.
    run.at_least("rounds with drafts that were made ahead, which the row is about",
                 await run.cluster.total(run.cluster.coordinators, "drafted_ahead_total", outcome="hit"), 1)


@dataclasses.dataclass(frozen=True)
class Pace:
    goodput: float  # tokens a second
    drafted: float  # the share of tokens that are drafts

    @classmethod
    def of(cls, load, begin, end):
        arrivals = load.arrivals(begin, end)
        accepted, tokens = (sum(getattr(one, what) for one in arrivals) for what in ("num_accepted", "num_tokens"))
        return cls(load.goodput(begin, end), accepted / max(tokens, 1))


async def is_as_before(run, usual, window=0.5):
    """Whether drafts have had their usual part in the tokens of the last moments; or half of it, and these came as fast as
    they usually do. With 50 streams, nodes and clients on few cores plain rounds may be the faster ones, which control finds
    out, and how fast streams with drafts are wavers by twice with no fault at all."""
    await asyncio.sleep(window)
    now = time.monotonic()
    pace = Pace.of(run.load, now - window, now)
    part = pace.drafted / max(usual.drafted, LEAST_DRAFTED)
    return part >= 0.9 or (part >= 0.5 and pace.goodput >= usual.goodput)


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


async def verifiers_die_in_turns(run):
    """Each is back before the next one dies."""
    async for _ in run.schedule():
        verifier = run.pick(run.cluster.verifiers)
        await run.kill(verifier)
        await run.pause(1, 3)
        await verifier.is_back()
        await run.cluster.wait_until_complete()


async def a_verifier_is_killed(run):
    await verifiers_die_in_turns(run)
    await run.tells_recovery("", run.recovery()["p99"])
    count = len(run.cluster.verifiers)
    run.at_least("goodput, of undisturbed", run.goodput_ratio(), 0.9 * (count - 1) / count)


async def one_of_two_verifiers_is_killed(run):
    """Half of all streams move at once, and have a quarter of the other's time to be taken in."""
    verifier = run.pick(run.cluster.verifiers)
    await run.kill(verifier)
    await run.tells_recovery("", await recovery_of_the_last(run))
    run.at_least("streams that moved", len({name for name, left, _ in run.moves() if left == run.cluster.ways[verifier]}),
                 0.3 * run.num_users)
    await verifier.is_back()
    await run.cluster.wait_until_complete()


async def all_verifiers_are_gone(run):
    # Who comes meanwhile is told to come later.
    run.excuses = lambda stream: stream.error == "UNAVAILABLE" and not stream.tokens
    gone = time.monotonic()
    ran = [stream for stream in run.load.running() if stream.times]
    for verifier in run.cluster.verifiers:
        await run.kill(verifier)
    await asyncio.sleep(3 if run.is_short else 10)
    await asyncio.gather(*(verifier.is_back() for verifier in run.cluster.verifiers))
    run.fault("all verifiers are back")
    beside_others, alone = await shares_of_reprefills(run, [stream for stream in ran if stream in run.load.running()])
    run.at_most("recovery p99 after their return", await recovery_of_the_last(run), 3)
    await the_last_is_back(run, [stream for stream in ran if not stream.ended or stream.ended > run.faults[-1][0]])
    run.at_most("texts taken in again, of the verifiers' time from the first stream's return to the last's",
                beside_others + alone, 0.25, "")
    run.notes.append(f"of that time {beside_others:.2f} beside others at the node, and {alone:.2f} where there were none; "
                     "those that go on where they were are in it, and wait for no gate")

    def were_held():
        held = [stream for stream in ran if stream.error is None and not any(at > gone for at, _, _ in stream.breaks)]
        run.at_least(f"held with no call broken, of {len(ran)} streams that ran", len(held) / max(len(ran), 1), 1)
    run.afterwards.append(were_held)


async def the_last_is_back(run, waiting):
    """All of these are taken in by all verifiers, each of which has a share of its time for it."""
    at = run.faults[-1][0]
    together = sum(stream.length_at(at) for stream in waiting) * await run.seconds_a_row()
    count = len(run.cluster.verifiers)
    run.at_most(f"the last of {len(waiting)} is back, after {together:.2f} s of passes / {SHARE} by {count} verifiers",
                max((back for stream in waiting for back in recoveries([stream.times], at)), default=0),
                1 + together / SHARE / count)


async def shares_of_reprefills(run, waiting):
    """What texts that are taken in again take of the verifiers' time, beside others and not, from when the
    first of these streams is back to when all are. All verifiers are new."""
    verifiers = run.cluster.verifiers
    back = run.faults[-1][0]

    async def seconds():
        return [await run.cluster.total(verifiers, "reprefill_seconds_total", beside_others=beside) for beside in ("true", "false")]

    def those_back():
        return [stream.times[-1] > back or stream.error is not None or stream.ended is not None for stream in waiting]

    async def is_one_back():
        return any(those_back())

    async def are_all_back():
        return all(those_back())
    await run.until(is_one_back)
    begin, before = time.monotonic(), await seconds()
    await run.until(are_all_back)
    end, after = time.monotonic(), await seconds()
    return [(b - a) / ((end - begin) * len(verifiers)) for a, b in zip(before, after)]


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

    def have_resumed():
        broken = [stream for stream in run.load.streams if stream.breaks]
        share = sum(stream.ended is not None for stream in broken) / max(len(broken), 1)
        run.at_least(f"resumed to their ends, of {len(broken)} streams that broke off", share, 0.999)
    run.afterwards.append(have_resumed)


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
    """One program after the other; in the smoke the first of each role, all at once."""
    drains = []

    async def roll(member):
        if member.role == "verifier":
            run.rows_of_the_dead += await member.value("pass_rows_sum")
        run.fault(f"SIGTERM {member.name}")
        drains.append(await member.drain())
        await member.is_back()
    each_role = (run.cluster.verifiers, run.cluster.drafters, run.cluster.coordinators)
    if run.is_short:
        await asyncio.gather(*(roll(members[0]) for members in each_role))
    else:
        for member in [member for members in each_role for member in members]:
            await roll(member)
            await run.cluster.wait_until_complete()
    await run.cluster.wait_until_complete()
    run.at_most("longest drain", max(drains), 30)


async def a_verifier_is_another(run):
    """It comes back at its address with other weights; then one that still has the right ones dies. Last, one
    says, in the handshake, that it speaks other protocols."""
    other, killed, kept = run.random.sample(run.cluster.verifiers, 3)
    await run.kill(other)
    other.set_flag("--model", DRAFT)
    await other.is_back()
    await run.cluster.wait_until_complete()
    # What coordinators knew of that address may be older than its end.
    coordinators = run.cluster.coordinators

    async def know_both_models():
        return await run.cluster.total(coordinators, "verifier_models") == 2 * len(coordinators)
    await run.until(know_both_models)
    await run.load.clients.learn(run.texts, await asyncio.to_thread(run.cluster.model_of, other))
    await run.pause(1, 3)
    moved = len(run.moves())
    await run.kill(killed)
    await run.pause(2, 3)
    to = [to for _, _, to in run.moves()[moved:]]
    run.notes.append(f"{len(to)} streams moved when {killed.name} was killed")
    run.at_least("streams that moved to the one with equal weights", to.count(run.cluster.ways[kept]), 1)
    run.at_most("streams that moved to the one with others", to.count(run.cluster.ways[other]), 0, "")
    await killed.is_back()
    await run.cluster.wait_until_complete()
    begun = [stream.model.weights_hash for stream in run.load.streams if stream.model]
    run.at_least("streams that the other weights served from their beginning to their end",
                 len(begun) - begun.count((await asyncio.to_thread(run.cluster.model_of, kept)).weights_hash), 1)
    await speaks_other_protocols(run, killed)


async def speaks_other_protocols(run, verifier):
    """N - 1 is served; N - 2 is refused, while the streams that it had go on somewhere."""
    node = await asyncio.to_thread(run.cluster.describe, verifier)

    def words_of(protocol):
        return types_pb2.NodeDescription(protocol_version=protocol, build=node.build).SerializeToString()
    words = words_of(node.protocol_version)

    def are(state, count):
        async def look():
            return await run.cluster.total(run.cluster.coordinators, "nodes", peer="verifier", state=state) == count
        return look
    refused = len(run.cluster.coordinators)
    for older, state, count in ((1, "refused", 0), (2, "refused", refused), (1, "refused", 0)):
        said = words_of(node.protocol_version - older)
        run.proxies.of(verifier).said = lambda data, said=said: data.replace(words, said)
        run.fault(f"{verifier.name} says that it speaks protocol N - {older}")
        run.at_most(f"protocol N - {older} is {'refused' if count else 'served'}", await run.until(are(state, count)), 5)
        before = await verifier.value("requests_total", method="Verify", code="OK")
        await run.pause(2, 3)
        answered = await verifier.value("requests_total", method="Verify", code="OK") - before
        if not count:
            run.at_least(f"rounds that it served as N - {older}", answered, 1)
    run.notes.append("protocols by what the handshake says: no build of N - 1 was run")


async def the_clock_jumps(run):
    """An hour ahead and back: of one program of each role, then of all; and nothing comes of it. Then a verifier hangs
    when all clocks have been set back: what waits still ends in time."""
    clocks, members = run.cluster.surroundings, run.cluster.members
    each_role = (run.cluster.verifiers, run.cluster.drafters, run.cluster.coordinators)
    seen = set()
    for victims in (members,) if run.is_short else (*([run.pick(role)] for role in each_role), members):
        who = "all programs" if victims is members else victims[0].name
        for seconds, what in ((HOUR, "+1 h"), (0, "-1 h")):
            await run.pause(1, 2)
            run.fault(f"the clock of {who} jumps by {what}", lambda victims=victims, seconds=seconds: clocks.set(victims, seconds))
            await run.pause(3, 5)  # Abseil looks at the clock anew every 2 s
            seen |= {victim for victim in victims if seconds and clocks.is_seen_ahead(victim)}
    run.at_least("programs that have logged by the clock that was ahead", len(seen), len(members))
    added_stall(run)
    run.at_most("streams that left a verifier", await run.cluster.total(
        run.cluster.coordinators, "session_moves_total", peer="verifier"), 0, "")
    run.at_most("sessions that a verifier had lost", await run.cluster.total(
        run.cluster.coordinators, "cache_misses_total", peer="verifier"), 0, "")
    clocks.set(members, -HOUR)
    verifier = run.pick(run.cluster.verifiers)
    what = f"SIGSTOP {verifier.name} for 2 s, when all clocks have been set back"
    run.losses.append((run.fault(what, verifier.stop), verifier))
    await asyncio.sleep(2)
    verifier.go_on()
    await run.pause(2, 3)
    run.at_most("recovery p99 of what waits then", run.recovery(lambda name: name == what)["p99"], 1.5)
