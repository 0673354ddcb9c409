# SPDX-License-Identifier: Apache-2.0
"""What a run is made of, and what came of it."""
import dataclasses
import subprocess
import time
from collections.abc import Callable
from typing import NamedTuple

from gpu_checks.machine import NotRunError


class Step(NamedTuple):
    """A check or a benchmark, and about how many seconds it takes."""
    run: Callable
    seconds: int
    must_run: bool = False  # a check without which nobody may say that all is right


@dataclasses.dataclass
class Result:
    name: str
    must_run: bool = False
    outcome: str = "not run: no time left"
    seconds: float = 0.0
    figures: dict = dataclasses.field(default_factory=dict)

    def is_well(self):
        """Nothing was found wrong, and it was not left out where it had to run."""
        return self.outcome == "passed" or not (self.must_run or self.outcome.startswith("FAILED"))


def run_step(step, machine):
    result = Result(step.run.__name__, step.must_run)
    if step.seconds > machine.seconds_left():
        return result
    start = time.monotonic()
    machine.found = {}
    try:
        result.figures = step.run(machine)
        result.outcome = "passed"
    except NotRunError as reason:
        result.outcome = f"not run: {reason}"
    except subprocess.TimeoutExpired:
        result.outcome = "not run to its end: no time left"
    except (AssertionError, subprocess.SubprocessError, OSError, ValueError, KeyError, TypeError) as error:
        result.outcome = f"FAILED: {error}"
    if result.outcome != "passed":
        result.figures = machine.found
    result.seconds = round(time.monotonic() - start, 1)
    return result
