# SPDX-License-Identifier: Apache-2.0
"""What was found, for people and for programs."""
from __future__ import annotations

import json
import math
import pathlib

from matrix import PROVED, ROWS, ProvedRow
from origin import runs_of

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs/measured/chaos"


def summary(found):
    """A few lines for the terminal."""
    if isinstance(found.row, ProvedRow):
        return _summary_of_proof(found)
    lines = [f"row {found.row.number}, {found.row.fault}: {'FAILED' if found.failures else 'ok'}, {found.seconds:.0f} s",
             f"  {found.users} users; streams {found.started} started, {found.finished} finished, {found.held} held, "
             f"{found.resumed} resumed; errors {dict(found.errors)}; breaks {dict(found.breaks)}; moves {found.moves}; "
             f"differences {dict(found.differences)}",
             f"  faults {len(found.faults)}; recovery {_recovery(found.faults, found.recovery)} s; "
             f"goodput {found.goodput:.0f} of {found.goodput_undisturbed:.0f} tokens/s; "
             f"prefilled again {found.reprefilled}; acceptance {_acceptance(found.acceptance)}; orphans {found.orphans:.0f}"]
    lines += [f"  {'met' if target.is_met else 'MISSED'}: {_said(target)}" for target in found.targets]
    lines += [f"  note: {note}" for note in found.notes]
    lines += [f"  FAILURE: {failure}" for failure in found.failures]
    return "\n".join(lines)


def _summary_of_proof(proof):
    lines = [f"row {proof.row.number}, {proof.row.fault}: {'FAILED' if proof.failures else 'ok'}, {proof.seconds:.0f} s",
             f"  {proof.num_tests} tests of {', '.join(proof.suites) or 'nothing'}: {proof.row.proof}"]
    return "\n".join(lines + [f"  FAILURE: {failure}" for failure in proof.failures])


def write(results, lacking):
    """docs/measured/chaos: report.json, and the page made of it. Rows that are not among these stay as they were.
    `lacking`: rows that could not be run, and why."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "report.json"
    old = json.loads(path.read_text()) if path.exists() else {}
    found = {one["row"]: one for kind in ("rows", "proofs") for one in old.get(kind, [])}
    found |= {one.row.number: _plain_proof(one) if isinstance(one.row, ProvedRow) else _plain(one) for one in results}
    rows, proofs = ([found[number] for number in sorted(row.number for row in some) if number in found]
                    for some in (ROWS, PROVED))
    path.write_text(json.dumps({"rows": rows, "proofs": proofs}, indent=1) + "\n")
    if rows:
        (FOLDER / "report.md").write_text(_page(rows, proofs, lacking))


def _page(rows, proofs, lacking):
    def those(condition):
        return ", ".join(str(one["row"]) for one in rows if condition(one)) or "none"

    def total(name):
        return sum(one[name] for one in rows)
    wrong = sum(sum(one["differences"].values()) for one in rows)
    runs = runs_of((*rows, *proofs))
    number_of = {row: run.number for run in runs for row in run.rows}
    lines = [
        "# The fault matrix over real processes", "",
        "`tests/chaos/run.py`: three verifiers, two drafters and two coordinators with the demo pair, a thread each, unless a "
        "row says otherwise; streams of 64 to 512 tokens, greedy and coupled, as many at a time as a row has users; faults at "
        "times and on victims drawn from a seed. [tests/chaos/README.md](../../../tests/chaos/README.md) says what the words "
        "mean. The load beside a row is the machine's when it ended, of these programs (about 8) and of whatever else ran: "
        "where it is more, times are upper bounds.", "",
        *_said_of(runs),
        f"**{total('started')} streams, of which {total('held')} were held for over a second and {total('resumed')} resumed at "
        f"another coordinator: {wrong} tokens lost, doubled, reordered, crossed or wrong.** Rows that failed: "
        f"{those(lambda one: one['failures'])}; rows with a target missed: "
        f"{those(lambda one: not all(target['met'] for target in one['targets']))}. "
        f"Rows that tests prove: {sum(not one['failures'] for one in proofs)} of {len(PROVED)} proved.", "",
        "| # | fault | by | users | streams: started, finished, held, resumed | client errors | calls that broke | moves | tokens lost, "
        "doubled, reordered, crossed, wrong | recovery p50 / p99 / max, s | goodput, undisturbed, tokens/s | prefilled again | "
        "acceptance | orphan blocks | run, commit, seed, load | |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for one in rows:
        streams = ", ".join(str(one[name]) for name in ("started", "finished", "held", "resumed"))
        goodput = f"{one['goodput']:.0f} of {one['goodput_undisturbed']:.0f}"
        lines.append(
            f"| {one['row']} | {one['fault']} | {one['by']} | {one['users']} | {streams} | {_counts(one['errors'])} | {_counts(one['breaks'])} | "
            f"{_counts(one['moves'])} | {_counts(one['differences'])} | {_recovery(one['faults'], one['recovery'])} | {goodput} | "
            f"{one['reprefilled']} | {_acceptance(one['acceptance'])} | {one['orphans']:.0f} | {number_of[one['row']]}, {one['commit']}, "
            f"{one['seed']}, {one['load']} | {'**failed**' if one['failures'] else 'exact'} |")
    lines += ["", "## Targets", "", "| # | expected | target | found | |", "|---|---|---|---|---|"]
    lines += [f"| {one['row']} | {one['expected']} | {one['target']} | {target['said']} | "
              f"{'met' if target['met'] else '**missed**'} |" for one in rows for target in one["targets"]]
    lines += ["", "## Notes", ""]
    lines += [f"- Row {one['row']}: {'; '.join(one['notes'])}." for one in rows if one["notes"]]
    lines += [f"- Row {one['row']}: not covered: {one['not_covered']}." for one in proofs if one.get("not_covered")]
    lines += [f"- Row {one['row']} **failed**: {failure}." for one in rows for failure in one["failures"]]
    lines += ["", "## Proved by tests, which this command runs", "",
              "| # | fault | why no process is disturbed | what the tests show | tests | run, commit | |",
              "|---|---|---|---|---|---|---|"]
    lines += [f"| {one['row']} | {one['fault']} | {one['why']} | {one['proof']} | {one['num_tests']} of "
              f"{', '.join(f'`{suite}`' for suite in one['suites']) or 'nothing'} | {number_of[one['row']]}, {one['commit']} | "
              f"{'**failed**: ' + '; '.join(one['failures']) if one['failures'] else 'passed'} |" for one in proofs]
    if lacking:
        lines += ["", "## Not run here", "", "| # | fault | why |", "|---|---|---|"]
        lines += [f"| {row.number} | {row.fault} | {why} |" for row, why in lacking]
    return "\n".join(lines) + "\n"


def _said_of(runs):
    """Whether rows may be compared with each other."""
    if len(runs) == 1:
        return [f"All rows are of one run, begun {runs[0].begun}, on {runs[0].machine}.", ""]
    return [f"**These rows are of {len(runs)} runs**, each of which has put in its rows and left the others as they were. Times "
            "and goodput of two runs are not to be compared: the machine may be another, and so may the programs.", "",
            "| run | begun | machine | commits | rows |", "|---|---|---|---|---|",
            *(f"| {run.number} | {run.begun} | {run.machine} | {', '.join(run.commits)} | {', '.join(map(str, run.rows))} |"
              for run in runs), ""]


def _plain_proof(proof):
    row = proof.row
    return {"row": row.number, "fault": row.fault, "why": row.why, "proof": row.proof, "not_covered": row.not_covered,
            **proof.origin, "tests": row.tests,
            **{name: getattr(proof, name) for name in ("num_tests", "suites", "failures", "seconds")}}


def _plain(found):
    row = found.row
    return {"row": row.number, "fault": row.fault, "by": row.by, "expected": row.expected, "target": row.target, **found.origin,
            **{name: getattr(found, name) for name in (
                "users", "seed", "started", "finished", "held", "resumed", "recovery", "goodput", "goodput_undisturbed",
                "reprefilled", "acceptance", "orphans", "orphans_gone_after", "moves", "notes", "failures", "seconds")},
            "errors": dict(found.errors), "breaks": dict(found.breaks), "differences": dict(found.differences),
            "faults": [{"at": round(at, 3), "what": what} for at, what in found.faults],
            "targets": [{"said": _said(one), "figure": one.figure if math.isfinite(one.figure) else None, "limit": one.limit,
                         "met": one.is_met} for one in found.targets]}


def _said(target):
    return (f"{target.what}: {target.figure:.3g} {target.unit}".rstrip()
            + f", {'at least' if target.is_least else 'at most'} {target.limit:.3g}")


def _recovery(faults, recovery):
    return " / ".join(f"{value:.2f}" for value in recovery.values()) if faults else "-"


def _acceptance(acceptance):
    return " -> ".join("-" if value is None else f"{value:.0%}" for value in acceptance)


def _counts(counter):
    return ", ".join(f"{count} {name}" for name, count in counter.items()) or "0"
