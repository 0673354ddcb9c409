#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A mutation sweep over the CUDA kernels: do their emulated tests notice one small change at a time?

  cmake --build --preset release --target kernels_cuda_tests exactness_device_rows_tests
  tests/mutation/mutate_kernels.py [--kernel linear.cu ...] [--limit 40] [--build build/release build/asan]

Each mutant is one line of a kernel changed by one rule, compiled as the build compiles the kernel and linked in its
place. It is found if it does not compile, if a test fails, or if the tests do not end in time. What survives the first
build is tried in the next, which may be one with sanitizers. Survivors of all are compared with survivors.txt beside
this file, which says of each why no test can see it; one that is not listed there ends the sweep with status 1, as does
one that is listed and no mutant of its kernel any more.

All were tried in November 2026, over several days, as kernels, tests and emulation changed. A mutant that is found takes
seconds, one that the sanitizers' build has to try too takes minutes, which those that are listed are spared but with
--listed. Left out are lines whose change is no mistake of arithmetic (SKIPPED): comments, declarations, and which size of
a kernel is launched, which changes no bit by design. In headers that are another text for nvcc than for the emulation,
the lines that both compile are changed.
"""
import argparse
import json
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "core/kernels/cuda"
EXPLAINED = pathlib.Path(__file__).with_name("survivors.txt")
TOP_ROWS_PARTS = ("top_rows_block.h", "top_rows_candidates.h", "top_rows_look.h", "top_rows_outline.h", "top_rows_weights.h")
# The tests that run each file, and the program that they are in.
PROGRAMS = dict.fromkeys(("device_coins.h", "draw_next.cu", "race_noise.h", "row_weight.h", "score_rows.cu", "top_rows.cu",
                          *TOP_ROWS_PARTS), "exactness_device_rows_tests")
SUITES = {
    "device.h": "All/Cuda*Test.*",
    "mma.h": "All/CudaLinearTest.*",
    "numbers.h": "All/Cuda*Test.*",
    **dict.fromkeys(("linear.cu", "linear_many_rows.cu", "linear_parts.h", "linear_store.h"), "All/CudaLinearTest.*"),
    "packed_weight.cu": "All/CudaLinearTest.*",
    "copy_blocks.cu": "All/CudaCopyBlocksTest.*",
    "norm.cu": "All/CudaNormTest.*",
    "rotate_store.cu": "All/CudaRotateStoreTest.*",
    "attention.cu": "All/CudaAttentionTest.*",
    "attention_parts.h": "All/CudaAttentionTest.*",
    "attention_queries.h": "All/CudaAttentionTest.*",
    "device_coins.h": "*Orders/DeviceDrawsTest.*",
    "draw_next.cu": "*Orders/DeviceDrawsTest.*",
    "race_noise.h": "*Orders/DeviceRowsTest.*",
    "row_weight.h": "*Orders/DeviceRowsTest.*:*Orders/DeviceTop*Test.*",
    "score_rows.cu": "*Orders/DeviceRowsTest.*",
    "top_rows.cu": "*Orders/DeviceTop*Test.*",
    **dict.fromkeys(TOP_ROWS_PARTS, "*Orders/DeviceTop*Test.*"),
}
# Tests of a file that have no order of threads.
WITHOUT_ORDER = {"packed_weight.cu": "CudaPackTest.*",
                 **dict.fromkeys(("linear.cu", "linear_parts.h"), "CudaLinearChoiceTest.*"),
                 **dict.fromkeys(("top_rows.cu", *TOP_ROWS_PARTS), "DeviceTop*Test.*")}
# The kernels that a header is tried in.
COMPILED_AS = {"attention_parts.h": ["attention.cu"], "attention_queries.h": ["attention.cu"],
               "device.h": ["linear.cu", "norm.cu"], "device_coins.h": ["draw_next.cu"], "mma.h": ["linear.cu"],
               "numbers.h": ["attention.cu", "linear.cu", "rotate_store.cu"], "race_noise.h": ["score_rows.cu"],
               "row_weight.h": ["score_rows.cu", "top_rows.cu"],
               **dict.fromkeys(("linear_parts.h", "linear_store.h"), ["linear.cu", "linear_many_rows.cu"]),
               **dict.fromkeys(TOP_ROWS_PARTS, ["top_rows.cu"])}
RULES = [
    (r"(__syncthreads|AwaitPreviousKernel|EndCopyGroup)\(\);", ""),
    (r" < ", " <= "), (r" <= ", " < "), (r" >= ", " > "), (r" > ", " >= "), (r" == ", " != "),
    (r" && ", " || "), (r" \|\| ", " && "),
    (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " + "), (r" / ", " * "), (r" % ", " / "),
    (r"\b1\b(?!\.)", "2"), (r"\b2\b(?!\.)", "3"), (r"\b4\b(?!\.)", "2"), (r"\b8\b(?!\.)", "4"),
    (r"\bg\b", "t"), (r"\bt\b", "g"), (r"\.x\b", ".y"), (r"\.y\b", ".x"), (r"\.z\b", ".w"), (r"\.w\b", ".z"),
    (r"\blow\b", "high"), (r"\bhigh\b", "low"), (r"\bcos\b", "sin"), (r"\bkeep\b", "take"), (r"\btake\b", "keep"),
    (r"\bupper\b", "lower"), (r"\blower\b", "upper"), (r"-__fmul_rn", "__fmul_rn"), (r"fmaxf\(", "fminf("),
    (r"\[0\]", "[1]"), (r"\[1\]", "[0]"), (r"\bkLowHalves\b", "kHighHalves"), (r"\bmin\(", "max("), (r"\bmax\(", "min("),
    (r"\bcontinue;", ";"), (r"\bbreak;", ";"), (r"\breturn;", ";"),
]
# Lines that are no arithmetic of a kernel; the last two choose which size of one is launched, of which each is right.
SKIPPED = re.compile(r"^\s*(//|#|template|namespace|using|Launch|constexpr int kThreads)|__launch_bounds__"
                     r"|static_cast<int>\(threadIdx|return Run<T, |const bool is_small = ")
# What follows is for one of the two compilers, up to where it ends.
ONE_COMPILER = re.compile(r"#\s*if.*__CUDA(CC|_ARCH)__")


def sites(source):
    """(line index, first column, end, replacement) of every mutant of a source."""
    conditions = []  # which enclose the line: whether each of them asks for the compiler
    for number, line in enumerate(source):
        if re.match(r"#\s*if", line):
            conditions.append(ONE_COMPILER.match(line) is not None)
        elif re.match(r"#\s*endif", line):
            conditions.pop()
        if any(conditions) or SKIPPED.search(line):
            continue
        code = line.split("//")[0]
        for pattern, replacement in RULES:
            for match in re.finditer(pattern, code):
                if re.search(r"[<,]\s*$", code[:match.start()]) and "template" in code:
                    continue
                yield number, match.start(), match.end(), replacement


def key_of(kernel, source, site):
    """A mutant as survivors.txt has it, and its line."""
    number, begin, end, replacement = site
    line = source[number]
    changed = line[:begin] + replacement + line[end:]
    text, same = line.strip(), [i for i, other in enumerate(source) if other.strip() == line.strip()]
    # Several lines may have the same text: which of them is changed.
    which = f"  #{same.index(number) + 1}" if len(same) > 1 else ""
    return (kernel, text + which, changed.strip() or "(nothing)"), changed


class Build:
    """How the build compiles a kernel and links the tests."""

    def __init__(self, folder):
        self.folder = folder
        commands = json.loads((folder / "compile_commands.json").read_text())
        self.compile = {pathlib.Path(c["file"]).name: shlex.split(c["command"]) for c in commands
                        if "outrider_emulated_cuda_kernels" in c["command"] and c["file"].endswith(".cu")}
        self.links = {name: self.link_of(name) for name in {"kernels_cuda_tests", *PROGRAMS.values()}}
        self.patience = {}  # with tests of a mutant, by program and suites: seconds

    def link_of(self, program):
        """The command that links a test program."""
        lines = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", program],
                               check=True, capture_output=True, text=True).stdout.splitlines()
        return shlex.split(next(part for line in lines for part in line.split("&&") if f"-o tests/{program}" in part))

    def run(self, kernel, text, scratch):
        """Whether the tests notice `text` in place of the kernel's file; how."""
        mirror = scratch / "core/kernels/cuda"
        mirror.mkdir(parents=True, exist_ok=True)
        (mirror / kernel).write_text(text)
        objects = []
        for source in COMPILED_AS.get(kernel, [kernel]):
            if source != kernel:
                (mirror / source).write_text((KERNELS / source).read_text())
            objects.append(str(scratch / f"{source}.o"))
            command = [word for word in self.compile[source] if not word.endswith("ccache")]
            command[command.index("-o") + 1] = objects[-1]
            command[-1] = str(mirror / source)
            command.insert(1, f"-I{scratch}")  # before the tree: the mutant's header is found first
            command += ["-O1", "-w"]
            if subprocess.run(command, cwd=self.folder, capture_output=True, check=False).returncode:
                return "does not compile"
        program, original = str(scratch / "mutant_tests"), PROGRAMS.get(kernel, "kernels_cuda_tests")
        link = list(self.links[original])
        at = link.index("-o")
        link[at + 1] = program
        link[at + 2:at + 2] = objects  # before the library that holds the originals
        subprocess.run(link, cwd=self.folder, check=True, capture_output=True)
        # One order of threads comes first, as most mutants fall at once.
        first, others = (":".join(SUITES[kernel] + order for order in orders)
                         for orders in (("order_1", "/0"), ("order_2", "order_3", "/1", "/2")))
        for suites in (first, f"{others}:{WITHOUT_ORDER.get(kernel, '')}"):
            if (original, suites) not in self.patience:
                start = time.monotonic()
                run_tests(self.folder / "tests" / original, suites, timeout=None).check_returncode()
                self.patience[original, suites] = 30 + 5 * (time.monotonic() - start)
            try:
                done = run_tests(program, suites, timeout=self.patience[original, suites])
            except subprocess.TimeoutExpired:
                return "does not end"
            if done.returncode:
                return "fails"
        return ""


def run_tests(program, suites, timeout):
    return subprocess.run([program, f"--gtest_filter={suites}", "--gtest_fail_fast", "--gtest_brief=1"],
                          capture_output=True, check=False, timeout=timeout)


def explained():
    """{(file, line, change)} of survivors.txt: blocks of `file | line | change`, then why, indented."""
    known = set()
    for line in EXPLAINED.read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            known.add(tuple(part.strip() for part in line.split(" | ")))
    return known


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", nargs="*", default=sorted(SUITES), choices=sorted(SUITES))
    parser.add_argument("--limit", type=int, default=0, help="mutants of each file, chosen at random; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of that choice")
    parser.add_argument("--match", default="", help="only those of lines with this text")
    parser.add_argument("--listed", action="store_true", help="only those of survivors.txt: do they all still survive?")
    parser.add_argument("--build", type=pathlib.Path, nargs="+", default=[ROOT / "build/release"])
    options = parser.parse_args()
    builds, known, num_wrong = [Build(folder.resolve()) for folder in options.build], explained(), 0
    for kernel in options.kernel:
        source = (KERNELS / kernel).read_text().splitlines()
        chosen = list(sites(source))
        listed = {key for key in known if key[0] == kernel}
        for stale in sorted(listed - {key_of(kernel, source, site)[0] for site in chosen}):
            num_wrong += 1
            print("listed, and no mutant:", " | ".join(stale), flush=True)
        random.Random(options.seed).shuffle(chosen)
        chosen = chosen[:options.limit or None]
        outcomes = {}
        with tempfile.TemporaryDirectory() as scratch:
            for site in chosen:
                key, changed = key_of(kernel, source, site)
                if (options.listed and key not in known) or options.match not in source[site[0]]:
                    continue
                text = "\n".join([*source[:site[0]], changed, *source[site[0] + 1:]]) + "\n"
                tried = builds[:1] if key in known and not options.listed else builds
                runs = (build.run(kernel, text, pathlib.Path(scratch)) for build in tried)
                how = next((run for run in runs if run), "")
                if not how:
                    how = "survives, explained" if key in known else "SURVIVES"
                    if key not in known:
                        num_wrong += 1
                        print(" | ".join(key), flush=True)
                elif options.listed:
                    print("found:", " | ".join(key), flush=True)
                outcomes[how] = outcomes.get(how, 0) + 1
        counts = ", ".join(f"{count} {how}" for how, count in sorted(outcomes.items()))
        print(f"# {kernel}: {sum(outcomes.values())} mutants: {counts}", flush=True)
    return 1 if num_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
