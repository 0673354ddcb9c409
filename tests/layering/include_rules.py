# SPDX-License-Identifier: Apache-2.0
"""The rules on files and their #include lines, as a function from a tree to violations."""
import os
import pathlib
import re
import subprocess
from typing import NamedTuple

from violation import Violation

# Who may include whom: every room of the tree with its layer. A room may include
# itself, core/base and core/telemetry (which may include core/base only).
CORE = ["core/session", "core/sampling", "core/wire", "core/rpc"]
ENGINE = ["core/session", "core/model"]
NODE = [*CORE, "core/model", "core/engine", "core/node"]
ROUND = ["core/session", "core/sampling", "core/wire"]
PEERS = [*ROUND, "core/drafting", "coordinator/round", "coordinator/control"]
NODES = [*PEERS, "coordinator/peers"]
POOL = [*NODES, "core/rpc", "coordinator/nodes"]
LOAD = ["core/wire", "core/rpc", "client", "bench/network"]
REPORT = [*LOAD, "bench/load"]
LAYERS = {
    "core/base": [],
    "core/telemetry": [],
    "core/session": [],
    "core/sampling": ["core/session", "core/kernels"],
    "core/drafting": ["core/session", "core/sampling", "core/model"],
    "core/json": [],
    "core/tokenizer": ["core/json"],
    "core/model": ["core/json"],
    "core/kernels": [],
    "core/cuda_model": ["core/kernels", "core/model"],
    "core/torch_model": ["core/cuda_model", "core/kernels", "core/model"],
    "core/wire": ["core/session", "core/sampling", "core/model"],
    "core/rpc": [],
    "core/engine": ENGINE,
    "core/node": [*CORE, "core/model", "core/engine", "core/tokenizer"],
    "core/testing": [*ENGINE, "core/engine", "core/sampling", "core/rpc"],
    "drafter": [*NODE, "core/drafting", "core/tokenizer"],
    "verifier": NODE,
    "coordinator/round": ROUND,
    "coordinator/control": ["core/session", "core/sampling", "core/wire"],
    "coordinator/peers": PEERS,
    "coordinator/nodes": NODES,
    "coordinator/pool": POOL,
    "coordinator/service": [*POOL, "core/tokenizer", "coordinator/pool"],
    "client": ["core/sampling", "core/wire", "core/rpc"],
    "bench/network": ["core/rpc"],
    "bench/load": LOAD,
    "bench/report": REPORT,
    "bench/command": [*REPORT, "bench/report", "core/sampling"],
}
# A main puts together what its libraries may not know of. Those of rooms lie above
# them: coordinator/coordinator_main.cc.
MAINS = {
    "drafter": ["core/torch_model", "core/tokenizer"],
    "verifier": ["core/torch_model", "core/tokenizer"],
    "coordinator": [*LAYERS["coordinator/service"], "coordinator/service"],
    "client": ["bench/command", "bench/load"],
}
EVERYWHERE = ("core/base", "core/telemetry")
TESTING, SUPPORT, TESTS, MICRO = "core/testing", "tests/support", "tests", "bench/micro"
# Test support that lies beside what it supports.
SUPPORT_FILES = ("bench/command/bench_test.h", "client/scripted_generation_service.h", "core/cuda_model/small_model.h",
                 "core/kernels/random_values.h", "core/kernels/test_variants.h", "core/kernels/cuda/gpu_fixture.h",
                 "core/kernels/cuda/kernel_test.h")

TORCH = re.compile(r"(torch|ATen|c10|caffe2)/")
GRPC = re.compile(r"(grpc|grpcpp|grpc\+\+|google/protobuf)/|.*\.pb\.h$")
GRPC_FOLDERS = ("core/wire/", "core/rpc/", "core/node/", "core/testing/", "tests/")
GRPC_FILES = re.compile(r"(.*_service|grpc_.*|generation_(client|request)|describe_convert|.*_main)$")

# Clocks that somebody may set, and the files that tell people the time, or turn waits by such a clock into others.
SYSTEM_CLOCK = re.compile(r"\b(system_clock|high_resolution_clock|absl::Now|gettimeofday|CLOCK_REALTIME\w*|"
                          r"GPR_CLOCK_REALTIME|(?:std)?::time\(|time\((?:nullptr|NULL|0)\)|utc_clock)")
TELLS_THE_TIME = ("core/base/log.cc", "bench/load/machine.cc", "core/rpc/steady_waits.cc")

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
SPDX = "// SPDX-License-Identifier: Apache-2.0"
SUFFIXES = (".h", ".cc", ".cu", ".cuh")
BUDGETS = {"header": 120, "source": 400, "test": 500}


class Include(NamedTuple):
    line: int
    quoted: bool
    path: str


class File:
    """One source file: its path from the root, its lines, its includes."""

    def __init__(self, root, path):
        self.path = path
        self.folder, _, self.name = path.rpartition("/")
        self.stem, _, suffix = self.name.rpartition(".")
        self.is_header = suffix == "h"
        self.is_test = self.stem.endswith("_test")
        # What a main is put together from: it links torch, which the library may not know.
        self.is_main = self.name.endswith("_main.cc")
        self.layer = layer_of(path)
        self.lines = (root / path).read_text("utf-8").splitlines()
        self.includes = [Include(i, m[1] == '"', m[2])
                         for i, line in enumerate(self.lines, 1) if (m := INCLUDE.match(line))]


def layer_of(path):
    """The room of the graph that a path is in: its folder, or the nearest above that is one."""
    folder = path.rpartition("/")[0]
    while folder and folder not in (*LAYERS, *MAINS, SUPPORT, TESTS, MICRO):
        folder = folder.rpartition("/")[0]
    return folder


def source_paths(root, suffixes=SUFFIXES):
    """The tree's source files: what git tracks or would track; without git, all but build output."""
    try:
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True, capture_output=True, text=True).stdout.split("\0")
        paths = [p for p in listed if (root / p).is_file()]
    except (OSError, subprocess.CalledProcessError):
        paths = list(walk(root))
    return sorted(p for p in paths if p.endswith(suffixes))


def walk(root):
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [s for s in subfolders if s != "build" and not s.startswith(".")]
        for name in names:
            yield (pathlib.Path(folder) / name).relative_to(root).as_posix()


def check_tree(root):
    """All violations in the tree below `root`."""
    files = {path: File(root, path) for path in source_paths(root)}
    violations = []
    for file in files.values():
        for rule in (check_spdx, check_budget, check_guard, check_clock):
            violations += rule(file)
        for rule in (check_paths, check_graph, check_tests_apart, check_torch, check_grpc, check_one_of_both):
            violations += rule(file, files)
    return sorted(violations)


def check_spdx(file):
    if not file.lines or file.lines[0] != SPDX:
        yield Violation(file.path, 1, "spdx", f"the first line is not `{SPDX}`")


def check_budget(file):
    # Kernels are templates over the vector type, compiled once a level: sources
    # by what they hold, whatever their suffix.
    is_template = file.path.startswith("core/kernels/cpu/")
    kind = ("header" if file.is_header and not is_template else
            "test" if file.is_test else "source")
    budget = BUDGETS[kind]
    if len(file.lines) > budget:
        yield Violation(file.path, budget + 1, "budget",
                        f"{len(file.lines)} lines; a {kind} has at most {budget}")


def check_guard(file):
    if not file.is_header:
        return
    guard = "OUTRIDER_" + re.sub(r"[^A-Z0-9]", "_", file.path.upper()) + "_"
    directives = [(i, line) for i, line in enumerate(file.lines, 1) if line.startswith("#")]
    if [line for _, line in directives[:2]] != [f"#ifndef {guard}", f"#define {guard}"]:
        line = directives[0][0] if directives else 1
        yield Violation(file.path, line, "guard", f"the include guard is not {guard}")


def check_clock(file):
    """Deadlines, leases and measurements go by the steady clock: the system's may be set."""
    if file.path in TELLS_THE_TIME or file.is_test or file.layer in (TESTS, MICRO):
        return
    for i, line in enumerate(file.lines, 1):
        if found := SYSTEM_CLOCK.search(line.partition("//")[0]):
            yield Violation(file.path, i, "clock", f"`{found[0]}`: what waits or measures reads the steady clock "
                            "(MonotonicClock, std::chrono::steady_clock, core/rpc/deadline.h)")


def check_paths(file, files):
    """Includes are written from the repository's root, one's own header first."""
    for include in file.includes:
        beside = f"{file.folder}/{include.path}"
        if "../" in include.path:
            yield Violation(file.path, include.line, "dot-dot", f"`{include.path}` climbs by ../")
        elif include.quoted and include.path not in files and beside in files:
            yield Violation(file.path, include.line, "root-path",
                            f"`{include.path}` does not start at the repository root: `{beside}`")
        if include.path.endswith("_main.cc"):
            yield Violation(file.path, include.line, "main", "nothing includes a main")
    own = f"{file.folder}/{file.stem}.h"
    if own in files and file.name.endswith(".cc") and file.includes and file.includes[0].path != own:
        yield Violation(file.path, file.includes[0].line, "own-header-first",
                        f"the first include is not `{own}`")


def allowed_layers(file):
    """The rooms a file may include, or None for all of them."""
    if file.layer in (TESTS, SUPPORT, MICRO):
        return None
    allowed = {file.layer, *EVERYWHERE, *LAYERS.get(file.layer, [])}
    if file.layer in EVERYWHERE:
        allowed = {file.layer, "core/base"}
    if file.is_main:
        allowed.update(MAINS.get(file.layer, []))
    return allowed


def is_test_support(file):
    own_header = f"{file.folder}/{file.stem}.h"
    return file.layer in (TESTING, SUPPORT, TESTS) or own_header in SUPPORT_FILES


def check_tests_apart(file, files):
    """Who includes what is written for tests: they alone, and benchmarks of single parts, which make up inputs too."""
    for include in file.includes:
        layer = layer_of(include.path)
        if include.path in SUPPORT_FILES and not (file.is_test or is_test_support(file) or file.layer == MICRO):
            yield Violation(file.path, include.line, "testing", f"only tests include `{include.path}`")
        # Whoever changes a test need not ask what is measured with it.
        if file.path.startswith("bench/") and layer == TESTS and include.path in files:
            yield Violation(file.path, include.line, "graph", f"bench may not include tests: `{include.path}`")


def check_graph(file, files):
    room_of_mains = file.layer in MAINS and file.is_main
    if file.layer not in (*LAYERS, SUPPORT, TESTS, MICRO) and not room_of_mains:
        yield Violation(file.path, 1, "graph", f"the folder `{file.folder}` is not in the graph")
        return
    allowed = allowed_layers(file)
    for include in file.includes:
        layer = layer_of(include.path)
        if layer in (TESTING, SUPPORT):
            if file.layer not in (TESTING, SUPPORT, TESTS) and not file.is_test:
                yield Violation(file.path, include.line, "testing", f"only tests include {layer}")
            elif file.layer == TESTING and layer == SUPPORT:
                yield Violation(file.path, include.line, "graph",
                                f"{file.layer} may not include {layer}: `{include.path}`")
        elif include.path not in files or allowed is None or layer in allowed:
            continue
        else:
            yield Violation(file.path, include.line, "graph",
                            f"{file.layer} may not include {layer}: `{include.path}`")


def check_torch(file, files):
    del files
    for include in file.includes:
        if TORCH.match(include.path) and file.layer != "core/torch_model":
            yield Violation(file.path, include.line, "torch",
                            f"`{include.path}`: torch stays in core/torch_model")
        elif TORCH.match(include.path) and not file.name.endswith((".h", ".cc")):
            yield Violation(file.path, include.line, "torch", "device code includes no torch header")


def check_grpc(file, files):
    del files
    stem = file.stem.removesuffix("_test")
    if file.path.startswith(GRPC_FOLDERS) or GRPC_FILES.match(stem):
        return
    for include in file.includes:
        if GRPC.match(include.path):
            yield Violation(file.path, include.line, "grpc",
                            f"`{include.path}`: messages and gRPC stay in the shells")


def check_one_of_both(file, files):
    """No translation unit sees torch and gRPC, not even by way of other headers."""
    if file.is_header or file.name.endswith(".cuh"):
        return
    seen, waiting = set(), [(include.line, include.path) for include in file.includes]
    first = {}  # "torch", "grpc" → (line of the first include that leads there, header)
    while waiting:
        line, path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        for kind, pattern in (("torch", TORCH), ("grpc", GRPC)):
            if pattern.match(path):
                first.setdefault(kind, (line, path))
        if path in files:
            waiting += [(line, include.path) for include in files[path].includes]
    if len(first) == 2:
        line = max(line for line, _ in first.values())
        headers = " and ".join(f"`{path}`" for _, path in first.values())
        yield Violation(file.path, line, "torch-and-grpc", f"one translation unit sees {headers}")
