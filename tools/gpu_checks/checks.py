# SPDX-License-Identifier: Apache-2.0
"""Whether it is right: each check returns what it found, or raises."""
import concurrent.futures
import json
import re
import subprocess

from gpu_checks.machine import NotRunError
from gpu_checks.packing import ROOT

TARGET, DRAFT = ROOT / "models/demo-target", ROOT / "models/demo-draft"


def device(machine):
    """Which GPU and driver."""
    machine.needs_gpu()
    query = ("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
    return {"gpu": machine.run(*query).strip(), "torch": machine.torch_version}


def kernels(machine):
    """The kernels' tests, on the device."""
    machine.needs_gpu()
    return tests_on_device(machine, "tests/kernels_cuda_gpu_tests")


def golden(machine):
    """Models of every family against the reference, rows bit-equal whatever their pass, greedy for K = 0 to 8."""
    machine.needs_gpu()
    return tests_on_device(machine, "tests/cuda_golden_tests")


def tests_on_device(machine, program):
    """How many tests ran, and on what, as they say: emulated ones are no check of a device."""
    text = machine.run(program, "--gtest_brief=1")
    if "no GPU" in text or "emulated" in text:
        raise AssertionError(text[-500:])
    return {"tests": int(re.search(r"(\d+) tests from", text)[1]), "on": re.search(r"CUDA kernels: (.*)", text)[1]}


def greedy(machine):
    """Greedy output for K = 0 to 8 on the demo pair, through the three programs."""
    lines = (ROOT / "models/prompts.jsonl").read_text("utf-8").splitlines()
    prompts = [json.loads(line)["prompt"] for line in lines[::len(lines) // 6]][:6]
    num_accepted = 0
    with machine.cluster(TARGET, DRAFT) as address:
        for prompt in prompts:
            replies = [machine.generate(address, k, prompt) for k in range(9)]
            outputs = [reply["token_ids"] for reply in replies]
            different = [k for k, output in enumerate(outputs) if output != outputs[0]]
            if different:
                raise AssertionError(f"K = {different} differ from plain decoding on {prompt[:40]!r}")
            num_accepted += sum(reply["totals"]["accepted"] for reply in replies)
        gpus = machine.gpus(address)
    if num_accepted == 0:
        raise AssertionError("no draft was accepted, so nothing was compared but plain decoding")
    return {"prompts": len(prompts), "k": "0 to 8", "accepted": num_accepted,
            "nodes": gpus}


def chi_square(machine, num_samples=400, num_tokens=6):
    """The sixth token under K = 0 and K = 4, each of its own seeds: one law? Two samples, cells of ten at least.

    The first token of a stream is never drafted, and its second round mostly is."""
    counts = ({}, {})
    num_accepted = 0
    with machine.cluster(TARGET, DRAFT) as address, concurrent.futures.ThreadPoolExecutor(8) as threads:
        for sample, k in ((0, 0), (1, 4)):
            seeds = range(100000 * sample, 100000 * sample + num_samples)
            replies = threads.map(lambda seed, k=k: machine.generate(address, k, "def ", seed, num_tokens), seeds)
            for reply in replies:
                token = (reply["token_ids"] + [None] * num_tokens)[num_tokens - 1]
                counts[sample][token] = counts[sample].get(token, 0) + 1
                num_accepted += reply["totals"]["accepted"]
    if num_accepted < num_samples:
        raise AssertionError(f"only {num_accepted} drafts were accepted in {num_samples} texts: not a test of drafts")
    statistic, degrees = two_sample_chi_square(*counts)
    limit = degrees + 4 * (2 * degrees) ** 0.5 + 6  # beyond 1 in 10 000
    if statistic > limit:
        raise AssertionError(f"chi-square {statistic:.1f} with {degrees} degrees of freedom, limit {limit:.1f}")
    return {"chi_square": round(statistic, 1), "degrees": degrees, "limit": round(limit, 1)}


def two_sample_chi_square(first, second):
    """The statistic of two equally large samples, each a count by token, and its degrees of freedom."""
    pairs, rest = [], [0, 0]
    for token in set(first) | set(second):
        pair = (first.get(token, 0), second.get(token, 0))
        if sum(pair) >= 20:
            pairs.append(pair)
        else:
            rest = [rest[0] + pair[0], rest[1] + pair[1]]
    pairs.append(tuple(rest))
    return sum((a - b) ** 2 / (a + b) for a, b in pairs if a + b), max(len(pairs) - 1, 1)


def sanitizer(machine):
    """compute-sanitizer's four tools over the kernels' tests, where it is installed, as time is left."""
    machine.needs_gpu()
    if not machine.has_program("compute-sanitizer"):
        raise NotRunError("compute-sanitizer is not installed")
    program = machine.folder / "tests/kernels_cuda_gpu_tests"
    # One order of threads: those are the emulation's. And a model's steps, as graphs.
    tests = ("--gtest_filter=*order_1:Orders/*/0:CudaPackTest.*:CudaCausalLmTest.AGraphGivesTheBitsOfItsLaunches:"
             "CudaCausalLmTest.ARoundOfManySessionsIsOneLaunchAndHasTheirBits")
    done = []
    for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
        try:
            machine.run("compute-sanitizer", "--tool", tool, "--error-exitcode", "3", program, tests, "--gtest_brief=1",
                        seconds=600)
        except AssertionError as error:
            if re.search(r"not supported|Unable to find injection|failed to initialize", str(error), re.IGNORECASE):
                raise NotRunError(f"compute-sanitizer cannot watch this device: {str(error)[-200:]}") from error
            raise
        except subprocess.TimeoutExpired as error:
            raise NotRunError(f"no time was left for all of its tools; passed: {', '.join(done) or 'none'}") from error
        done.append(tool)
    return {"tools": ", ".join(done)}
