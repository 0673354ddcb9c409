# SPDX-License-Identifier: Apache-2.0
"""Streams that move at once, away from a verifier: texts that are taken in again have a quarter of the others' time."""
from __future__ import annotations

import dataclasses

from figures import recoveries

SHARE = 0.25  # of a verifier's time, for texts that are taken in again


@dataclasses.dataclass
class Moved:
    """What moved at one loss: how soon each stream was back, and the passes that its text takes by itself, in seconds."""
    streams: list

    @property
    def beyond_its_own(self):
        """How much longer than its own passes the first was away."""
        first, own = min(self.streams)
        return first - own

    @property
    def last(self):
        return max(self.streams)[0]

    @property
    def together(self):
        return sum(own for _, own in self.streams)

    @property
    def limit(self):
        """What the last one is granted: all texts in that share, or what the only one is granted."""
        return max(1 + max(self.streams)[1], self.together / SHARE)


def moved_at(at, names, streams, seconds_a_row):
    """Those of these names that ran at that time and went on."""
    return Moved([(back, stream.length_at(at) * seconds_a_row) for stream in streams
                  if stream.name in names and stream.ran_at(at) for back in recoveries([stream.times], at)])


async def check(run, rows_again):
    """The first is back at once, the last when all are taken in: of the loss after which that took longest.

    `rows_again`: that verifiers computed for texts which they or others had before."""
    seconds_a_row = await run.seconds_a_row()
    moves = run.moves()
    found = [moved_at(at, {name for name, left, _ in moves if left == run.cluster.ways[verifier]}, run.load.streams,
                      seconds_a_row) for at, verifier in run.losses]
    found = [moved for moved in found if moved.streams]
    if not found:
        # Nothing is logged where disks are full: by all losses together.
        again = rows_again * seconds_a_row / max(len(run.losses), 1)
        run.at_most(f"the last stream is back, after 1 s and {again:.2f} s of passes / {SHARE}", run.recovery()["max"],
                    1 + again / SHARE)
        return
    run.notes.append(f"streams that moved at once: {', '.join(str(len(moved.streams)) for moved in found)}")
    run.at_most("the first of those that move is back, beyond its own passes", max(moved.beyond_its_own for moved in found), 1)
    worst = max(found, key=lambda moved: moved.last / moved.limit)
    run.at_most(f"the last of {len(worst.streams)} that move at once is back, after {worst.together:.2f} s of passes / {SHARE}",
                worst.last, worst.limit)
