# SPDX-License-Identifier: Apache-2.0
"""How fast it is: ratios within one run, over a probe of the memory, plain decoding, and Hugging Face's."""
import concurrent.futures
import json
import re
import shutil
import subprocess
import sys

from gpu_checks.packing import ROOT

# Ratios, and a count, that issue and docs aim at: what is below (or above) is said, and fails nothing.
GOALS = {"share_of_probe": {"llama-3.1-8b": 0.85, "llama-3.2-1b": 0.65}, "t5_over_t1": 1.10, "cycle_efficiency": 0.9,
         "over_assisted": 5.0, "late_graphs": 0}
AT_MOST = ("t5_over_t1", "late_graphs")
SESSIONS = (1, 8, 64)
KS = (0, 2, 4, 8)
BENCH_K = 4
PATIENCE = 60  # seconds for which a pair waits until those of later steps are made

# The faster of a copy, whose bytes are read and written, and a sum, whose bytes are read.
PROBE = """
import torch, time
x = torch.ones(1 << 30, dtype=torch.float32, device='cuda')
y = torch.empty_like(x)
def rate(work, num_bytes):
    for _ in range(3): work()
    torch.cuda.synchronize(); start = time.perf_counter()
    for _ in range(20): work()
    torch.cuda.synchronize(); return 20 * num_bytes / (time.perf_counter() - start)
size = x.numel() * x.element_size()
print(rate(lambda: y.copy_(x), 2 * size), rate(x.sum, size))
"""


def probe(machine):
    """Bytes a second that the device's memory gives: the faster of a copy and a sum of 4 GiB."""
    machine.needs_gpu()
    copied, summed = map(float, machine.run(machine.python, "-c", PROBE).split())
    machine.probe = max(copied, summed)
    return {"bytes_per_second": machine.probe, "copy": copied, "sum": summed}


def pair(shape, acceptance=0.8):
    """The benchmark of a shape, as a step."""
    def run(machine):
        if shape not in machine.pairs:
            make_pairs(machine, {shape: acceptance}, machine.threads)
        own = machine.pairs[shape]
        concurrent.futures.wait([own], max(1.0, machine.seconds_left()))
        if not own.done():
            raise subprocess.TimeoutExpired("make_random_pair.py", machine.seconds_left())
        # The processors are to be idle while this one measures.
        concurrent.futures.wait(machine.pairs.values(), max(1.0, min(PATIENCE, machine.seconds_left())))
        folder = own.result()
        try:
            return measure_pair(machine, shape, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    run.__name__, run.acceptance = shape, acceptance
    run.__doc__ = (f"{shape}: bandwidth at one row, T(M), the drafter's step, a round; sessions: "
                   f"{', '.join(map(str, SESSIONS))}; Hugging Face's beside it; random weights")
    return run


def kernel_times(shape, rows="1,5,16,32,64,512", name="kernels", keys=256):
    """The kernels of a shape's pass, each alone, as a step."""
    def run(machine):
        machine.needs_gpu()
        lines = machine.run("bin/cuda_kernels_benchmark", "--shape", shape, "--rows", rows, "--keys", keys,
                            "--json").splitlines()
        kernels = [json.loads(line) for line in lines]
        if kernels[0]["is_emulated"]:
            raise AssertionError(f"{kernels[0]['device']}: its times say nothing of a GPU")
        return {"of": shape, "kernels": kernels}
    run.__name__ = f"{name}-{shape}"
    run.__doc__ = f"each kernel of a pass of {shape}, in {rows} rows, {keys} keys: microseconds, bandwidth"
    return run


def make_pairs(machine, acceptances, threads):
    """Begins to make pairs of these shapes, one after the other, beside what runs meanwhile."""
    def make(shape, acceptance):
        folder = machine.folder / shape
        subprocess.run([sys.executable, ROOT / "tools/make_random_pair.py", "--shape", shape, "--out", folder,
                        "--acceptance", str(acceptance)], check=True, stdout=subprocess.DEVNULL,
                       timeout=max(1.0, machine.seconds_left()))
        return folder

    machine.threads = threads
    for shape, acceptance in acceptances.items():
        machine.pairs[shape] = threads.submit(make, shape, acceptance)


def measure_pair(machine, shape, folder):
    raw = {}

    def keep(**figures):
        """What is known by now, which a failure of what comes next does not take away."""
        raw.update(figures)
        machine.found = {"shape": shape, "ratios": ratios(raw, getattr(machine, "probe", None)), **raw}
        return machine.found

    on = ("--device", machine.device, "--measure", "--json")
    target = json.loads(machine.run("bin/outrider-verifier", "--model", folder / "target", *on))
    draft = json.loads(machine.run("bin/outrider-drafter", "--model", folder / "draft", *on))
    keep(weight_bytes=bytes_of_a_pass(folder / "target"), target=target, draft=draft)
    with machine.shared_device(), machine.cluster(folder / "target", folder / "draft") as address:
        keep(multi_process_service=bool(machine.sharing))
        greedy = {k: machine.generate(address, k, "def ")["token_ids"] for k in KS}
        if different := [k for k in KS if greedy[k] != greedy[0]]:
            raise AssertionError(f"greedy texts of K = {different} differ from plain decoding's")
        runs = {k: machine.generate(address, k, "def ", seed=1) for k in KS}
        keep(tokens_per_second={k: run["timings"]["decode_tokens_per_second"] for k, run in runs.items()},
             acceptance={k: run["totals"]["acceptance"] for k, run in runs.items()})
        keep(cells=bench(machine, address, folder), nodes=machine.gpus(address))
    return keep(assisted=assisted(machine, folder))


def bytes_of_a_pass(folder):
    """The bytes of the weights that a pass over one token reads: not the embedding's other rows, but for a tied head."""
    config = json.loads((folder / "config.json").read_text())
    table = 0 if config["tie_word_embeddings"] else 2 * config["vocab_size"] * config["hidden_size"]
    return (folder / "model.safetensors").stat().st_size - table


def bench(machine, address, folder):
    """Cells of `outrider bench`: K and sessions, tokens a second, acceptance, and a round's time."""
    out = folder / "bench"
    machine.run("bin/outrider", "bench", "sweep", "--coordinator", address, "--rtt", 0, "-k", f"0,{BENCH_K}",
                "--concurrency", ",".join(map(str, SESSIONS)), "--acceptance-rule", "rejection", "--temperature", 1,
                "--max-tokens", 128, "--seconds", 3, "--prompts", ROOT / "models/bench_prompts.jsonl", "--out", out)
    cells = []
    for line in (out / "results.jsonl").read_text("utf-8").splitlines():
        cell = json.loads(line)
        cells.append({"k": cell["k"], "sessions": cell["load"]["concurrency"], "failures": cell["failures"],
                      "tokens_per_second": cell["tokens_per_second"], "tokens_per_round": cell["tokens_per_round"],
                      "round_ms": sum(cell["round_split"].values()), "round_split": cell["round_split"]})
    if failed := [cell for cell in cells if cell["failures"]]:
        raise AssertionError(f"requests failed: {failed}")
    return cells


def assisted(machine, folder):
    """What Hugging Face's assisted generation does with the pair; why not, where it is not installed."""
    if not (machine.has_module("transformers") and machine.has_module("torch")):
        return {"not_run": f"{machine.python} has no transformers"}
    try:
        script = ROOT / "tools/gpu_checks/assisted.py"
        return json.loads(machine.run(machine.python, script, folder / "target", folder / "draft", BENCH_K, machine.device,
                                      seconds=120).splitlines()[-1])
    except (AssertionError, subprocess.SubprocessError, ValueError, IndexError) as error:
        return {"not_run": str(error)[-300:]}


def ratios(raw, probe_rate):
    """What is worth quoting: each of two figures of this run, as far as it has come. Both are of temperature 1."""
    rows, step = raw["target"]["rows_ms"], raw["draft"]["draft_sampled_step_ms"]
    plain = raw["target"]["plain_sampled_tokens_per_second"]
    cells = {(cell["k"], cell["sessions"]): cell for cell in raw.get("cells", ())}
    result = {f"t{m}_over_t1": rows[m - 1] / rows[0] for m in (2, 3, 5, 9)}
    result["step_over_pass"] = step / rows[0]
    if alone := cells.get((BENCH_K, 1)):
        result["cycle_efficiency"] = (BENCH_K * step + rows[BENCH_K]) / alone["round_ms"]
    for (k, sessions), cell in sorted(cells.items()):
        result[f"over_plain_k{k}_{sessions}"] = cell["tokens_per_second"] / plain
    if nodes := raw.get("nodes"):
        result["late_graphs"] = sum(int(re.search(r"\((\d+) captured late\)", line)[1]) for line in nodes)
    if probe_rate:
        result["share_of_probe"] = raw["weight_bytes"] / (rows[0] / 1e3) / probe_rate
    if rate := raw.get("assisted", {}).get("assisted_tokens_per_second"):
        result["over_assisted"] = cells[BENCH_K, 1]["tokens_per_second"] / rate
    return {name: round(value, 3) for name, value in result.items()}


def missed_goals(shape, figures):
    """Sentences about the ratios that are not what they should be."""
    missed = []
    for name, goal in GOALS.items():
        goal = goal.get(shape) if isinstance(goal, dict) else goal
        value = figures.get(name)
        if goal is None or value is None:
            continue
        at_most = name in AT_MOST
        if value > goal if at_most else value < goal:
            missed.append(f"{shape}: {name} {value:g}, to be at {'most' if at_most else 'least'} {goal:g}")
    return missed
