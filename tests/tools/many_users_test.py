# SPDX-License-Identifier: Apache-2.0
"""What bench/users makes of `outrider bench`'s exit status: requests that failed are figures, all else is an error."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/users"))
import deployment  # noqa: E402

# The folder of the results is its fourth word.
BENCH = """#!/bin/sh
echo '{"k": 4}' > "$4/results.jsonl"
echo "$MESSAGE" >&2
"""


class BenchTest(unittest.TestCase):
    def bench(self, message, status):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "outrider"
            program.write_text(BENCH.replace("$MESSAGE", message) + f"exit {status}\n", "utf-8")
            program.chmod(0o755)
            return deployment.bench(pathlib.Path(folder), "run")

    def test_requests_that_failed_are_no_error(self):
        self.assertEqual(self.bench("", 0), [{"k": 4}])
        self.assertEqual(self.bench("outrider: 3 requests failed", 1), [{"k": 4}])

    def test_whatever_else_went_wrong_is_one(self):
        for message, status in [("outrider: outrider-verifier ended with status 137", 1), ("bad flags", 2)]:
            with self.assertRaisesRegex(AssertionError, message):
                self.bench(message, status)


if __name__ == "__main__":
    unittest.main()
