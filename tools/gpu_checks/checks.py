# SPDX-License-Identifier: Apache-2.0
"""Whether it is right: each check returns what it found, or raises."""
import concurrent.futures
import ctypes
import itertools
import json
import math
import re
import statistics
import subprocess
import time

from gpu_checks.machine import NotRunError, UnprovenError
from gpu_checks.packing import ROOT

TARGET, DRAFT = ROOT / "models/demo-target", ROOT / "models/demo-draft"


# The runtime that the programs have inside.
CUDA_MAJOR, FIRST_DRIVER = 13, 580


def device(machine):
    """Which GPU and driver, and whether the driver is one that the programs can use."""
    machine.needs_gpu()
    query = ("nvidia-smi", "-i", "0", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
    machine.found = {"gpu": machine.run(*query).strip(), "torch": machine.torch_version}
    if (version := cuda_of_driver()) < 1000 * CUDA_MAJOR:
        raise AssertionError(f"the driver knows CUDA {version // 1000}.{version % 1000 // 10}, and the programs are of CUDA "
                             f"{CUDA_MAJOR}, which needs driver {FIRST_DRIVER} or later: {machine.found['gpu']}")
    return machine.found


def cuda_of_driver():
    """The latest CUDA that libcuda, of which a machine may have a newer one than its driver's, knows: 13000 is 13.0."""
    version = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    return version.value


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


# What the demo pair is sure of in part, over several tokens, and a mass that leaves no likely row's cut within what two
# devices' roundings could move: no token with a cell of its own comes or goes by them.
LAW_PROMPT = ("<|begin_of_text|>", "\u0120" * 3, "\u0120def", "\u0120__")
LAW_TOP_P = 0.75
# A penalty that looks at the whole text, as the law's texts are prompts of the CPU's.
LAWS = {"the model's": (), "top-p": ("--top-p", LAW_TOP_P), "repetition penalty": ("--repetition-penalty", 1.2)}
WAYS = {"plain": (0,), "rejection": (4, "--acceptance-rule", "rejection"), "coupled": (4, "--acceptance-rule", "coupled")}


def chi_square(machine, num_samples=800, num_tokens=6):
    """Sampled texts by the device, plain, by rejection and coupled, cut and penalised too: are they of the law of the CPU's rows?"""
    vocabulary = json.loads((TARGET / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    prompt = [vocabulary[token] for token in LAW_PROMPT]
    with machine.cluster(TARGET, DRAFT, "cpu") as address:
        laws = {name: law_of_beginnings(lambda beginning, cut=cut: cpu_row(machine, address, [*prompt, *beginning], cut),
                                        num_samples, num_tokens) for name, cut in LAWS.items()}
    found, wrong, first = {}, [], 0
    machine.found = found
    with machine.cluster(TARGET, DRAFT) as address, concurrent.futures.ThreadPoolExecutor(8) as threads:
        for (law, cut), (way, (k, *rule)) in itertools.product(LAWS.items(), WAYS.items()):
            def draw(seed, k=k, flags=(*rule, *cut)):
                return machine.generate(address, k, prompt, *flags, seed=seed, max_tokens=num_tokens)

            replies = list(threads.map(draw, range(first, first + num_samples)))
            first += num_samples
            accepted = sum(reply["totals"]["accepted"] for reply in replies)
            if k > 0 and accepted < num_samples:
                raise AssertionError(f"{accepted} drafts were accepted in {num_samples} texts: not a test of drafts")
            statistic, degrees = chi_square_of([reply["token_ids"] for reply in replies], laws[law])
            limit = chi_square_limit(degrees)
            name = f"{way}, {law}"
            found[name] = f"{statistic:.1f} of {degrees} degrees, limit {limit:.1f}"
            if statistic > limit:
                wrong.append(f"{name}: {found[name]}")
    if wrong:
        raise AssertionError(f"texts are not of the law of the CPU's rows: {'; '.join(wrong)}")
    return found


def cpu_row(machine, address, tokens, cut):
    """The likeliest tokens after these, with the probabilities that they are drawn with."""
    asked = ("--logprobs", 20, "--logprobs-mode", "processed")
    reply = machine.generate(address, 0, tokens, *asked, *cut, seed=1, max_tokens=1)
    return [(entry["id"], math.exp(entry["logprob"])) for entry in reply["logprobs"][0]["top"]]


LEAST_EXPECTED = 16


def law_of_beginnings(row, num_samples, num_tokens):
    """Beginnings of texts, and the probability that it is the longest of them with which a text begins.

    `row` says the likeliest tokens after a beginning. Of so many texts, LEAST_EXPECTED or more have each beginning."""
    law, known = {(): 1.0}, [()]
    for beginning in known:
        probability = law[beginning]
        for token, share in row(beginning) if len(beginning) < num_tokens else ():
            if probability * share * num_samples >= LEAST_EXPECTED:
                longer = (*beginning, token)
                law[longer] = probability * share
                law[beginning] -= probability * share
                known.append(longer)
    return law


def chi_square_of(texts, law):
    """Pearson's statistic of texts against a law of beginnings, and its degrees of freedom; what is rare shares a cell."""
    counts = dict.fromkeys(law, 0)
    for text in texts:
        counts[next(tuple(text[:n]) for n in range(len(text), -1, -1) if tuple(text[:n]) in law)] += 1
    statistic, num_cells, rest = 0.0, 1, [0, 0.0]
    for beginning, probability in law.items():
        count, expected = counts[beginning], probability * len(texts)
        if expected >= LEAST_EXPECTED:
            statistic += (count - expected) ** 2 / expected
            num_cells += 1
        else:
            rest = [rest[0] + count, rest[1] + expected]
    # Of next to nothing no statistic can be told: it counts as if a few were expected.
    return statistic + (rest[0] - rest[1]) ** 2 / max(rest[1], 5.0), num_cells - 1


def chi_square_limit(degrees):
    """What the statistic exceeds by chance once in a million, by Wilson and Hilferty."""
    step = 2 / (9 * degrees)
    return degrees * (1 - step + statistics.NormalDist().inv_cdf(1 - 1e-6) * step ** 0.5) ** 3


# What each of compute-sanitizer's tools watches: kernels in one order of threads, as others are the emulation's, and a
# model's steps, as graphs.
KERNELS_ONCE = "*bfloat16_order_1:CudaPackTest.*"
ROWS_AND_STEPS = ("Orders/*/0:CudaCausalLmTest.AGraphGivesTheBitsOfItsLaunches:"
                  "CudaCausalLmTest.ARoundOfManySessionsIsOneLaunchAndHasTheirBits:PassesInFlightTest.HaveTheRowsOfOneAfterTheOther")
# racecheck is slower by far: it has one test for each kernel with shared memory, of which the first one runs both products.
RACES = ("All/CudaLinearTest.AgreesWithDoublePrecisionForManyInputs/bfloat16_order_1:"
         "All/CudaAttentionTest.AgreesWithDoublePrecisionForAPrompt/bfloat16_order_1:"
         "All/CudaNormTest.AgreesWithTheCpuForAnySize/bfloat16_order_1:"
         "Orders/DeviceTopRowsTest.TheGreatestAreThoseOfTheDefinition/0:"
         "Orders/DeviceRowsTest.MovedTokensWeighWhatTheHostHasThemWeigh/0:"
         "Orders/DeviceDrawsTest.AsManyAsAThreadEachAreDrawnFrom/0")
SANITIZERS = {"memcheck": f"*float16_order_1:CudaPackTest.*:{ROWS_AND_STEPS}", "synccheck": f"{KERNELS_ONCE}:{ROWS_AND_STEPS}",
              "initcheck": f"{KERNELS_ONCE}:{ROWS_AND_STEPS}", "racecheck": RACES}


def sanitizer(machine, seconds=120):
    """compute-sanitizer's four tools over the kernels' tests, where it is installed, side by side; they have two minutes."""
    machine.needs_gpu()
    if not machine.has_program("compute-sanitizer"):
        raise NotRunError("compute-sanitizer is not installed, so races and accesses on the device are unproven")
    program = machine.folder / "tests/kernels_cuda_gpu_tests"
    end = time.monotonic() + seconds
    took = machine.found = {}

    def watch(tool):
        """What kept the tool from its end, if anything did."""
        start = time.monotonic()
        try:
            text = machine.run("compute-sanitizer", "--tool", tool, "--error-exitcode", "3", program,
                               f"--gtest_filter={SANITIZERS[tool]}", "--gtest_brief=1", seconds=end - time.monotonic())
            num_tests = re.search(r"\b([1-9]\d*) tests? from", text)  # none, where a filter names what is no more
            if num_tests is None:
                return AssertionError(f"{tool} watched no test: {text[-300:]}")
            took[tool] = f"{num_tests[1]} tests passed in {time.monotonic() - start:.0f} s"
        except AssertionError as error:
            if re.search(r"not supported|Unable to find injection|failed to initialize", str(error), re.IGNORECASE):
                return UnprovenError(f"compute-sanitizer cannot watch this device: {str(error)[-200:]}")
            return error
        except subprocess.TimeoutExpired:
            return UnprovenError(f"no time was left for {tool} to end")
        return None

    with concurrent.futures.ThreadPoolExecutor(len(SANITIZERS)) as threads:
        found = [each for each in threads.map(watch, SANITIZERS) if each is not None]
    # What it found counts before what it did not come to.
    for error in sorted(found, key=lambda each: isinstance(each, UnprovenError)):
        passed = f"passed: {', '.join(tool for tool in SANITIZERS if tool in took) or 'none'}"
        raise UnprovenError(f"{error}; {passed}") if isinstance(error, UnprovenError) else error
    return took
