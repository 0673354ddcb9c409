# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a stream, token for token, beside what it has to be."""
from __future__ import annotations

import collections

# So many tokens in a row tell where a stream goes on; and so far off it is looked for.
WINDOW = 6
REACH = 64
KINDS = ("lost", "doubled", "reordered", "crossed", "wrong")


def differences(tokens, golden, others=()):
    """How many tokens of a stream that has ended are lost, doubled, reordered, crossed (another
    stream's) or wrong (nobody's). Empty where the stream is right."""
    found = collections.Counter()
    here, there = 0, 0  # in the stream, in the golden
    while here < len(tokens):
        if there < len(golden) and tokens[here] == golden[there]:
            here, there = here + 1, there + 1
            continue
        kind, count, there_again = _explain(tokens, here, golden, there, others)
        found[kind] += count
        if kind in ("crossed", "wrong"):
            return found  # nothing that follows can be told
        here, there = here + (count if kind == "reordered" else 0), there_again
    found["lost"] += max(0, len(golden) - there)
    return +found


def _explain(tokens, here, golden, there, others):
    """(kind, tokens, where the golden goes on)."""
    rest = tuple(tokens[here:here + WINDOW])
    for count in range(1, REACH):
        if tuple(golden[there + count:there + count + len(rest)]) == rest:
            return "lost", count, there + count
        if there >= count and tuple(golden[there - count:there - count + len(rest)]) == rest:
            return "doubled", count, there - count
    for count in range(2, WINDOW):
        if (sorted(tokens[here:here + count]) == sorted(golden[there:there + count])
                and tokens[here + count:here + count + 1] == golden[there + count:there + count + 1]):
            return "reordered", count, there + count
    for other in others:
        if tuple(other[there:there + len(rest)]) == rest:
            return "crossed", len(tokens) - here, there
    return "wrong", len(tokens) - here, there
