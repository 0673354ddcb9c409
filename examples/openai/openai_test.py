#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs both examples against the real programs."""
import json
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "gateway/tests"))

from door import DoorTest  # noqa: E402

PROMPT = "def merge(left, right):\n"


class OpenAiExamplesTest(DoorTest):
    def run_example(self, *words):
        return subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=60)

    def test_complete_py_streams_what_the_cli_gets(self):
        self.gateway()
        run = self.run_example(sys.executable, HERE / "complete.py", "--base-url", f"{self.url}/v1",
                               "--max-tokens", 40, PROMPT)
        self.assertEqual(run.returncode, 0, run.stderr)
        expected = self.spoken("--temperature", "0", "--max-tokens", "40", prompt=PROMPT)
        self.assertEqual(run.stdout.strip("\n"), expected.strip("\n"))
        self.assertRegex(run.stderr, r"\d+ tokens; \d+ drafts accepted, \d+ refused")

    def test_complete_py_says_what_is_wrong(self):
        keys = self.folder / "keys"
        keys.write_text("alice sk-alice\n")
        self.gateway("--api-keys", keys)
        run = self.run_example(sys.executable, HERE / "complete.py", "--base-url", f"{self.url}/v1", PROMPT)
        self.assertEqual(run.returncode, 1)
        self.assertIn("API key is not known", run.stderr)

    def test_complete_sh_gets_a_whole_reply_and_a_stream(self):
        self.gateway()
        run = self.run_example("bash", HERE / "complete.sh", f"{self.url}/v1")
        self.assertEqual(run.returncode, 0, run.stderr)
        whole, _, stream = run.stdout.partition("\n\n")
        text = json.loads(whole)["choices"][0]["text"]
        self.assertTrue(stream.rstrip().endswith("data: [DONE]"))
        events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
        self.assertEqual("".join(event["choices"][0]["text"] for event in events[:-1]), text)


if __name__ == "__main__":
    unittest.main()
