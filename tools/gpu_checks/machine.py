# SPDX-License-Identifier: Apache-2.0
"""The machine that checks run on: its programs, its device, and how long it may still take."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from gpu_checks.packing import KERNELS, ROOT
from program import Program

# It is not imported, which would take seconds and all that it depends on.
FIND_TORCH = "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"


MPS = "nvidia-cuda-mps-control"


class NotRunError(Exception):
    """What a step needs is not on this machine."""


class UnprovenError(Exception):
    """A check began, and came to no end that says anything."""


class Machine:
    """Programs below `folder`, which run models on `device` ("cuda" or "cpu") until `end` (of time.monotonic).

    `found` is what the step under way has found so far."""

    def __init__(self, folder, device, python, end):
        self.folder, self.device, self.python, self.end, self.found = folder, device, python, end, {}
        self.pairs = {}  # of shapes: what becomes of each one's folder (benchmarks.make_pairs)
        self.sharing = {}  # what programs of a cluster have in their environment besides
        torch = subprocess.run([python, "-c", FIND_TORCH], capture_output=True, text=True, check=False).stdout.strip()
        if not torch:
            sys.exit(f"gpu_check: {python} has no torch, whose libraries the programs load (--python: another one)")
        self.torch_version = re.search(r"__version__ = ['\"](.*?)['\"]", (pathlib.Path(torch) / "version.py").read_text())[1]
        print(f"torch {self.torch_version} in {torch}")
        nvidia = [str(p) for p in pathlib.Path(torch).parent.glob("nvidia/*/lib")]
        # What was there stays: some machines find the driver, libcuda.so.1, by it alone.
        before = [path for path in [os.environ.get("LD_LIBRARY_PATH")] if path]
        self.environment = os.environ | {
            "LD_LIBRARY_PATH": ":".join([str(self.folder / "lib"), f"{torch}/lib", *nvidia, *before]),
            "OUTRIDER_SOURCE_DIR": str(ROOT), "OUTRIDER_CUDA_LIBRARY": str(self.folder / KERNELS),
            "OMP_WAIT_POLICY": "passive"}

    def seconds_left(self):
        return self.end - time.monotonic()

    def needs_gpu(self):
        if self.device == "cpu":
            raise NotRunError("it is of GPUs, and --device is cpu")

    def run(self, *command, seconds=300):
        """Its output. AssertionError: it failed, and how."""
        words = [str(self.folder / command[0]) if command[0].startswith(("bin/", "tests/")) else str(command[0]),
                 *map(str, command[1:])]
        limit = max(1.0, min(seconds, self.seconds_left()))
        # The pack's libraries are for its programs: that machine's Python, and its tools, have others of the same names.
        ours = tuple(str(self.folder / name) for name in ("bin/", "tests/"))
        environment = self.environment if any(word.startswith(ours) for word in words) else None
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as process:
            try:
                out, err = process.communicate(timeout=limit)
            except BaseException:
                # What it started ends too, or compute-sanitizer's program would have the device beside what comes next.
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if process.returncode != 0:
            raise AssertionError(f"{command[0]} ended with {process.returncode}: {(out + err)[-2000:]}")
        return out

    @contextlib.contextmanager
    def shared_device(self):
        """A while in which the programs of a cluster share the device by CUDA's multi-process service, where it is
        installed and works: else the device changes between their contexts, twice a round."""
        if self.device == "cpu" or not self.has_program(MPS):
            yield
            return
        names = {"CUDA_MPS_PIPE_DIRECTORY": str(self.folder / "mps"), "CUDA_MPS_LOG_DIRECTORY": str(self.folder / "mps-log")}
        for folder in names.values():
            pathlib.Path(folder).mkdir(exist_ok=True)
        environment = self.environment | names

        def ask(command):
            return subprocess.run([MPS], env=environment, input=command, text=True, timeout=20, check=False,
                                  stdout=subprocess.PIPE).stdout
        try:
            try:
                # It runs on with what it is given, so that a pipe of ours would not end.
                subprocess.run([MPS, "-d"], env=environment, check=True, timeout=20, stdout=subprocess.DEVNULL)
                subprocess.run([self.folder / "bin/cuda_kernels_benchmark", "--shape", "tiny", "--turns", "1"],
                               env=environment, check=True, timeout=20, capture_output=True)
                # A program that does not reach the service runs without it.
                self.sharing = names if ask("get_server_list\n").strip() else {}
            except (OSError, subprocess.SubprocessError) as error:
                print(f"the multi-process service is not used: {error}", flush=True)
            yield
        finally:
            self.sharing = {}
            # What was measured counts, whatever becomes of the service.
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                ask("quit -t 1\n")

    def generate(self, address, k, prompt, *flags, seed=None, max_tokens=64):
        """What a generation came to, greedy where it has no seed. The prompt is a text, or a list of token ids."""
        sampling = ["--temperature", "0"] if seed is None else ["--temperature", "1", "--seed", str(seed)]
        text = ["--", prompt] if isinstance(prompt, str) else ["--prompt-tokens", " ".join(map(str, prompt))]
        return json.loads(self.run("bin/outrider", "generate", "--coordinator", address, "--json", "-k", k, *sampling,
                                   "--max-tokens", max_tokens, "--ignore-eos", *flags, *text))

    def describe(self, address):
        return self.run("bin/outrider", "describe", "--coordinator", address)

    def gpus(self, address):
        """What the nodes' GPUs have done, a line each."""
        return [line for line in self.describe(address).splitlines() if "graphs" in line]

    def _wait_for_pair(self, address, patience=60):
        """Waits until the coordinator has found both."""
        end = time.monotonic() + patience
        while True:
            table = self.describe(address)
            if {"verifier", "drafter"} <= {line.split()[0] for line in table.splitlines() if line.strip()}:
                return
            if time.monotonic() > end:
                raise AssertionError(f"the coordinator did not find its pair:\n{table}")
            time.sleep(0.2)

    @contextlib.contextmanager
    def cluster(self, target, draft, device=None):
        """Verifier and drafter on the device, this machine's if no other is named, and a coordinator, whose address it
        yields."""
        device = device or self.device
        running = []
        sockets = tempfile.mkdtemp(prefix="gpu", dir="/tmp")  # a socket's path ends at 107 bytes

        def start(name, *flags, listen="127.0.0.1:0"):
            program = Program(self.folder / "bin" / name, "--listen", listen, *flags,
                              environment=self.environment | self.sharing)
            running.append(program)
            try:
                return program.address(max(1.0, self.seconds_left()))
            except AssertionError:
                if self.seconds_left() > 0:
                    raise
                raise subprocess.TimeoutExpired(name, self.seconds_left()) from None

        # A core for each program that waits for another one's pass: to wake one that halted takes longer than a call.
        spin = ["--spin-us", 50000] if (os.cpu_count() or 1) >= 8 else []
        # Bytes, as a share of a GPU's memory has every graph captured twice. 64 sessions of the 8B shape need 3 GiB.
        node = ["--device", device, "--kv-cache-memory", "1GiB" if device == "cpu" else "8GiB", *spin]
        try:
            verifier = start("outrider-verifier", "--model", target, *node, listen=f"unix:{sockets}/verifier")
            drafter = start("outrider-drafter", "--model", draft, *node, listen=f"unix:{sockets}/drafter")
            address = start("outrider-coordinator", "--verifier", verifier, "--drafter", drafter, "--tokenizer", target, *spin)
            self._wait_for_pair(address)
            yield address
        finally:
            for program in reversed(running):
                program.send(signal.SIGTERM)
            for program in running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    program.wait(30)
                program.close()
            shutil.rmtree(sockets, ignore_errors=True)

    def has_module(self, name):
        """Whether the machine's Python has it."""
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
        return subprocess.run([self.python, "-c", code], check=False).returncode == 0

    @staticmethod
    def has_program(name):
        return shutil.which(name) is not None
