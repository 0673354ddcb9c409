#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs both examples against the real programs, and checks their sampling against its law."""
import contextlib
import io
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import unittest
from unittest import mock

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))

import speculate  # noqa: E402
from programs import DRAFT, ProgramTest  # noqa: E402

PROMPT = "def merge(left, right):\n"


def example(name, *words):
    return subprocess.run([sys.executable, pathlib.Path(__file__).with_name(name), *map(str, words)],
                          capture_output=True, text=True, timeout=60, check=False)


class FlagsTest(unittest.TestCase):
    def test_a_value_that_cannot_be_is_a_line_and_no_traceback(self):
        for name, words, says in (
                ("generate.py", ("--k", -1, "text"),
                 "--k: needs auto or a whole number from 0 to 4294967295, not '-1'"),
                ("generate.py", ("--k", "foo", "text"), "--k: needs auto or a whole number"),
                ("generate.py", ("--seed", -1, "text"), "--seed: needs a whole number from 0 to"),
                ("generate.py", ("--max-tokens", 2**32, "text"), "--max-tokens: needs a whole number from 1 to"),
                ("speculate.py", ("--prompt", ""), "--prompt: needs token ids"),
                ("speculate.py", ("--prompt", "5 a"), "--prompt: needs a whole number from 0 to 2147483647, not 'a'"),
                ("speculate.py", ("--prompt", "5", "--k", -1), "--k: needs a whole number from 0")):
            run = example(name, *words)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(says, run.stderr)
            self.assertNotIn("Traceback", run.stderr)


class ExamplesTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.verifier, self.drafter = self.start_verifier(), self.start_drafter()
        self.coordinator = self.start_coordinator(self.verifier.address(), self.drafter.address())
        self.wait_for_nodes(self.coordinator.address(), "verifier", "drafter")

    def example(self, name, *words, status=0):
        run = example(name, *words)
        self.assertEqual(run.returncode, status, run.stderr)
        return run

    def by_the_cli(self, *words):
        program = self.generate(self.coordinator.address(), "--json", "--temperature", "0",
                                "--ignore-eos", *words)
        self.assertEqual(program.wait(), 0, program.err())
        return json.loads(program.out())

    def test_generate_streams_what_the_cli_gets(self):
        run = self.example("generate.py", "--coordinator", self.coordinator.address(),
                           "--temperature", 0, "--max-tokens", 40, PROMPT)
        self.assertEqual(run.stdout, self.by_the_cli("--max-tokens", "40", PROMPT)["text"])
        self.assertIn("40 tokens, FINISH_REASON_LENGTH", run.stderr)

    def test_a_cancelled_stream_is_resumed_without_a_seam(self):
        for flags in (["--temperature", 0], ["--temperature", 1, "--seed", 11, "--k", 0]):
            flags = ["--coordinator", self.coordinator.address(), "--max-tokens", 40, *flags]
            whole = self.example("generate.py", *flags, PROMPT)
            parts = self.example("generate.py", *flags, "--cancel-after", 13, PROMPT)
            self.assertIn("cancelled after 13 tokens", parts.stderr)
            self.assertEqual(parts.stdout, whole.stdout)

    def test_request_id_and_trace_are_in_the_logs_of_all_three(self):
        run = self.example("generate.py", "--coordinator", self.coordinator.address(),
                           "--max-tokens", 8, PROMPT)
        request, trace = re.search(r"request (example-\w+), trace 00-(\w+)-(\w+)-01", run.stderr).group(1, 2)
        log = self.coordinator.err()
        self.assertRegex(log, rf"done: 8 tokens.*request_id={request} trace_id={trace}")
        span = re.search(rf"trace_id={trace} span_id=(\w+)", log)[1]
        for node in (self.drafter, self.verifier):
            self.assertRegex(node.err(),
                             rf"session opened request_id={request} trace_id={trace} parent_span_id={span} session=")

    def test_speculating_by_hand_is_greedy_decoding_at_temperature_0(self):
        expected = self.by_the_cli("--max-tokens", "30", "--prompt-tokens", "5 6 7 8")
        for k in (0, 1, 4):
            run = self.example("speculate.py", "--drafter", self.drafter.address(), "--verifier",
                               self.verifier.address(), "--prompt", "5 6 7 8", "--temperature", 0,
                               "--max-tokens", 30, "--k", k)
            self.assertEqual([int(word) for word in run.stdout.split()],
                             expected["token_ids"], f"k={k}")
            self.assertRegex(run.stderr, r"^0 of 0 drafts" if k == 0 else r"^[1-9]\d* of \d+ drafts")

    def test_speculating_by_hand_samples_too(self):
        run = self.example("speculate.py", "--drafter", self.drafter.address(), "--verifier",
                           self.verifier.address(), "--prompt", "5 6 7 8", "--max-tokens", 20)
        self.assertEqual(len(run.stdout.split()), 20)
        self.assertRegex(run.stderr, r"[1-9]\d* of \d+ drafts accepted")

    def test_who_is_not_there_is_a_line_and_no_traceback(self):
        run = self.example("speculate.py", "--drafter", "127.0.0.1:1", "--prompt", "5", "--timeout", 2, status=1)
        self.assertIn("speculate.py: UNAVAILABLE", run.stderr)
        self.assertNotIn("Traceback", run.stderr)


class ReleaseTest(unittest.TestCase):
    def test_tokens_are_printed_whether_or_not_the_caches_are_given_back(self):
        class Scripted(speculate.Speculator):
            def round(self, *_):
                return [5, 6]

            def release(self):
                raise grpc.RpcError

        out, err = io.StringIO(), io.StringIO()
        words = ["speculate.py", "--prompt", "1", "--max-tokens", "2"]
        with mock.patch.object(speculate, "Speculator", Scripted), mock.patch("sys.argv", words), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            speculate.main()
        self.assertEqual((out.getvalue(), err.getvalue()), ("5 6\n", "0 of 0 drafts accepted\n"))


class LawTest(unittest.TestCase):
    """The law of a round's first token is p, whatever q is."""

    def test_acceptance_and_residual_add_up_to_p(self):
        coin = random.Random(7)
        for _ in range(50):
            p = speculate.softmax([coin.gauss(0, 2) for _ in range(6)], 1)
            some = {token: coin.random() for token in coin.sample(range(6), 4)}
            q = {token: weight / sum(some.values()) for token, weight in some.items()}
            law = [0.0] * 6
            for x, probability in q.items():
                accept = speculate.acceptance_probability(p, q, x)
                law[x] += probability * accept
                for y, rest in enumerate(speculate.residual(p, q)):
                    law[y] += probability * (1 - accept) * rest
            for got, wanted in zip(law, p):
                self.assertAlmostEqual(got, wanted, places=12)

    def test_judge_draws_from_that_law(self):
        p, q = [0.5, 0.2, 0.3], {0: 0.1, 1: 0.9}
        coin = random.Random(3)
        count = [0, 0, 0]
        n = 20000
        for _ in range(n):
            draft = coin.choices(list(q), weights=list(q.values()))
            count[speculate.judge(draft, [q], [p, p], coin)[0]] += 1
        chi_square = sum((got - n * wanted) ** 2 / (n * wanted) for got, wanted in zip(count, p))
        self.assertLess(chi_square, 18.4)  # 2 degrees of freedom, 1e-4


if __name__ == "__main__":
    assert os.environ["OUTRIDER_BIN_DIR"] and DRAFT.is_dir()
    unittest.main()
