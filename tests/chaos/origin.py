# SPDX-License-Identifier: Apache-2.0
"""Where a row of the report comes from: which run of run.py, of which programs, on which machine."""
from __future__ import annotations

import dataclasses
import os
import pathlib
import platform
import subprocess
import time

STEPS = 1_000_000


def this_run():
    """The origin of all rows of one call."""
    speed = f"{_speed():.0f} million steps of a Python loop a second"
    return {"run": _now(), "machine": f"{os.cpu_count()} cores of {_processor()}, {speed}"}


def this_row():
    """The origin of a row that begins now: the programs may be others when the last one ends."""
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=pathlib.Path(__file__).parent, capture_output=True,
                            text=True, check=False).stdout.strip() or "unknown"
    return {"time": _now(), "commit": commit}


@dataclasses.dataclass
class Run:
    number: int
    begun: str
    machine: str
    commits: list = dataclasses.field(default_factory=list)
    rows: list = dataclasses.field(default_factory=list)


def runs_of(rows):
    """Those that these rows of a report are of, in the order in which they began. Rows of before runs were named are one
    each."""
    runs = {}
    for one in sorted(rows, key=lambda one: one.get("run", one["time"])):
        begun = one.get("run", one["time"])
        run = runs.setdefault((begun, one["machine"]), Run(len(runs) + 1, begun, one["machine"]))
        run.rows.append(one["row"])
        if one["commit"] not in run.commits:
            run.commits.append(one["commit"])
    return list(runs.values())


def _now():
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())


def _processor():
    """Machines that call themselves alike may differ in family and model."""
    said = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        said.setdefault(key.strip(), value.strip())
    if "model name" not in said:
        return platform.machine()
    return f"{said['model name']} (family {said.get('cpu family', '?')}, model {said.get('model', '?')})"


def _speed():
    """The speed of one core, the best of some trials, as others may run beside it."""
    def seconds():
        begin = time.perf_counter()
        for _ in range(STEPS):
            pass
        return time.perf_counter() - begin
    return STEPS / min(seconds() for _ in range(5)) / 1e6
