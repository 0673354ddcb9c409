# SPDX-License-Identifier: Apache-2.0
"""Rows of the matrix whose faults are on the way from the coordinators to a node."""
from __future__ import annotations

import asyncio
import time

from cluster import BIN, Cluster
from figures import ratio_of_means
from load import Clients, Load
from load_rows import check_room
from proxy import REPLY, REQUEST
from process_rows import recovery_of_the_last
from tunnels import lacks_tunnels


async def connections_break(run):
    before = await lost_caches(run)
    async for _ in run.schedule():
        node = run.pick(run.cluster.nodes)
        way = run.proxies.of(node)
        direction = run.pick((REQUEST, REPLY))
        how = run.pick((way.reset, way.end))
        how(direction)
        if await run.until(way.has_cut, patience=20) < 20:
            run.fault(f"{how.__name__} in a {direction} of {node.name}")
    fail_without_faults(run)
    run.at_most("recovery p99", run.recovery()["p99"], 0.5)
    await no_step_changes_a_cache_twice(run, before)


def fail_without_faults(run):
    """What waits for bytes on the way may come to nothing."""
    if not run.faults:
        run.failures.append("nothing was cut within 20 s: nobody has seen what the row is about")


async def lost_caches(run):
    """Times at which a verifier's cache was not what a coordinator had made of it, but for those that sessions left."""
    misses, moves = [await run.cluster.total(run.cluster.coordinators, name, peer="verifier")
                     for name in ("cache_misses_total", "session_moves_total")]
    return misses - moves


async def no_step_changes_a_cache_twice(run, before):
    run.at_most("verifiers' caches that were not as the last step leaves them", await lost_caches(run) - before, 0, "")
    run.notes.append("changes of a node's state are not counted: a step that appended twice would leave a longer cache, which the "
                     "next step's length and hash would not fit")


async def replies_are_lost(run):
    async for _ in run.schedule():
        node = run.pick(run.cluster.nodes)
        way = run.proxies.of(node)
        way.lose_reply()
        if await run.until(way.has_cut, patience=20) < 20:
            run.fault(f"a reply of {node.name} is lost")
    fail_without_faults(run)
    run.at_most("recovery p99", run.recovery()["p99"], 0.5)


async def a_connection_is_half_open(run):
    freed = []
    for _ in range(1 if run.is_short else 2):
        for node in (run.pick(run.cluster.verifiers), run.pick(run.cluster.drafters)):
            await run.pause(1, 2)
            way = run.proxies.of(node)
            old = set(way.open)
            what = f"both ways to {node.name} are silent"
            way.silent |= {REQUEST, REPLY}
            at = run.fault(what)
            if node.role == "verifier":
                run.losses.append((at, node))

            async def are_closed(way=way, old=old):
                return not way.open & old
            freed.append(await run.until(are_closed, patience=20))
            way.silent.clear()
            run.at_most(f"recovery p99, {node.role}", run.recovery(lambda name, what=what: name == what)["p99"], 1.5)
    run.at_most("descriptors are freed after", max(freed), 10)


async def a_node_is_partitioned(run):
    """One way: it is asked and does not answer, or answers nobody."""
    async for _ in run.schedule():
        node = run.pick(run.cluster.verifiers)
        direction = run.pick((REQUEST, REPLY))
        way = run.proxies.of(node)
        way.silent.add(direction)
        run.losses.append((run.fault(f"the {direction} way of {node.name} is silent"), node))
        await run.pause(3, 6)
        way.silent.clear()
        await run.cluster.wait_until_complete()
    await run.tells_recovery("", run.recovery()["p99"])
    count = len(run.cluster.verifiers)
    run.at_least("goodput, of undisturbed", run.goodput_ratio(), 0.9 * (count - 1) / count)


async def all_links_are_slow(run):
    moves = await late_moves(run)
    drafts = []
    for round_trip in (0.02, 0.2) if run.is_short else (0.001, 0.005, 0.02, 0.05, 0.1, 0.2):
        for way in run.proxies.all():
            way.delay = lambda mean=round_trip / 2: run.random.uniform(0.8, 1.2) * mean
        seconds = 2 if run.is_short else 6
        goodput = await goodput_of(run, seconds)
        now = time.monotonic()
        drafts.append(run.load.drafts_a_round(now - seconds / 2, now))
        run.notes.append(f"at {round_trip * 1000:.0f} ms goodput {goodput:.0f}, and {drafts[-1]:.2f} drafts a round with K = auto")
    run.notes.append(f"undisturbed {run.load.drafts_a_round(*run.calm):.2f} drafts a round with K = auto, which is a quarter of the "
                     "streams; at each delay in the second half of its time")
    run.at_least("drafts a round with K = auto, at the longest round trip, of those at the shortest",
                 drafts[-1] / max(drafts[0], 1e-9), 1.25)
    for way in run.proxies.all():
        way.delay = None
    run.at_most("sessions that left a verifier as late", await late_moves(run) - moves, 0, "")


async def late_moves(run):
    return await run.cluster.total(run.cluster.coordinators, "session_moves_total", peer="verifier", reason="late")


async def goodput_of(run, seconds):
    begin = time.monotonic()
    await asyncio.sleep(seconds)
    return run.load.goodput(begin, time.monotonic())


async def all_links_are_narrow(run):
    coordinators = run.cluster.coordinators
    before = [one.memory() for one in coordinators]
    grown = 0
    for way in run.proxies.all():
        way.bytes_a_second = 1e6 / 8
    begin = time.monotonic()
    while time.monotonic() < begin + (3 if run.is_short else 15):
        await asyncio.sleep(0.2)
        grown = max(grown, *(one.memory() - old for one, old in zip(coordinators, before)))
    run.notes.append(f"goodput at 1 Mbit/s: {run.load.goodput(begin, time.monotonic()):.0f}")
    check_room(run, grown, run.num_users)
    for way in run.proxies.all():
        way.bytes_a_second = None


async def a_request_is_poison(run):
    """Whatever verifier it comes to dies: killed when the bytes of its tokens reach it."""
    text = run.pick([text for text in run.texts if text.seed is None])
    # A stream of its own, whose prompt nobody else has.
    ids = [run.random.randrange(100, 4000) for _ in range(40)]
    poison = b"".join(one.to_bytes(4, "little") for one in ids)
    dead = []

    def watch(verifier):
        def look(data):
            if poison in data and verifier.is_alive:
                dead.append(verifier)
                run.kill_at_once(verifier)
        return look
    for verifier in run.cluster.verifiers:
        run.proxies.of(verifier).watch = watch(verifier)
    keeper = asyncio.ensure_future(keep_alive(run))
    run.fault("a request that kills its verifiers")
    code = await run.ask(ids, text)
    run.notes.append(f"its client was told {code}")
    again = await run.ask(ids, text)
    run.notes.append(f"who sent it again to the same coordinator was told {again}")
    run.at_most("verifiers that it took, sent twice", len(dead), 2, "")
    for verifier in run.cluster.verifiers:
        run.proxies.of(verifier).watch = None
    keeper.cancel()
    for verifier in run.cluster.verifiers:
        if verifier.program.process.poll() is not None:
            await verifier.is_back()
    await run.cluster.wait_until_complete()
    await run.tells_recovery(" of the others", await recovery_of_the_last(run))


async def keep_alive(run):
    """What a platform does: a program that has died is started again."""
    while True:
        for verifier in run.cluster.verifiers:
            if verifier.program.process.poll() is not None:
                await asyncio.sleep(1)
                await verifier.is_back()
        await asyncio.sleep(0.1)


def lacks_networks():
    """Why networks of their own cannot be had here, if so."""
    if lacking := lacks_tunnels():
        return f"needs {lacking}"
    return None if (BIN / "outrider-tunnel").exists() else "needs outrider-tunnel, which is not built"


async def packets_are_lost(run):
    """Packets are lost from the beginning to the end: what is undisturbed in other rows is not in this one. Hence what 1 % costs is
    seen afterwards, of clusters that differ in nothing else."""
    run.notes.append("verifiers behind losses of 1, 5 and 20 %; so was the undisturbed time, and the plain golden")
    await asyncio.sleep(3 if run.is_short else 20)
    run.ended = time.monotonic()
    await run.load.finish()
    none, some = await goodputs_behind(run, (0, 0.01))
    ratio, error = ratio_of_means(some, none)
    run.at_least(f"goodput at 1 %, of undisturbed, +- {error:.2f} (1 standard error)", ratio, 0.9)


async def goodputs_behind(run, losses):
    """Those of each whole second, with each of these losses before all verifiers: in turns, as a machine varies."""
    clusters = []
    try:
        for number, loss in enumerate(losses, 1):
            clusters.append(await asyncio.to_thread(
                Cluster, losses=[loss] * len(run.cluster.verifiers), network=10 * number))
        goodputs = [[] for _ in losses]
        for _ in range(1 if run.is_short else 3):
            for cluster, found in zip(clusters, goodputs):
                found += await goodputs_of(run, cluster, 3 if run.is_short else 5)
        return goodputs
    finally:
        for cluster in clusters:
            await asyncio.to_thread(cluster.close)


async def goodputs_of(run, cluster, seconds):
    clients = Clients([one.address for one in cluster.coordinators], run.load.clients.goldens)
    load = Load(clients, run.texts, run.random, users=run.num_users, longest=128)
    await asyncio.sleep(1)  # in which the first texts are taken in
    begin = time.monotonic()
    await asyncio.sleep(seconds)
    end = time.monotonic()
    await load.finish()
    await clients.close()
    run.streams_elsewhere += load.streams
    return load.goodputs(begin, end)
