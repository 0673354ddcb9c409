# SPDX-License-Identifier: Apache-2.0
"""What tools/gpu_check makes of a run's figures: ratios, goals that were missed, and what is no check of a device;
and the tokenizers of tools/make_random_pair.py."""
import concurrent.futures
import importlib.machinery
import importlib.util
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import make_random_pair  # noqa: E402
from gpu_checks import benchmarks, checks  # noqa: E402
from gpu_checks.machine import Machine, NotRunError, UnprovenError  # noqa: E402
from gpu_checks.steps import Result, Step, run_step  # noqa: E402



def program(name):
    """A tool as a module: its file has no ending."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


gpu_check = program("gpu_check")


def figures(nodes=()):
    """The figures of a run: a pass takes 10 ms and half a millisecond more for each row beyond the first, a draft step 1 ms.

    Greedy steps and greedy plain decoding are faster, and count for nothing: the benchmark is at temperature 1."""
    cells = [{"k": k, "sessions": sessions, "tokens_per_second": 90.0 + 30 * k * sessions, "round_ms": 20.0}
             for k in (0, 4) for sessions in (1, 8, 64)]
    target = {"rows_ms": [10 + i / 2 for i in range(9)], "plain_tokens_per_second": 500.0,
              "plain_sampled_tokens_per_second": 100.0}
    return {"weight_bytes": 16e9, "target": target, "draft": {"draft_step_ms": 0.5, "draft_sampled_step_ms": 1.0},
            "cells": cells, "nodes": list(nodes), "assisted": {"assisted_tokens_per_second": 42.0}}


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
    @staticmethod
    def row(beginning):
        """A first token 1 mostly; after it 2 and 3 are as likely; after 3 nothing is."""
        return {(): [(1, 0.9), (5, 0.01)], (1,): [(2, 0.5), (3, 0.5)], (1, 2): [(4, 0.001)], (1, 3): []}[beginning]

    def law(self):
        return checks.law_of_beginnings(self.row, num_samples=1000, num_tokens=3)

    def test_a_beginning_has_the_probability_that_no_longer_one_begins_the_text(self):
        law = self.law()
        self.assertEqual(set(law), {(), (1,), (1, 2), (1, 3)})  # 5 is expected ten times
        self.assertAlmostEqual(law[()], 0.1)
        self.assertAlmostEqual(law[1,], 0)
        self.assertAlmostEqual(law[1, 2], 0.45)
        self.assertAlmostEqual(sum(law.values()), 1)

    def test_rows_are_asked_for_no_more_tokens_than_texts_have(self):
        self.assertEqual(set(checks.law_of_beginnings(self.row, 1000, num_tokens=1)), {(), (1,)})

    def test_texts_of_the_law_do_not_differ_from_it(self):
        texts = 450 * [[1, 2, 8]] + 450 * [[1, 3, 8]] + 100 * [[7, 7, 7]]
        statistic, degrees = checks.chi_square_of(texts, self.law())
        self.assertAlmostEqual(statistic, 0)
        self.assertEqual(degrees, 3)

    def test_texts_of_another_law_do(self):
        statistic, degrees = checks.chi_square_of(550 * [[1, 2]] + 350 * [[1, 3]] + 100 * [[7]], self.law())
        self.assertGreater(statistic, 0.5 * checks.chi_square_limit(degrees))
        statistic, degrees = checks.chi_square_of(600 * [[1, 2]] + 300 * [[1, 3]] + 100 * [[7]], self.law())
        self.assertGreater(statistic, checks.chi_square_limit(degrees))

    def test_tokens_that_the_law_has_not_are_found(self):
        statistic, degrees = checks.chi_square_of(435 * [[1, 2]] + 435 * [[1, 3]] + 100 * [[7]] + 30 * [[1, 9]], self.law())
        self.assertGreater(statistic, checks.chi_square_limit(degrees))

    def test_the_limit_is_what_chance_exceeds_once_in_a_million(self):
        for degrees in (12, 30):
            half = checks.chi_square_limit(degrees) / 2
            # Of an even number of degrees the law is a finite sum.
            beyond = math.exp(-half) * sum(half ** i / math.factorial(i) for i in range(degrees // 2))
            self.assertTrue(0.5e-6 < beyond < 2e-6, (degrees, beyond))


class Printing:
    """A machine whose programs print this."""

    def __init__(self, text):
        self.text = text

    def run(self, *_words):
        return self.text


class DeviceTest(unittest.TestCase):
    def device(self, cuda):
        machine = Printing("a GPU, 81559 MiB, 575.1\n")
        machine.needs_gpu, machine.torch_version = lambda: None, "2.11"
        with unittest.mock.patch.object(checks, "cuda_of_driver", return_value=cuda):
            try:
                return checks.device(machine)
            finally:
                self.assertEqual(machine.found, {"gpu": "a GPU, 81559 MiB, 575.1", "torch": "2.11"})

    def test_a_driver_that_the_programs_cannot_use_is_named(self):
        self.assertEqual(self.device(13000)["torch"], "2.11")
        with self.assertRaisesRegex(AssertionError, r"knows CUDA 12\.9, .* needs driver 580 or later: a GPU, 81559 MiB, 575\.1"):
            self.device(12090)


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


def comes_to_no_end(_machine):
    raise UnprovenError("passed: none")


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

    def test_a_check_that_had_no_time_is_unproven_and_not_well_and_a_benchmark_is_well(self):
        self.assertEqual(self.outcome(passes, True, seconds_left=29), ("UNPROVEN: no time left", False))
        self.assertEqual(self.outcome(takes_too_long, True), ("UNPROVEN: no time left for its end", False))
        self.assertEqual(self.outcome(passes, False, seconds_left=29), ("not run: no time left", True))
        self.assertEqual(self.outcome(takes_too_long, False), ("not run to its end: no time left", True))

    def test_a_tool_that_is_not_there_is_said(self):
        self.assertEqual(self.outcome(lacks_a_tool, True), ("not run: it is not installed", True))

    def test_a_tool_that_is_there_and_comes_to_no_end_is_not_well(self):
        self.assertEqual(self.outcome(comes_to_no_end, True), ("UNPROVEN: passed: none", False))


class OrderTest(unittest.TestCase):
    def test_checks_come_first_and_all_but_the_last_take_less_than_nine_minutes(self):
        steps = gpu_check.STEPS
        self.assertLess(sum(step.seconds for step in steps), 9 * 60)
        self.assertIn(checks.sanitizer, [step.run for step in steps])
        must_run = [step.must_run for step in steps]
        self.assertEqual(must_run, sorted(must_run, reverse=True))


class StepsTest(unittest.TestCase):
    def test_those_that_are_named_run_in_their_order_and_others_end_the_program(self):
        names = [step.run.__name__ for step in gpu_check.steps_named(["llama-3.2-1b", "device"], "cuda")]
        self.assertEqual(names, ["device", "llama-3.2-1b"])
        self.assertEqual(gpu_check.steps_named(None, "cpu"), gpu_check.CPU_STEPS)
        with self.assertRaisesRegex(SystemExit, "--steps golden: there are greedy"):
            gpu_check.steps_named(["golden"], "cpu")

    def test_pairs_are_made_for_the_steps_that_measure_one_and_waited_for_by_the_first(self):
        made = []

        class Threads:
            def submit(self, make, shape, acceptance):
                made.append((shape, acceptance))
                return concurrent.futures.Future()

        machine = Machine.__new__(Machine)
        machine.end, machine.pairs = time.monotonic() + 0.5, {}
        benchmarks.make_pairs(machine, {"tiny": 0.8}, Threads())
        self.assertEqual(made, [("tiny", 0.8)])
        with self.assertRaises(subprocess.TimeoutExpired):
            gpu_check.CPU_STEPS[-1].run(machine)


class TableTest(unittest.TestCase):
    def test_whether_nodes_shared_the_gpu_by_the_service_is_told(self):
        results = [Result(shape, "passed", 1.0, {"shape": shape, "ratios": {"t2_over_t1": 1.01}, **service})
                   for shape, service in (("a", {"multi_process_service": True}), ("b", {"multi_process_service": False}), ("c", {}))]
        self.assertIn("| multi-process service | used | not used |  |\n", gpu_check.table_of(results, "cuda"))
        self.assertNotIn("multi-process", gpu_check.table_of(results, "cpu"))


class KernelsTableTest(unittest.TestCase):
    def test_a_row_for_each_kernel_and_a_column_for_each_number_of_rows(self):
        times = [{"device": "a GPU"}, {"name": "probe", "rows": 0, "us": 700.0, "share": 1.0},
                 {"name": "norm", "rows": 1, "us": 2.04}, {"name": "up", "rows": 1, "us": 75.0, "share": 1.02},
                 {"name": "norm", "rows": 64, "us": 2.6}, {"name": "up", "rows": 64, "us": 104.0, "share": 0.755}]
        self.assertEqual(list(gpu_check.kernels_table({"of": "a shape", "kernels": times}))[1:],
                         ["| a shape: us (of the bandwidth) | 1 rows | 64 rows |", "|---|---|---|",
                          "| norm | 2.0 | 2.6 |", "| up | 75.0 (1.02) | 104.0 (0.76) |"])

    def test_a_kernel_that_was_not_timed_for_so_many_rows_has_an_empty_cell(self):
        times = [{"name": "norm", "rows": 64, "us": 2.6}, {"name": "norm", "rows": 512, "us": 3.6},
                 {"name": "top 1024", "rows": 64, "us": 30.0}]
        self.assertEqual(list(gpu_check.kernels_table({"of": "a shape", "kernels": times}))[3:],
                         ["| norm | 2.6 | 3.6 |", "| top 1024 | 30.0 |  |"])

    def test_rows_and_keys_are_the_steps_own(self):
        asked = []

        class Timing:
            def needs_gpu(self):
                pass

            def run(self, *words):
                asked.append(words)
                return '{"device": "a GPU", "is_emulated": false}\n'
        benchmarks.kernel_times("a shape", "1,5", "long", keys=32768)(Timing())
        self.assertEqual(asked, [("bin/cuda_kernels_benchmark", "--shape", "a shape", "--rows", "1,5", "--keys", 32768, "--json")])


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


class TimeTest(unittest.TestCase):
    def test_what_a_program_started_ends_with_it_when_its_time_is_over(self):
        with tempfile.TemporaryDirectory() as scratch:
            machine = Machine.__new__(Machine)
            machine.folder, machine.end = pathlib.Path(scratch), time.monotonic() + 60
            started = machine.folder / "started"
            with self.assertRaises(subprocess.TimeoutExpired):
                machine.run("sh", "-c", f"sleep 60 & echo $! > {started}; wait", seconds=1)
            self.assertTrue(_has_ended(int(started.read_text())))


def _has_ended(process):
    """Within a second it is gone, or a zombie that nobody has waited for."""
    end = time.monotonic() + 1
    while time.monotonic() < end:
        status = pathlib.Path(f"/proc/{process}/stat")
        if not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


class TokenizerTest(unittest.TestCase):
    SOURCE = ROOT / "models/demo-target"

    def test_it_has_a_token_for_every_row_of_the_head_and_merges_what_it_merged(self):
        small = json.loads((self.SOURCE / "tokenizer.json").read_text("utf-8"))
        full = make_random_pair.full_tokenizer(small, 128256)
        self.assertEqual(sorted(full["model"]["vocab"].values()), list(range(128256)))
        self.assertEqual(full["model"]["vocab"] | small["model"]["vocab"], full["model"]["vocab"])
        for name in full:
            self.assertTrue(name == "model" or full[name] == small[name])
        self.assertEqual(full["model"]["merges"], small["model"]["merges"])

    def test_a_vocabulary_that_is_full_stays_as_it_is(self):
        small = json.loads((self.SOURCE / "tokenizer.json").read_text("utf-8"))
        self.assertEqual(make_random_pair.full_tokenizer(small, 4096), small)

    def test_one_that_has_more_tokens_than_the_head_is_refused(self):
        with self.assertRaisesRegex(ValueError, "ids up to 4095"):
            make_random_pair.full_tokenizer(json.loads((self.SOURCE / "tokenizer.json").read_text("utf-8")), 4000)

    @unittest.skipUnless(importlib.util.find_spec("tokenizers"), "tokenizers is not installed")
    def test_it_encodes_texts_as_before_and_its_words_are_in_no_text(self):
        import tokenizers

        with tempfile.TemporaryDirectory() as scratch:
            make_random_pair.write_tokenizer(self.SOURCE, pathlib.Path(scratch), 128256)
            full = tokenizers.Tokenizer.from_file(f"{scratch}/tokenizer.json")
        small = tokenizers.Tokenizer.from_file(str(self.SOURCE / "tokenizer.json"))
        self.assertEqual(full.get_vocab_size(), 128256)
        lines = (ROOT / "models/bench_prompts.jsonl").read_text("utf-8").splitlines()[:200]
        for text in [json.loads(line)["prompt"] for line in lines] + [" w1000 w1f4ff"]:
            self.assertEqual(full.encode(text).ids, small.encode(text).ids)
        self.assertEqual(full.decode([128255, 4096]), " w1f4ff w1000")


class SanitizerTest(unittest.TestCase):
    class Watched:
        """A machine whose synccheck ends like this."""
        folder = pathlib.Path()

        def __init__(self, error, finds_tests=True):
            self.error, self.finds_tests = error, finds_tests

        def needs_gpu(self):
            pass

        def has_program(self, _name):
            return True

        def run(self, *words, **_limits):
            if "synccheck" in words and self.error is not None:
                raise self.error
            return "[==========] 12 tests from 3 test suites ran. (5 ms total)" if self.finds_tests else "0 tests ran"

    def test_tools_that_passed_before_the_time_was_over_are_told(self):
        with self.assertRaisesRegex(UnprovenError, "for synccheck to end; passed: memcheck, initcheck, racecheck"):
            checks.sanitizer(self.Watched(subprocess.TimeoutExpired("compute-sanitizer", 1)))

    def test_a_device_that_it_cannot_watch_is_unproven(self):
        with self.assertRaisesRegex(UnprovenError, "cannot watch"):
            checks.sanitizer(self.Watched(AssertionError("ended with 1: Device not supported")))

    def test_tools_that_find_nothing_are_told_with_their_tests(self):
        took = checks.sanitizer(self.Watched(None))
        self.assertEqual(sorted(took), ["initcheck", "memcheck", "racecheck", "synccheck"])
        self.assertRegex(took["racecheck"], "12 tests passed")

    def test_tests_that_are_no_more_are_no_check(self):
        with self.assertRaisesRegex(AssertionError, "memcheck watched no test"):
            checks.sanitizer(self.Watched(None, finds_tests=False))

    def test_what_it_finds_is_a_failure(self):
        with self.assertRaisesRegex(AssertionError, "Invalid"):
            checks.sanitizer(self.Watched(AssertionError("ended with 3: Invalid __global__ read")))

    def test_what_its_tools_watch_is_there(self):
        sources = "".join(path.read_text("utf-8") for folder in ("core/kernels/cuda", "core/cuda_model", "tests/exactness")
                          for path in (ROOT / folder).glob("*_test.cc"))
        tests = {f"{suite}.{name}" for suite, name in re.findall(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", sources, re.MULTILINE)}
        names = {name for names in checks.SANITIZERS.values() for name in names.split(":") if re.search(r"\.\w", name)}
        self.assertGreaterEqual(len(names), 9)
        self.assertEqual({re.sub(r"^\w+/|/\w+$", "", name) for name in names} - tests, set())


class ClusterTest(unittest.TestCase):
    def start(self, script, seconds):
        """Starts a machine whose verifier is this script, and which has so much time."""
        with tempfile.TemporaryDirectory() as scratch:
            machine = Machine.__new__(Machine)  # whose torch no script needs
            machine.folder, machine.device, machine.environment = pathlib.Path(scratch), "cpu", dict(os.environ)
            machine.sharing = {}
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


# Keeps what it was given open while it runs, as the service's daemon may, and names a server if it has one.
MPS_SCRIPT = """#!/bin/sh
if [ "$1" = -d ]; then sleep 30 & echo $! > "$CUDA_MPS_PIPE_DIRECTORY/daemon"; exit 0; fi
read -r command
case $command in
  get_server_list) %s ;;
  quit*) kill "$(cat "$CUDA_MPS_PIPE_DIRECTORY/daemon")" ;;
esac
"""


class SharedDeviceTest(unittest.TestCase):
    def share(self, server_list, trial="exit 0"):
        """What programs get in their environment meanwhile, and whether the service has ended."""
        with tempfile.TemporaryDirectory() as scratch, unittest.mock.patch.dict(os.environ):
            machine = Machine.__new__(Machine)
            machine.folder, machine.device, machine.sharing = pathlib.Path(scratch), "cuda", {}
            (machine.folder / "bin").mkdir()
            for name, text in (("nvidia-cuda-mps-control", MPS_SCRIPT % server_list),
                               ("cuda_kernels_benchmark", f"#!/bin/sh\n{trial}\n")):
                (machine.folder / "bin" / name).write_text(text)
                (machine.folder / "bin" / name).chmod(0o755)
            os.environ["PATH"] = f"{machine.folder}/bin:{os.environ['PATH']}"
            machine.environment = dict(os.environ)
            start = time.monotonic()
            with machine.shared_device():
                sharing = machine.sharing
            self.assertLess(time.monotonic() - start, 15)
            self.assertEqual(machine.sharing, {})
            self.assertTrue(_has_ended(int((machine.folder / "mps/daemon").read_text())))
            return sharing

    def test_programs_share_where_the_service_has_a_server(self):
        self.assertIn("CUDA_MPS_PIPE_DIRECTORY", self.share("echo 4711"))

    def test_they_do_not_where_a_trial_reaches_none_or_fails(self):
        self.assertEqual(self.share("true"), {})
        self.assertEqual(self.share("echo 4711", trial="exit 1"), {})


if __name__ == "__main__":
    unittest.main()
