# SPDX-License-Identifier: Apache-2.0
"""A report says which of its rows are of one run."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from origin import runs_of, this_row, this_run  # noqa: E402


def row(number, run, commit="c1", machine="slow"):
    return {"row": number, "run": run, "time": f"{run}, later", "commit": commit, "machine": machine}


class RunsTest(unittest.TestCase):
    def test_rows_of_one_call_are_one_run(self):
        (run,) = runs_of([row(1, "monday"), row(3, "monday"), row(13, "monday")])
        self.assertEqual((run.number, run.begun, run.machine, run.commits, run.rows), (1, "monday", "slow", ["c1"], [1, 3, 13]))

    def test_a_run_has_all_commits_that_its_rows_have(self):
        (run,) = runs_of([row(1, "monday"), row(2, "monday", "c2"), row(3, "monday")])
        self.assertEqual(run.commits, ["c1", "c2"])

    def test_runs_are_numbered_as_they_began(self):
        runs = runs_of([row(1, "tuesday", machine="fast"), row(2, "monday"), row(3, "tuesday", machine="fast")])
        self.assertEqual([(run.number, run.machine, run.rows) for run in runs], [(1, "slow", [2]), (2, "fast", [1, 3])])

    def test_a_row_that_names_no_run_is_a_run_of_its_own(self):
        old = [{"row": number, "time": f"at {number}", "commit": "c1", "machine": "slow"} for number in (1, 2)]
        self.assertEqual([run.rows for run in runs_of(old)], [[1], [2]])

    def test_a_row_of_now_is_of_a_run(self):
        (run,) = runs_of([{"row": 1, **this_run(), **this_row()}])
        self.assertEqual(run.rows, [1])
        self.assertRegex(run.machine, r"^\d+ cores of .+ million steps")


if __name__ == "__main__":
    unittest.main()
