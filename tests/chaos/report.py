# SPDX-License-Identifier: Apache-2.0
"""What was found, for people and for programs."""
from __future__ import annotations


def summary(found):
    """A few lines."""
    lines = [f"row {found.row.number}, {found.row.fault}: {'FAILED' if found.failures else 'ok'}, {found.seconds:.0f} s",
             f"  streams {found.started} started, {found.finished} finished, {found.held} held, {found.resumed} resumed; "
             f"errors {dict(found.errors)}; breaks {dict(found.breaks)}; moves {found.moves}; differences {dict(found.differences)}",
             f"  faults {len(found.faults)}; recovery " + ", ".join(f"{k} {v:.2f} s" for k, v in found.recovery.items())
             + f"; goodput {found.goodput:.0f} of {found.goodput_undisturbed:.0f} tokens/s; "
             f"prefilled again {found.reprefilled}; acceptance {_acceptance(found)}; "
             f"orphans {found.orphans:.0f}, gone after {found.orphans_gone_after:.1f} s"]
    lines += [f"  {'met' if target.is_met else 'MISSED'}: {target.what} {target.figure:.3g} {target.unit}, "
              f"{'at least' if target.is_least else 'at most'} {target.limit:.3g}" for target in found.targets]
    lines += [f"  note: {note}" for note in found.notes]
    lines += [f"  FAILURE: {failure}" for failure in found.failures]
    return "\n".join(lines)


def _acceptance(found):
    return " -> ".join("-" if value is None else f"{value:.0%}" for value in found.acceptance)
