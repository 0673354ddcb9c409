# SPDX-License-Identifier: Apache-2.0
"""What tools/gpu_check makes of a run's figures: ratios, goals that were missed, and what is no check of a device."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from gpu_checks import benchmarks, checks  # noqa: E402
from gpu_checks.machine import Machine, NotRunError  # noqa: E402
from gpu_checks.steps import Step, run_step  # noqa: E402


def figures(nodes=()):
    """Of a run: a pass takes 10 ms and half a millisecond more for each row beyond the first, a draft step 1 ms."""
    cells = [{"k": k, "sessions": sessions, "tokens_per_second": 90.0 + 30 * k * sessions, "round_ms": 20.0}
             for k in (0, 4) for sessions in (1, 8, 64)]
    return {"weight_bytes": 16e9, "target": {"rows_ms": [10 + i / 2 for i in range(9)], "plain_tokens_per_second": 100.0},
            "draft": {"draft_step_ms": 1.0}, "cells": cells, "nodes": list(nodes),
            "assisted": {"assisted_tokens_per_second": 42.0}}


def gpu_line(late):
    return f"verifier m on a GPU: 3.0 MiB taken, 0.5 MiB of it by KV blocks; 252 graphs ({late} captured late), launched 50 times"


class RatiosTest(unittest.TestCase):
    def test_each_is_of_two_figures_of_the_run(self):
        ratios = benchmarks.ratios(figures(), probe_rate=2e12)
        self.assertEqual(ratios["t5_over_t1"], 1.2)
        self.assertEqual(ratios["step_over_pass"], 0.1)
        self.assertEqual(ratios["cycle_efficiency"], (4 + 12) / 20)
        self.assertEqual(ratios["share_of_probe"], 0.8)
        self.assertEqual(ratios["over_plain_k4_8"], 10.5)
        self.assertEqual(ratios["over_assisted"], 5)
        self.assertNotIn("late_graphs", ratios)  # no node has a GPU

    def test_without_a_probe_there_is_no_share_of_it(self):
        self.assertNotIn("share_of_probe", benchmarks.ratios(figures(), probe_rate=None))

    def test_of_a_run_that_has_not_come_to_its_end_are_those_that_it_has(self):
        begun = {name: figures()[name] for name in ("weight_bytes", "target", "draft")}
        ratios = benchmarks.ratios(begun, probe_rate=2e12)
        self.assertEqual((ratios["t5_over_t1"], ratios["share_of_probe"]), (1.2, 0.8))
        self.assertNotIn("cycle_efficiency", ratios)

    def test_late_graphs_of_both_nodes_are_added(self):
        self.assertEqual(benchmarks.ratios(figures([gpu_line(3), gpu_line(4)]), None)["late_graphs"], 7)


class GoalsTest(unittest.TestCase):
    def test_what_is_missed_is_said(self):
        ratios = benchmarks.ratios(figures([gpu_line(1), gpu_line(0)]), probe_rate=2e12)
        self.assertEqual(benchmarks.missed_goals("llama-3.1-8b", ratios), [
            "llama-3.1-8b: share_of_probe 0.8, to be at least 0.85", "llama-3.1-8b: t5_over_t1 1.2, to be at most 1.1",
            "llama-3.1-8b: cycle_efficiency 0.8, to be at least 0.9", "llama-3.1-8b: late_graphs 1, to be at most 0"])

    def test_a_goal_of_another_shape_is_none(self):
        reached = {"t5_over_t1": 1.05, "share_of_probe": 0.1, "late_graphs": 0}
        self.assertEqual(benchmarks.missed_goals("smollm2-360m", reached), [])


class ChiSquareTest(unittest.TestCase):
    def test_equal_samples_do_not_differ_and_rare_tokens_share_a_cell(self):
        counts = {1: 200, 2: 190, 3: 5, 4: 5}
        self.assertEqual(checks.two_sample_chi_square(counts, dict(counts)), (0, 2))

    def test_samples_of_two_laws_do(self):
        statistic, degrees = checks.two_sample_chi_square({1: 300, 2: 100}, {1: 200, 2: 200})
        self.assertGreater(statistic, degrees + 4 * (2 * degrees) ** 0.5 + 6)


class Printing:
    """A machine whose programs print this."""

    def __init__(self, text):
        self.text = text

    def run(self, *_words):
        return self.text


class TestsOnDeviceTest(unittest.TestCase):
    def test_emulated_ones_are_no_check_of_a_device(self):
        with self.assertRaises(AssertionError):
            checks.tests_on_device(Printing("CUDA kernels: emulated on the host; no GPU was used\n9 tests from 1 suite"), "tests/x")

    def test_the_device_is_told(self):
        text = "CUDA kernels: NVIDIA H100 80GB HBM3\n[==========] 9 tests from 1 test suite ran."
        self.assertEqual(checks.tests_on_device(Printing(text), "tests/x"), {"tests": 9, "on": "NVIDIA H100 80GB HBM3"})


class Hurried:
    """A machine that has this many seconds left."""

    def __init__(self, seconds):
        self.seconds = seconds

    def seconds_left(self):
        return self.seconds


def passes(_machine):
    return {"tests": 1}


def fails(_machine):
    raise AssertionError("texts differ")


def lacks_a_tool(_machine):
    raise NotRunError("it is not installed")


def takes_too_long(_machine):
    raise subprocess.TimeoutExpired("it", 1)


def finds_and_fails(machine):
    machine.found = {"ratios": {"t5_over_t1": 1.05}}
    raise AssertionError("requests failed")


class StepTest(unittest.TestCase):
    def outcome(self, run, must_run, seconds_left=60):
        result = run_step(Step(run, 30, must_run), Hurried(seconds_left))
        return result.outcome, result.is_well()

    def test_what_passed_is_well(self):
        self.assertEqual(self.outcome(passes, True), ("passed", True))

    def test_what_failed_is_not_whatever_it_is(self):
        for must_run in (True, False):
            self.assertEqual(self.outcome(fails, must_run), ("FAILED: texts differ", False))

    def test_what_was_found_before_it_failed_is_kept(self):
        self.assertEqual(run_step(Step(finds_and_fails, 30), Hurried(60)).figures, {"ratios": {"t5_over_t1": 1.05}})
        self.assertEqual(run_step(Step(fails, 30), Hurried(60)).figures, {})

    def test_a_check_that_had_no_time_is_not_and_a_benchmark_is(self):
        for must_run in (True, False):
            self.assertEqual(self.outcome(passes, must_run, seconds_left=29), ("not run: no time left", not must_run))
            self.assertEqual(self.outcome(takes_too_long, must_run), ("not run to its end: no time left", not must_run))

    def test_a_tool_that_is_not_there_is_said(self):
        self.assertEqual(self.outcome(lacks_a_tool, False), ("not run: it is not installed", True))


class LibrariesTest(unittest.TestCase):
    def test_the_packs_libraries_are_for_its_programs_alone(self):
        with tempfile.TemporaryDirectory() as scratch:
            machine = Machine.__new__(Machine)
            machine.folder, machine.end = pathlib.Path(scratch), time.monotonic() + 60
            machine.environment = dict(os.environ) | {"LD_LIBRARY_PATH": "/of/the/pack"}
            program = machine.folder / "tests/x"
            program.parent.mkdir()
            program.write_text("#!/bin/sh\necho $LD_LIBRARY_PATH\n")
            program.chmod(0o755)
            for words in (["tests/x"], ["env", program]):
                self.assertEqual(machine.run(*words), "/of/the/pack\n")
            self.assertNotIn("/of/the/pack", machine.run("sh", "-c", "echo $LD_LIBRARY_PATH", machine.folder))


class SanitizerTest(unittest.TestCase):
    def test_tools_that_passed_before_the_time_was_over_are_told(self):
        class Slow:
            folder = pathlib.Path()

            def needs_gpu(self):
                pass

            def has_program(self, _name):
                return True

            def run(self, *words, **_limits):
                if "synccheck" in words:
                    raise subprocess.TimeoutExpired(words, 1)

        with self.assertRaisesRegex(NotRunError, "passed: memcheck, racecheck"):
            checks.sanitizer(Slow())


class ClusterTest(unittest.TestCase):
    def start(self, script, seconds):
        """Of a machine whose verifier is this script, and which has so much time."""
        with tempfile.TemporaryDirectory() as scratch:
            machine = Machine.__new__(Machine)  # whose torch no script needs
            machine.folder, machine.device, machine.environment = pathlib.Path(scratch), "cpu", dict(os.environ)
            machine.end = time.monotonic() + seconds
            program = machine.folder / "bin/outrider-verifier"
            program.parent.mkdir()
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
            with machine.cluster("target", "draft"):
                self.fail("it never listened")

    def test_a_node_that_never_listens_is_ended_when_the_time_is_over(self):
        with self.assertRaises(subprocess.TimeoutExpired):
            self.start("exec sleep 60", seconds=0.5)

    def test_a_node_that_ends_says_why(self):
        with self.assertRaisesRegex(AssertionError, "no such model"):
            self.start("echo no such model >&2; exit 1", seconds=60)


if __name__ == "__main__":
    unittest.main()
