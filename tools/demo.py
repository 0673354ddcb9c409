#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make demo`: speculative decoding on this machine, checked and measured.

Starts a verifier, a drafter and a coordinator on loopback ports, and decodes
held-out prompts with K = 0..8 draft tokens a round, and with as many as the
coordinator chooses. Exits with 1 where greedy output is not, token for token,
that of K = 0. Needs the release build and nothing but Python's standard library.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import demo_report
from demo_report import AUTO, Run, Setting
from program import Program, stop_all

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = ROOT / "build/release/bin"
TARGET, DRAFT = ROOT / "models/demo-target", ROOT / "models/demo-draft"
PROMPTS = ROOT / "models/prompts.jsonl"

NUM_TOKENS = 96
SETTINGS = [*map(Setting, range(9)), Setting(8, min_probability=0.3),
            Setting(8, min_probability=0.3, prompt_lookup=True), AUTO]
SAMPLED_SETTINGS = {*map(Setting, range(4)), *SETTINGS[-3:]}
# There are as many prompts as fit into these seconds, between the fewest and the most; or as many as
# OUTRIDER_DEMO_PROMPTS in the environment says, where outputs are to be compared and times do not matter.
DECODE_SECONDS = 25
MIN_PROMPTS, MAX_PROMPTS = 4, 8
TASTE_K = 4
TASTE_PROMPT = '''class Queue:
    """A first-in, first-out queue."""

    def __init__(self):
'''
START_SECONDS = 60
STOP_SECONDS = 15


class DemoError(Exception):
    """Something that the reader of the demo should know; ends it."""


@dataclasses.dataclass
class Cluster:
    """The services that run, the last one started last."""
    services: list[Program] = dataclasses.field(default_factory=list)

    def start(self, name: str, *flags: str | os.PathLike) -> str:
        # It has a session of its own, so that Ctrl-C reaches only us.
        self.services.append(Program(BIN / name, "--listen", "127.0.0.1:0", *flags, own_session=True))
        try:
            return self.services[-1].address()
        except AssertionError as error:
            raise DemoError(str(error)) from None

    def stop(self) -> list[str]:
        """What went wrong; every process is gone afterwards."""
        problems = []
        for service, status in zip(self.services, stop_all(self.services, STOP_SECONDS), strict=True):
            if status is None:
                problem = f"ignored SIGTERM for {STOP_SECONDS} s"
            else:
                problem = f"ended with exit status {status}" if status != 0 else ""
            if problem:
                problems.append(f"{service.name} {problem}\n{service.err()}".strip())
            service.close()
        self.services.clear()
        return problems

    def logs(self) -> str:
        """What the services wrote, and which of them are gone already."""
        return "\n".join(f"--- {s.name}{fate(s)}\n{s.err().strip()}" for s in self.services)


def fate(service: Program) -> str:
    status = service.process.poll()
    return "" if status is None else f" (gone, exit status {status})"


@contextlib.contextmanager
def cluster(dtype: str) -> Iterator[str]:
    """Yields the coordinator's address."""
    nodes = Cluster()
    try:
        verifier = nodes.start("outrider-verifier", "--model", TARGET, "--dtype", dtype)
        drafter = nodes.start("outrider-drafter", "--model", DRAFT, "--dtype", dtype)
        address = nodes.start("outrider-coordinator", "--verifier", verifier,
                              "--drafter", drafter, "--tokenizer", TARGET)
        wait_for_pair(address)
        show_nodes(address)
        yield address
    except BaseException as error:
        if not isinstance(error, (KeyboardInterrupt, SystemExit)):
            print(nodes.logs(), file=sys.stderr)
        nodes.stop()
        raise
    problems = nodes.stop()
    if problems:
        raise DemoError("\n".join(problems))


def output_of(name: str, *arguments: str | os.PathLike) -> str:
    done = subprocess.run([BIN / name, *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DemoError(f"{name} failed: {done.stderr.strip()}")
    return done.stdout


def wait_for_pair(address: str) -> None:
    """Returns once the coordinator has found both nodes."""
    give_up = time.monotonic() + START_SECONDS
    said = ""
    while time.monotonic() < give_up:
        with contextlib.suppress(DemoError):
            said = output_of("outrider", "describe", "--coordinator", address, "--json")
            nodes = json.loads(said)
            if nodes["verifiers"] and nodes["drafters"]:
                return
        time.sleep(0.1)
    raise DemoError(f"the coordinator did not find its pair within {START_SECONDS} s:\n{said}")


def show_nodes(address: str) -> None:
    """What runs, as wide as the terminal is, by `outrider` itself."""
    sys.stdout.flush()
    if subprocess.run([BIN / "outrider", "describe", "--coordinator", address], check=False).returncode != 0:
        raise DemoError("outrider describe failed")
    print()


def measure(name: str, model: pathlib.Path, dtype: str) -> dict[str, Any]:
    return json.loads(output_of(name, "--model", model, "--dtype", dtype, "--measure", "--json"))


def choose_dtype() -> tuple[str, dict[str, Any]]:
    """What to run with, and the verifier's measurement with it.

    Where bfloat16 rows change with the number of rows beside them, rounding
    alone could make greedy output differ from plain decoding's: float32 then.
    """
    measured = measure("outrider-verifier", TARGET, "auto")
    if measured["dtype"] == "bfloat16" and measured["rows_depend_on_count"]:
        print("In bfloat16 a row's rounding depends on the rows beside it on this device:\n"
              "float32 for everything, so that outputs can be compared token for token.")
        return "float32", measure("outrider-verifier", TARGET, "float32")
    return measured["dtype"], measured


def read_prompts(token_ms: float) -> list[str]:
    """Some of the held-out prompts, evenly spread."""
    # No K costs much more than plain decoding, and some half of it.
    prompt_seconds = len(SETTINGS) * NUM_TOKENS * token_ms / 1e3
    fitting = min(max(int(DECODE_SECONDS / prompt_seconds), MIN_PROMPTS), MAX_PROMPTS)
    count = int(os.environ.get("OUTRIDER_DEMO_PROMPTS", fitting))
    lines = PROMPTS.read_text("utf-8").splitlines()
    return [json.loads(line)["prompt"] for line in lines[::len(lines) // count]][:count]


def generate(address: str, prompt: str, setting: Setting, *flags: str) -> Run:
    k = "auto" if setting.is_auto else str(setting.k)
    return Run(json.loads(output_of(
        "outrider", "generate", "--coordinator", address, "--json-rounds", "-k", k,
        *([] if setting.is_auto else ["--min-draft-probability", str(setting.min_probability)]),
        *(["--prompt-lookup"] if setting.prompt_lookup else []),
        "--max-tokens", str(NUM_TOKENS), "--ignore-eos", *flags, "--", prompt)))


def show_taste(address: str) -> None:
    """One generation, live; on a terminal in colour, by `outrider` itself."""
    demo_report.heading(f"A taste: one prompt, live, K = {TASTE_K}, temperature 0.7")
    if not demo_report.uses_color():
        print(TASTE_PROMPT, end="")
    sys.stdout.flush()
    command = [BIN / "outrider", "generate", "--coordinator", address, "-k", str(TASTE_K),
               "--temperature", "0.7", "--seed", "1", "--max-tokens", str(NUM_TOKENS),
               "--", TASTE_PROMPT]
    shown = subprocess.run(command, stdin=subprocess.DEVNULL, check=False,
                           stderr=subprocess.STDOUT)
    if shown.returncode != 0:
        raise DemoError("outrider generate failed")


@dataclasses.dataclass(frozen=True)
class Decoded:
    """Some prompts, decoded."""
    runs: dict[Setting, list[Run]]  # in the order of the prompts
    inside: demo_report.Inside


@dataclasses.dataclass(frozen=True)
class Decoder:
    """What all runs of the demo have in common."""
    address: str
    prompts: list[str]
    dtype: str
    draft_step_ms: float

    def decode(self, settings: Iterable[Setting], *flags: str, is_sampled: bool = False) -> Decoded:
        """All K of a prompt in turn, and plain decoding around them: a busy minute hits all."""
        runs: dict[Setting, list[Run]] = {setting: [] for setting in sorted(settings)}
        verifier = []
        for number, prompt in enumerate(self.prompts, 1):
            demo_report.progress(f"prompt {number} of {len(self.prompts)}")
            verifier.append(measure("outrider-verifier", TARGET, self.dtype))
            for setting, some in runs.items():
                demo_report.progress(f"prompt {number} of {len(self.prompts)}, K = {setting}")
                some.append(generate(self.address, prompt, setting, *flags))
        verifier.append(measure("outrider-verifier", TARGET, self.dtype))
        demo_report.progress("")
        return Decoded(runs, demo_report.Inside(verifier, self.draft_step_ms, is_sampled))


def run_demo() -> bool:
    """Whether greedy output was plain decoding's throughout."""
    print("Measuring the two models inside their own processes, without any RPC ...")
    dtype, measured = choose_dtype()
    draft_step_ms = measure("outrider-drafter", DRAFT, dtype)["draft_step_ms"]
    prompts = read_prompts(measured["rows_ms"][0])
    print("Starting verifier, drafter and coordinator ...\n")
    with cluster(dtype) as address:
        show_taste(address)
        decoder = Decoder(address, prompts, dtype, draft_step_ms)
        greedy = decoder.decode(SETTINGS, "--temperature", "0")
        is_same = demo_report.print_comparison(greedy.runs)
        best = demo_report.best_setting(greedy.runs)
        sampled = decoder.decode(SAMPLED_SETTINGS, "--temperature", "1", "--seed", "1", is_sampled=True)
    demo_report.print_speed(greedy.runs, greedy.inside)
    demo_report.print_formula(greedy.runs, greedy.inside)
    demo_report.print_split(greedy.runs[best], best, greedy.inside)
    demo_report.print_sampled(sampled.runs, sampled.inside)
    return is_same


def main() -> int:
    # `kill` ends the demo as Ctrl-C does: with everything stopped behind it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not (BIN / "outrider-coordinator").exists():
        print("demo: build first: make build", file=sys.stderr)
        return 1
    if len(sys.argv) > 1:
        print(f"demo: takes no arguments, not {' '.join(sys.argv[1:])}", file=sys.stderr)
        return 2
    try:
        return 0 if run_demo() else 1
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted; the services are stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
