# SPDX-License-Identifier: Apache-2.0
"""What was found, for people and for programs."""
from __future__ import annotations

import json
import math
import os
import pathlib
import platform
import subprocess
import time

from matrix import ELSEWHERE, ROWS

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs/measured/chaos"


def summary(found):
    """A few lines for the terminal."""
    lines = [f"row {found.row.number}, {found.row.fault}: {'FAILED' if found.failures else 'ok'}, {found.seconds:.0f} s",
             f"  streams {found.started} started, {found.finished} finished, {found.held} held, {found.resumed} resumed; "
             f"errors {dict(found.errors)}; breaks {dict(found.breaks)}; moves {found.moves}; differences {dict(found.differences)}",
             f"  faults {len(found.faults)}; recovery {_recovery(found)} s; goodput {_goodput(found)} tokens/s; "
             f"prefilled again {found.reprefilled}; acceptance {_acceptance(found)}; orphans {found.orphans:.0f}"]
    lines += [f"  {'met' if target.is_met else 'MISSED'}: {_said(target)}" for target in found.targets]
    lines += [f"  note: {note}" for note in found.notes]
    lines += [f"  FAILURE: {failure}" for failure in found.failures]
    return "\n".join(lines)


def write(results, lacking, seed, scale):
    """docs/measured/chaos: report.md, and report.json with every fault. `lacking`: why rows could not be run."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "report.md").write_text(_page(results, lacking, seed, scale))
    rows = [_plain(found) for found in results]
    (FOLDER / "report.json").write_text(json.dumps({**_origin(), "seed": seed, "rows": rows}, indent=1) + "\n")


def _page(results, lacking, seed, scale):
    origin = _origin()
    lost = sum(sum(found.differences.values()) for found in results)
    lines = [
        "# The fault matrix over real processes", "",
        f"`tests/chaos/run.py --all --seed {seed}`, {origin['time']}, commit {origin['commit']}, {origin['machine']}. Three verifiers, "
        f"two drafters and two coordinators with the demo pair, a thread each, {scale.users} users unless said otherwise, "
        f"streams of 64 to {scale.longest} tokens, greedy and coupled; faults at times and on victims drawn from the seed. "
        "[tests/chaos/README.md](../../../tests/chaos/README.md) says what the words mean.", "",
        f"**{sum(found.started for found in results)} streams, of which {sum(found.held for found in results)} were held for over a "
        f"second and {sum(found.resumed for found in results)} resumed at another coordinator: {lost} tokens lost, doubled, "
        f"reordered, crossed or wrong.** Rows that failed: {[found.row.number for found in results if found.failures] or 'none'}; "
        f"targets missed in rows {[found.row.number for found in results if not all(t.is_met for t in found.targets)] or 'none'}.", "",
        "| # | fault | by | streams: started, finished, held, resumed | client errors | calls that broke | moves | tokens lost, doubled, "
        "reordered, crossed, wrong | recovery p50 / p99 / max, s | goodput, undisturbed, tokens/s | prefilled again | acceptance | "
        "orphan blocks | verdict |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for found in results:
        row = found.row
        lines.append(
            f"| {row.number} | {row.fault} | {row.by} | {found.started}, {found.finished}, {found.held}, {found.resumed} | "
            f"{_counts(found.errors)} | {_counts(found.breaks)} | {_counts(found.moves)} | {_differences(found)} | {_recovery(found)} | "
            f"{_goodput(found)} | {found.reprefilled} | {_acceptance(found)} | {found.orphans:.0f} | "
            f"{'**failed**' if found.failures else 'exact'} |")
    lines += ["", "## Targets", "", "| # | expected | target | found | |", "|---|---|---|---|---|"]
    for found in results:
        lines += [f"| {found.row.number} | {found.row.expected} | {found.row.target} | {_said(target)} | "
                  f"{'met' if target.is_met else '**missed**'} |" for target in found.targets]
    lines += ["", "## Notes", ""]
    lines += [f"- Row {found.row.number}: {'; '.join(found.notes)}." for found in results if found.notes]
    lines += [f"- Row {found.row.number} **failed**: {failure}." for found in results for failure in found.failures]
    lines += ["", "## Not run here", "", "| # | fault | why | what shows it instead |", "|---|---|---|---|"]
    lines += [f"| {row.number} | {row.fault} | {why} | nothing in this run |" for row, why in lacking]
    lines += [f"| {row.number} | {row.fault} | {row.why} | {row.proof} |" for row in ELSEWHERE]
    return "\n".join(lines) + "\n"


def _plain(found):
    row = next(row for row in ROWS if row.number == found.row.number)
    return {"row": row.number, "fault": row.fault, "target": row.target,
            **{name: getattr(found, name) for name in (
                "seed", "started", "finished", "held", "resumed", "recovery", "goodput", "goodput_undisturbed",
                "reprefilled", "acceptance", "orphans", "orphans_gone_after", "moves", "notes", "failures", "seconds")},
            "errors": dict(found.errors), "breaks": dict(found.breaks), "differences": dict(found.differences),
            "faults": [{"at": round(at, 3), "what": what} for at, what in found.faults],
            "targets": [{"what": one.what, "figure": one.figure if math.isfinite(one.figure) else None, "limit": one.limit,
                         "unit": one.unit, "met": one.is_met} for one in found.targets]}


def _origin():
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=FOLDER.parents[1], capture_output=True, text=True,
                            check=False).stdout.strip() or "unknown"
    cpu = next((line.partition(":")[2].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                if line.startswith("model name")), platform.machine())
    return {"time": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "commit": commit,
            "machine": f"{os.cpu_count()} cores of {cpu}, load {os.getloadavg()[0]:.1f}"}


def _said(target):
    return (f"{target.what}: {target.figure:.3g} {target.unit}".rstrip()
            + f", {'at least' if target.is_least else 'at most'} {target.limit:.3g}")


def _recovery(found):
    return " / ".join(f"{value:.2f}" for value in found.recovery.values()) if found.faults else "-"


def _goodput(found):
    return f"{found.goodput:.0f} of {found.goodput_undisturbed:.0f}"


def _acceptance(found):
    return " -> ".join("-" if value is None else f"{value:.0%}" for value in found.acceptance)


def _counts(counter):
    return ", ".join(f"{count} {name}" for name, count in counter.items()) or "0"


def _differences(found):
    return _counts(found.differences)
