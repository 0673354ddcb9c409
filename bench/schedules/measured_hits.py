#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sweep over schedules, with calibrated nodes whose drafter guesses as often right as the demo pair's does.

    bench/schedules/measured_hits.py                            half a minute: measures, and says the sweep's command
    bench/schedules/measured_hits.py --out results-schedules    about six minutes; further flags go to the sweep

The demo pair drafts ahead, greedily, with its verifier 5 ms away, which leaves the drafter time for all its
guesses. Of the rounds after one that refused a draft, the share that had their drafts ready is the sweep's
--simulate-outcome-hit; after rounds that all stood it follows from the acceptance. Needs the release build and
nothing but Python's standard library.
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
K = 4
SWEEP = ("--simulate", "--simulate-verify-ms", "25", "--simulate-row-ms", "0.25", "--simulate-draft-ms", "3",
         "--simulate-acceptance", "0.8", "--schedule", "sequential,predraft,auto", "--rtt", "0.5,20,50",
         "-k", "4,6,8", "--concurrency", "1", "--max-tokens", "256", "--seconds", "6")


def measure(outrider, seconds):
    """What became of the demo pair's drafts ahead: the counts of its one cell that drafts."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([outrider, "bench", "run", "--schedule", "predraft", "-k", str(K), "--rtt", "5",
                        "--drafter-rtt", "0", "--max-tokens", "128", "--seconds", str(seconds), "--out", folder],
                       check=True, stdout=subprocess.DEVNULL)
        lines = (pathlib.Path(folder) / "results.jsonl").read_text("utf-8").splitlines()
    counts, = (row["counts"] for row in map(json.loads, lines) if row["k"] == K)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--outrider", default=ROOT / "build/release/bin/outrider", help="the program that measures")
    parser.add_argument("--out", help="the sweep's folder; without it nothing is swept")
    parser.add_argument("--demo-seconds", type=float, default=10, help="of requests to the demo pair")
    options, further = parser.parse_known_args()
    counts = measure(options.outrider, options.demo_seconds)
    num_asked = counts["ahead_hits"] + counts["ahead_misses"]
    share = counts["ahead_hits_after_refusal"] / counts["ahead_after_refusal"]
    print(f"demo pair, K = {K}, greedy: {counts['ahead_hits'] / num_asked:.0%} of {num_asked} rounds hit, "
          f"after a refusal {share:.0%} of {counts['ahead_after_refusal']}")
    sweep = [str(options.outrider), "bench", "sweep", *SWEEP, "--simulate-outcome-hit", f"{share:.2f}",
             "--out", options.out or "results-schedules", *further]
    print(shlex.join(sweep), flush=True)
    return subprocess.run(sweep, check=False).returncode if options.out else 0


if __name__ == "__main__":
    sys.exit(main())
