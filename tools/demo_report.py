# SPDX-License-Identifier: Apache-2.0
"""What tools/demo.py prints: the check, the tables, the formula."""
import dataclasses
import os
import statistics
import sys
from collections.abc import Callable
from typing import Any

BOLD, GREEN, RED, DIM, RESET = "\033[1m", "\033[32m", "\033[31m", "\033[2m", "\033[0m"


@dataclasses.dataclass(frozen=True)
class Run:
    """One generation, as `outrider generate --json` tells it."""
    json: dict[str, Any]

    @property
    def tokens(self) -> list[int]:
        return self.json["token_ids"]

    @property
    def speed(self) -> float:
        """Tokens per second behind the first message."""
        return self.json["timings"]["decode_tokens_per_second"]

    @property
    def decode_rounds(self) -> list[dict[str, Any]]:
        """Without the first one, which fills the caches with the prompt."""
        return self.json["rounds"][1:]


@dataclasses.dataclass(frozen=True)
class Inside:
    """What the models do inside their own processes."""
    rows_ms: list[float]  # T(1), T(2), ...
    draft_step_ms: float
    plain_tokens_per_second: list[float]  # before and after the runs
    description: str

    @property
    def plain_speed(self) -> float:
        return statistics.mean(self.plain_tokens_per_second)


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The formula for one K, in units of T(1)."""
    alpha: float
    tokens: float  # E(K)
    drafting: float  # K c
    verifying: float  # v
    overhead: float  # o

    @property
    def speed_up(self) -> float:
        return self.tokens / (self.drafting + self.verifying + self.overhead)


def uses_color() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def styled(style: str, text: str) -> str:
    return f"{style}{text}{RESET}" if uses_color() else text


def heading(text: str) -> None:
    print(f"\n{styled(BOLD, text)}\n")


def progress(text: str) -> None:
    """A line that the next one replaces; only where somebody watches."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text}", end="", flush=True)


def median_of(runs: list[Run], value: Callable[[Run], float]) -> float:
    return statistics.median(value(run) for run in runs)


def total(runs: list[Run], field: str) -> float:
    return sum(run.json["totals"][field] for run in runs)


def first_difference(a: list[int], b: list[int]) -> int | None:
    """Index of the first token that differs, a missing one included."""
    for index in range(max(len(a), len(b))):
        if a[index:index + 1] != b[index:index + 1]:
            return index
    return None


def print_comparison(runs: dict[int, list[Run]]) -> bool:
    """A line for each K: is greedy output that of K = 0, token for token?"""
    plain = runs[0]
    num_tokens = sum(len(run.tokens) for run in plain)
    heading(f"Temperature 0: the same tokens as plain decoding (K = 0)? {len(plain)} prompts, "
            f"{num_tokens} tokens")
    is_same = True
    for k in sorted(runs.keys() - {0}):
        differences = [(number, position)
                       for number, (a, b) in enumerate(zip(plain, runs[k]), 1)
                       if (position := first_difference(a.tokens, b.tokens)) is not None]
        if differences:
            is_same = False
            where = ", ".join(f"prompt {n} from token {p} on" for n, p in differences)
            print(f"  {styled(RED, 'DIFFERENT')}  K = {k}: {where}")
        else:
            print(f"  {styled(GREEN, 'identical')}  K = {k}")
    print_troubles(runs)
    return is_same


def print_troubles(runs: dict[int, list[Run]]) -> None:
    for field, words in (("num_draft_failures", "drafts that failed"),
                         ("num_misses", "caches that were lost")):
        count = sum(run.json[field] for all_runs in runs.values() for run in all_runs)
        if count:
            print(f"  note: {count} {words} on the way")


def speed_up_over_plain(runs: list[Run], inside: Inside) -> float:
    return median_of(runs, lambda run: run.speed / inside.plain_speed)


def speed_up_over_zero(runs: dict[int, list[Run]], k: int) -> float:
    """Prompt by prompt: the two runs of a pair were decoded within a second or so."""
    return statistics.median(run.speed / zero.speed for run, zero in zip(runs[k], runs[0]))


def best_draft_length(runs: dict[int, list[Run]]) -> int:
    return max(runs.keys() - {0}, key=lambda k: speed_up_over_zero(runs, k))


def print_speed(runs: dict[int, list[Run]], inside: Inside) -> None:
    heading("Speed: medians over the prompts, prompt processing not counted")
    low, high = sorted(inside.plain_tokens_per_second)
    print(f"Plain decoding inside the verifier, no RPC: {inside.plain_speed:.1f} tokens/s "
          f"({inside.description};\nmeasured before and after: {low:.1f} and {high:.1f})\n")
    if high > 1.1 * low:
        print(styled(BOLD, "These two should be equal: something else kept this machine busy, and "
                           "what follows is rough.\n"))
    print_speed_table(runs, inside)


def print_speed_table(runs: dict[int, list[Run]], inside: Inside) -> None:
    print("                                            speed-up over    speed-up over\n"
          " K   accepted   tokens/round   tokens/s   plain, inside   K = 0, by RPC")
    best = best_draft_length(runs)
    for k in sorted(runs):
        drafted = total(runs[k], "drafted")
        accepted = f"{100 * total(runs[k], 'accepted') / drafted:.0f} %" if drafted else "-"
        per_round = total(runs[k], "tokens") / total(runs[k], "rounds")
        line = (f"{k:2}   {accepted:>8}   {per_round:12.2f}   "
                f"{median_of(runs[k], lambda run: run.speed):8.1f}   "
                f"{speed_up_over_plain(runs[k], inside):12.2f}x   "
                f"{speed_up_over_zero(runs, k):12.2f}x")
        print(styled(BOLD, f"{line}   <- best K") if k == best else line)


def predict(runs: list[Run], k: int, inside: Inside) -> Prediction:
    rounds = [one for run in runs for one in run.decode_rounds]
    accepted = sum(one["accepted"] for one in rounds)
    refused = sum(one["accepted"] < one["drafted"] for one in rounds)
    alpha = accepted / (accepted + refused) if accepted + refused else 0.0
    overhead_ms = statistics.median(
        one["round_ms"] - one["draft_compute_ms"] - one["verify_compute_ms"] for one in rounds)
    plain_ms = inside.rows_ms[0]
    return Prediction(
        alpha=alpha,
        tokens=sum(alpha**i for i in range(k + 1)),
        drafting=k * inside.draft_step_ms / plain_ms,
        verifying=inside.rows_ms[k] / plain_ms,
        overhead=overhead_ms / plain_ms)


def print_formula(runs: dict[int, list[Run]], inside: Inside) -> None:
    heading("The formula beside the measurement: speed-up = E(K) / (K c + v + o)")
    plain_ms = inside.rows_ms[0]
    print(f"Times in units of T(1) = {plain_ms:.2f} ms, the verifier's pass over one token:\n"
          "  a      accepted / (accepted + refused): drafts behind a refusal were never judged\n"
          "  E(K)   1 + a + ... + a^K, tokens a round if every draft were accepted with chance a\n"
          f"  c      one draft token: {inside.draft_step_ms:.2f} ms, or "
          f"{inside.draft_step_ms / plain_ms:.3f}\n"
          "  v      T(K + 1), the pass over K drafts and one token\n"
          "  o      the rest of a round: RPC, packing, acceptance (round less compute, median)\n")
    print(" K      a    E(K)    K c      v      o    formula   measured")
    for k in sorted(runs):
        p = predict(runs[k], k, inside)
        alpha = f"{p.alpha:.2f}" if k else "-"
        print(f"{k:2}   {alpha:>4}   {p.tokens:5.2f}   {p.drafting:4.2f}   {p.verifying:4.2f}   "
              f"{p.overhead:4.2f}   {p.speed_up:7.2f}x   "
              f"{speed_up_over_plain(runs[k], inside):7.2f}x")


def print_split(runs: list[Run], k: int, inside: Inside) -> None:
    heading(f"Where a round's time goes at K = {k}")
    rounds = [one for run in runs for one in run.decode_rounds if one["drafted"] == k]

    def mean(field: str) -> float:
        return statistics.mean(one[field] for one in rounds)

    draft, verify, whole = mean("draft_ms"), mean("verify_ms"), mean("round_ms")
    parts = [("draft", draft, mean("draft_compute_ms"), k * inside.draft_step_ms),
             ("verify", verify, mean("verify_compute_ms"), inside.rows_ms[k])]
    for name, ms, compute, alone in parts:
        print(f"  {name:6}  {ms:6.2f} ms  {100 * ms / whole:3.0f} %   {compute:.2f} ms of it "
              f"computing ({alone:.2f} ms where nothing else runs)")
    rest = whole - draft - verify
    print(f"  {'rest':6}  {rest:6.2f} ms  {100 * rest / whole:3.0f} %   the coordinator's own work")
    kilobytes = (total(runs, "drafter_bytes") + total(runs, "verifier_bytes")) / 1e3
    print(f"  {'round':6}  {whole:6.2f} ms          {kilobytes / total(runs, 'tokens'):.1f} kB of "
          "messages a token, mostly the verifier's logits")


def print_sampled(runs: dict[int, list[Run]], inside: Inside) -> None:
    heading("Temperature 1, seed 1: other tokens, drawn from the target's distribution all the same")
    print_speed_table(runs, inside)
