# SPDX-License-Identifier: Apache-2.0
"""What is made of the times at which tokens came."""
from __future__ import annotations

import itertools
import math
import statistics

# What was on its way when a fault came arrives within it.
ON_ITS_WAY = 0.3


def percentile(sample, share):
    """The smallest value that this share of the sample does not exceed; 0 of none."""
    ordered = sorted(sample)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0


def recoveries(streams, at):
    """How long a fault kept each stream silent that ran at the time of it. `streams`
    are the times at which each one's messages came."""
    found = []
    for times in streams:
        silences = [after - max(before, at) for before, after in itertools.pairwise(times)
                    if after > at and before < at + ON_ITS_WAY]
        if times and times[0] < at and silences:
            found.append(round(max(silences), 6))
    return found


def quiet_moments(begin, end, step=0.1):
    """Times at which a fault could have come, whose silences are over by `end` as far as can be told."""
    count = max(1, math.ceil((end - ON_ITS_WAY - begin) / step))
    return [begin + step * i for i in range(count)]


def ratio_of_means(sample, other):
    """The ratio and its standard error, of samples that are independent; 0 where they are too few to tell."""
    means = [statistics.fmean(values) if values else 0 for values in (sample, other)]
    if 0 in means:
        return 0, 0
    if min(len(sample), len(other)) < 2:
        return means[0] / means[1], 0
    squares = [statistics.variance(values) / len(values) / mean ** 2 for values, mean in zip((sample, other), means)]
    ratio = means[0] / means[1]
    return ratio, ratio * math.sqrt(sum(squares))


def spread(sample):
    return {"p50": percentile(sample, 0.5), "p99": percentile(sample, 0.99), "max": max(sample, default=0)}
