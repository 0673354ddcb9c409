# SPDX-License-Identifier: Apache-2.0
"""A row's faults under load: when they come, and what is found of them."""
from __future__ import annotations

import asyncio
import dataclasses
import math
import re
import time

from cluster import sample
from figures import quiet_moments, recoveries, spread
from load import Stream

LONG_SILENCE = 1  # seconds: a stream that had so long a one was held


@dataclasses.dataclass
class Target:
    what: str
    figure: float
    limit: float
    unit: str
    is_least: bool = False

    @property
    def is_met(self):
        return self.figure >= self.limit if self.is_least else self.figure <= self.limit


class Disturbance:
    """What a row of the matrix is given: the cluster, its load, and a seeded choice of times and victims."""

    def __init__(self, cluster, load, random, scale, calm, proxies, plain_goodput, texts, num_users):
        """`scale`: how the faults are spaced and for how long they come; `calm`: when the load ran undisturbed."""
        self.cluster = cluster
        self.load = load
        self.random = random
        self.proxies = proxies
        self.plain_goodput = plain_goodput
        self.texts = texts
        self.num_users = num_users
        self.longest = scale.longest
        self.is_short = scale.is_short
        self.calm = calm
        self.faults = []  # (time, what)
        self.targets = []
        self.failures = []  # what must not be, whatever the machine
        self.notes = []
        self.excuses = lambda stream: False  # client errors that the row is about
        self.rows_of_the_dead = 0.0
        self.losses = []  # (time, verifier): whose streams have to move
        self.ended = None  # when the faults had, if the row goes on after them
        self.afterwards = []  # functions that check when all streams have ended
        self.streams_elsewhere = []  # of other clusters, which are checked with the load's
        self._scale = scale

    async def schedule(self):
        """Yields when the next fault is due, at least once."""
        end = time.monotonic() + self._scale.seconds
        while True:
            await asyncio.sleep(self.random.uniform(*self._scale.between))
            yield
            if time.monotonic() >= end:
                return

    def pick(self, members):
        return self.random.choice(members)

    async def pause(self, shortest, longest):
        """Seconds; half of them in the smoke."""
        await asyncio.sleep(self.random.uniform(shortest, longest) / (2 if self.is_short else 1))

    def fault(self, what, inject=None):
        """Injects it, if something is to be called; recoveries are counted from here."""
        at = time.monotonic()
        if inject is not None:
            inject()
        self.faults.append((at, what))
        return at

    async def kill(self, member):
        if member.role == "verifier":
            self.rows_of_the_dead += await member.value("pass_rows_sum")
        at = self.fault(f"kill -9 {member.name}", member.kill)
        if member.role == "verifier":
            self.losses.append((at, member))
        return at

    def kill_at_once(self, verifier):
        """Is called from within what carries its bytes: nothing more reaches it."""
        self.rows_of_the_dead += sample(verifier.page(), "pass_rows_sum")
        self.losses.append((time.monotonic(), verifier))
        verifier.program.process.kill()

    async def until(self, condition, patience=60):
        """Seconds until the awaited condition holds; infinite where it does not."""
        begin = time.monotonic()
        while time.monotonic() < begin + patience:
            if await condition():
                return time.monotonic() - begin
            await asyncio.sleep(0.05)
        return math.inf

    def at_most(self, what, figure, limit, unit="s"):
        self.targets.append(Target(what, figure, limit, unit))

    def at_least(self, what, figure, limit, unit=""):
        self.targets.append(Target(what, figure, limit, unit, is_least=True))

    def recoveries(self, among=None):
        """The recoveries of all streams that ran at the time of each fault, or of those faults that some function names."""
        times = [stream.times for stream in self.load.streams]
        return [one for at, what in self.faults if among is None or among(what) for one in recoveries(times, at)]

    async def tells_recovery(self, whose, recovery):
        """Notes the recovery beside what a stream that moved alone would be granted, which those that move at once are not."""
        prefill = await self.own_prefill()
        self.notes.append(f"recovery p99{whose} {recovery:.2f} s; of one that moves alone at most {1 + prefill:.2f} s, of which "
                          f"{prefill:.2f} s of passes for its text")

    def recovery(self, among=None):
        return spread(self.recoveries(among))

    def moves(self):
        """The moves of streams between verifiers, as the coordinators have logged them: (the stream's name, from, to)."""
        line = re.compile(r" moves from verifier (\S+) to (\S+), as .* request_id=(\w+)")
        return [(move[3], move[1], move[2]) for one in self.cluster.coordinators for move in line.finditer(one.log())]

    async def seconds_a_row(self):
        """What a row of a verifier's passes takes, on the average."""
        verifiers = self.cluster.verifiers
        seconds, rows = [await self.cluster.total(verifiers, f"pass_{what}_sum") for what in ("seconds", "rows")]
        return seconds / max(rows, 1)

    async def own_prefill(self):
        """Seconds that a verifier computes to take in one text that ran when a fault came, by itself: p99 of their lengths."""
        lengths = [stream.length_at(at) for at, _ in self.faults for stream in self.load.streams if stream.ran_at(at)]
        return spread(lengths)["p99"] * await self.seconds_a_row()

    def usual_silence(self):
        """What recovery() says of moments of the undisturbed time, but for its beginning."""
        begin, end = self.calm
        times = [stream.times for stream in self.load.streams]
        moments = quiet_moments((begin + end) / 2, end)
        return spread([one for at in moments for one in recoveries(times, at)])

    def goodput_ratio(self):
        return self.load.goodput(self.calm[1], time.monotonic()) / max(self.load.goodput(*self.calm), 1e-9)

    def held(self):
        begin = self.faults[0][0] if self.faults else self.calm[1]
        return sum(any(after - before > LONG_SILENCE and after > begin
                       for before, after in zip(stream.times, stream.times[1:])) for stream in self.load.streams)

    async def ask(self, ids, text):
        """A stream with these tokens for a prompt: the code that it ends with."""
        stream = Stream(text, 64)
        stream.replace_prompt(ids)
        await stream.run(self.load.clients.stubs, 0)
        return stream.error or "OK"

    def join(self, load):
        """Its streams, which have ended, are checked with the others."""
        self.load.streams += load.streams

    def gaps(self, begin, end):
        """The times between two messages of a stream."""
        return [after - before for stream in self.load.streams
                for before, after in zip(stream.times, stream.times[1:]) if begin <= after < end]

    async def no_block_is_owned(self):
        return await self.cluster.blocks() == 0
