#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks a cluster of real processes under load, and checks each stream token for token.

  run.py --smoke           the rows that matter most, in about a minute
  run.py --row 3 [--seed N]
  run.py --all             all rows; writes docs/measured/chaos

Exit status 1 where a token is lost, doubled, reordered, crossed or wrong, where a client
saw an error, blocks stay owned, threads or descriptors have grown, or a test that proves a
row fails or is not built. Times and goodput are reported beside their targets, and decide
nothing.
"""
from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import pathlib
import secrets
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import report  # noqa: E402
from experiment import FULL, SHORT, run_row  # noqa: E402
from matrix import PROVED, ROWS, ProvedRow  # noqa: E402
from origin import this_row, this_run  # noqa: E402
from proofs import prove  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--smoke", action="store_true")
    what.add_argument("--all", action="store_true")
    what.add_argument("--row", type=int, action="append", choices=sorted(row.number for row in (*ROWS, *PROVED)))
    parser.add_argument("--seed", type=int, help="of the schedule; default: a new one, which is printed")
    parser.add_argument("--short", action="store_true", help="rows as the smoke has them")
    parser.add_argument("--report", action="store_true", help="puts these rows into docs/measured/chaos, as --all does")
    parser.add_argument("--users", type=int, help="streams at a time, whatever a row has")
    flags = parser.parse_args()
    seed = flags.seed if flags.seed is not None else secrets.randbits(32)
    rows = [row for row in (*ROWS, *PROVED)
            if flags.all or (flags.smoke and row.is_smoke) or row.number in (flags.row or ())]
    print(f"seed {seed}", flush=True)
    scale = SHORT if flags.smoke or flags.short else FULL
    if flags.users:
        scale = dataclasses.replace(scale, users=flags.users)
    sys.exit(any(one.failures for one in asyncio.run(run_all(rows, seed, scale, flags.all or flags.report))))


async def run_all(rows, seed, scale, reports):
    """What was found of each row. `reports`: each is put into docs/measured/chaos as soon as it has ended, with
    the rows that this machine cannot have, and the reason."""
    goldens = {}
    found, lacking = [], []
    this = this_run() if reports else {}
    for row in sorted(rows, key=lambda row: row.number):
        if reason := row.lacks():
            print(f"row {row.number}, {row.fault}: NOT RUN HERE: {reason}", flush=True)
            lacking.append((row, reason))
            continue
        origin = this | this_row()
        found.append(prove(row) if isinstance(row, ProvedRow) else await run_row(row, seed, scale, goldens))
        found[-1].origin = origin | {"load": round(os.getloadavg()[0], 1)}
        print(report.summary(found[-1]), flush=True)
        if reports:
            report.write(found[-1:], lacking)
    return found


if __name__ == "__main__":
    main()
