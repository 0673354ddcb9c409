# SPDX-License-Identifier: Apache-2.0
"""What a run is made of, and what came of it."""
import dataclasses
import subprocess
import time
from collections.abc import Callable
from typing import NamedTuple

from gpu_checks.machine import NotRunError, UnprovenError


class Step(NamedTuple):
    """A check or a benchmark, and about how many seconds it takes."""
    run: Callable
    seconds: int
    must_run: bool = False  # a check that must come to its end, or nobody may say that all is right


@dataclasses.dataclass
class Result:
    name: str
    outcome: str
    seconds: float = 0.0
    figures: dict = dataclasses.field(default_factory=dict)

    def is_well(self):
        """Nothing was found wrong, and no time was lacking where it had to come to its end."""
        return not self.outcome.startswith(("FAILED", "UNPROVEN"))


def run_step(step, machine):
    no_time = "UNPROVEN: no time left" if step.must_run else "not run: no time left"
    result = Result(step.run.__name__, no_time)
    if step.seconds > machine.seconds_left():
        return result
    start = time.monotonic()
    machine.found = {}
    try:
        result.figures = step.run(machine)
        result.outcome = "passed"
    except NotRunError as reason:
        result.outcome = f"not run: {reason}"
    except UnprovenError as reason:
        result.outcome = f"UNPROVEN: {reason}"
    except subprocess.TimeoutExpired:
        result.outcome = "UNPROVEN: no time left for its end" if step.must_run else "not run to its end: no time left"
    except (AssertionError, subprocess.SubprocessError, OSError, ValueError, KeyError, TypeError) as error:
        result.outcome = f"FAILED: {error}"
    if result.outcome != "passed":
        result.figures = machine.found
    result.seconds = round(time.monotonic() - start, 1)
    return result
