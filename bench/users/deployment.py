# SPDX-License-Identifier: Apache-2.0
"""A verifier, a drafter and a coordinator as processes, and what they say of themselves."""
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from program import Program, wait_until  # noqa: E402

BIN = ROOT / "build/release/bin"
TARGET, DRAFT = ROOT / "models/demo-target", ROOT / "models/demo-draft"
# A request here takes less.
TIMEOUT_SECONDS = 300


class Deployment:
    """The three programs, on free ports of this machine."""

    def __init__(self, verifier, drafter=None, coordinator=(), bin_folder=BIN):
        """Each node by its flags. Without a drafter decoding is plain."""
        self.programs = {}
        self._bin = bin_folder
        address = {"verifier": self._start("verifier", *verifier)}
        if drafter is not None:
            address["drafter"] = self._start("drafter", *drafter)
        flags = [word for role, at in address.items() for word in (f"--{role}", at)]
        self.address = self._start("coordinator", *flags, *coordinator)
        wait_until("the coordinator has found its nodes", lambda: self._has_found(address))

    def _start(self, role, *flags):
        program = Program(self._bin / f"outrider-{role}", "--listen", "127.0.0.1:0",
                          "--metrics-listen", "127.0.0.1:0", *flags, own_session=True)
        self.programs[role] = program
        return program.address()

    def _has_found(self, roles):
        words = [self._bin / "outrider", "describe", "--coordinator", self.address]
        table = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        return all(re.search(rf"^{role} ", table, re.M) for role in roles)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in reversed(self.programs.values()):
            if (status := program.process.poll()) is not None:
                print(f"{program.name} ended by itself, {status}: {program.err()[-2000:]}", file=sys.stderr)
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.end()
            program.close()

    def value(self, role, name, **labels):
        """The sum of a metric's samples that have these labels."""
        at = re.search(r"metrics on (\S+)", self.programs[role].out())[1]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{at}/metrics", timeout=30) as reply:
            text = reply.read().decode()
        samples = re.findall(rf"^outrider_{name}(?:\{{(.*)\}})? (\S+)$", text, re.M)
        return sum(float(value) for has, value in samples
                   if all(f'{key}="{label}"' in has for key, label in labels.items()))

    def resident_bytes(self, role):
        pid = self.programs[role].process.pid
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def wait_until_idle(self):
        wait_until("all sessions have ended", lambda: self.value("verifier", "sessions") == 0)

    def generate(self, *flags):
        """A generation that has begun, as a program; `finished` reads it."""
        return Program(self._bin / "outrider", "generate", "--coordinator", self.address,
                       "--json-rounds", "--ignore-eos", "--timeout", TIMEOUT_SECONDS, *flags)

    def load(self, users, k, *flags):
        """What `outrider bench run` measures with so many users."""
        return bench(self._bin, "run", "--coordinator", self.address, "-k", k, "--concurrency", users,
                     "--timeout", TIMEOUT_SECONDS, *flags)[-1]


def finished(program):
    """The result of a generation; AssertionError where it failed."""
    status = program.wait(TIMEOUT_SECONDS)
    if status != 0:
        raise AssertionError(f"a stream failed: {program.out()} {program.err()}")
    result = json.loads(program.out())
    program.close()
    return result


def bench(bin_folder, command, *flags):
    """Runs `outrider bench`: a dictionary a point. Failed requests are in there, and no error."""
    with tempfile.TemporaryDirectory(prefix="outrider-users-") as folder:
        words = [bin_folder / "outrider", "bench", command, "--out", folder, *map(str, flags)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        # It exits with 1, too, where a node or the coordinator is gone.
        is_measured = done.returncode == 0 or done.returncode == 1 and " requests failed\n" in done.stderr
        if not is_measured:
            raise AssertionError(f"outrider bench failed: {done.stderr}")
        lines = (pathlib.Path(folder) / "results.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


def write_prompts(path, count, length):
    """So many prompts of so many token ids, no two of which begin alike."""
    with open(path, "w", encoding="utf-8") as out:
        for i in range(count):
            tokens = [(i * 7919 + j * j + (i >> 8)) % 250 + 1 for j in range(length)]
            tokens[:3] = [i % 250 + 1, i // 250 % 250 + 1, i // 62500 + 1]
            out.write(json.dumps({"prompt": tokens}) + "\n")
