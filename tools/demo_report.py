# SPDX-License-Identifier: Apache-2.0
"""What tools/demo.py prints: the check, the tables, the formula."""
import dataclasses
import os
import statistics
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

BOLD, GREEN, RED, DIM, RESET = "\033[1m", "\033[32m", "\033[31m", "\033[2m", "\033[0m"


class Setting(NamedTuple):
    """How a round drafts."""
    k: int
    min_probability: float = 0.0  # drafting stops early below it; 0: never
    prompt_lookup: bool = False  # drafts come from the text where it repeats itself
    is_auto: bool = False  # the coordinator chooses K for each round, k at most

    def __str__(self) -> str:
        if self.is_auto:
            return "auto"
        return f"{self.k}{'?' * bool(self.min_probability)}{'+' * self.prompt_lookup}"

    @property
    def is_plain_k(self) -> bool:
        return not self.min_probability and not self.prompt_lookup and not self.is_auto


PLAIN = Setting(0)
AUTO = Setting(16, is_auto=True)


@dataclasses.dataclass(frozen=True)
class Run:
    """One generation, as `outrider generate --json-rounds` tells it."""
    json: dict[str, Any]

    @property
    def tokens(self) -> list[int]:
        return self.json["token_ids"]

    @property
    def speed(self) -> float:
        """Tokens per second after the first message."""
        return self.json["timings"]["decode_tokens_per_second"]

    @property
    def decode_rounds(self) -> list[dict[str, Any]]:
        """All rounds but the first one, which fills the caches with the prompt."""
        return self.json["rounds"][1:]


@dataclasses.dataclass(frozen=True)
class Inside:
    """What the models do inside their own processes."""
    verifier: list[dict[str, Any]]  # measured before each prompt, and after the last
    draft_step_ms: float
    is_sampled: bool = False  # else greedy

    @property
    def description(self) -> str:
        return f"{self.verifier[0]['dtype']} on {self.verifier[0]['device']}"

    @property
    def rows_ms(self) -> list[float]:
        """T(1), T(2), ..."""
        return [statistics.median(ms) for ms in zip(*(one["rows_ms"] for one in self.verifier))]

    @property
    def plain_speeds(self) -> list[float]:
        """Tokens per second."""
        key = "plain_sampled_tokens_per_second" if self.is_sampled else "plain_tokens_per_second"
        return [one[key] for one in self.verifier]

    def plain_speed_beside(self, prompt: int) -> float:
        """The mean of before and after a prompt: machines have slow minutes."""
        return statistics.mean(self.plain_speeds[prompt:prompt + 2])


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


def print_comparison(runs: dict[Setting, list[Run]]) -> bool:
    """A line for each K: is greedy output that of K = 0, token for token?"""
    plain = runs[PLAIN]
    num_tokens = sum(len(run.tokens) for run in plain)
    heading(f"Temperature 0: the same tokens as plain decoding (K = 0)? {len(plain)} prompts, "
            f"{num_tokens} tokens")
    is_same = True
    for setting in sorted(runs.keys() - {PLAIN}):
        differences = [(number, position)
                       for number, (a, b) in enumerate(zip(plain, runs[setting]), 1)
                       if (position := first_difference(a.tokens, b.tokens)) is not None]
        if differences:
            is_same = False
            where = ", ".join(f"prompt {n} from token {p} on" for n, p in differences)
            print(f"  {styled(RED, 'DIFFERENT')}  K = {setting}: {where}")
        else:
            print(f"  {styled(GREEN, 'identical')}  K = {setting}")
    print_troubles(runs)
    return is_same


def print_troubles(runs: dict[Setting, list[Run]]) -> None:
    for field, words in (("num_draft_failures", "drafts that failed"),
                         ("num_misses", "caches that were lost")):
        count = sum(run.json[field] for all_runs in runs.values() for run in all_runs)
        if count:
            print(f"  note: {count} {words} on the way")


def speed_up_over_plain(runs: list[Run], inside: Inside) -> float:
    return statistics.median(run.speed / inside.plain_speed_beside(prompt)
                             for prompt, run in enumerate(runs))


def speed_up_over_zero(runs: dict[Setting, list[Run]], setting: Setting) -> float:
    """Prompt by prompt: the two runs of a pair were decoded within a second or so."""
    return statistics.median(run.speed / zero.speed
                             for run, zero in zip(runs[setting], runs[PLAIN]))


def best_setting(runs: dict[Setting, list[Run]]) -> Setting:
    return max(runs.keys() - {PLAIN}, key=lambda setting: speed_up_over_zero(runs, setting))


def best_plain_k(runs: dict[Setting, list[Run]]) -> Setting:
    """The best of those with the drafter alone and drafts of one length."""
    return best_setting({setting: some for setting, some in runs.items() if setting.is_plain_k})


def print_speed(runs: dict[Setting, list[Run]], inside: Inside) -> None:
    heading("Speed: medians over the prompts, prompt processing not counted")
    speeds = inside.plain_speeds
    print(f"Plain decoding inside the verifier, no RPC, {inside.description}: "
          f"{statistics.median(speeds):.1f} tokens/s,\nmeasured before each prompt and after the "
          f"last, {min(speeds):.1f} to {max(speeds):.1f}\n")
    if max(speeds) > 1.25 * min(speeds):
        print(styled(BOLD, "These should be equal: something else kept this machine busy, and what "
                           "follows is rough.\n"))
    print_speed_table(runs, inside)


def print_speed_table(runs: dict[Setting, list[Run]], inside: Inside) -> None:
    print("                                             speed-up over    speed-up over\n"
          " K    accepted   tokens/round   tokens/s   plain, inside   K = 0, by RPC")
    marks = {best_plain_k(runs): "best K"}
    best = best_setting(runs)
    marks[best] = "best K" if best.is_plain_k else "best"
    for setting in sorted(runs):
        some = runs[setting]
        drafted = total(some, "drafted")
        accepted = f"{100 * total(some, 'accepted') / drafted:.0f} %" if drafted else "-"
        per_round = total(some, "tokens") / total(some, "rounds")
        line = (f" {setting!s:4}  {accepted:>7}   {per_round:12.2f}   "
                f"{median_of(some, lambda run: run.speed):8.1f}   "
                f"{speed_up_over_plain(some, inside):12.2f}x   "
                f"{speed_up_over_zero(runs, setting):12.2f}x")
        mark = marks.get(setting)
        print(styled(BOLD, f"{line}   <- {mark}") if mark else line)
    if AUTO in runs:
        print("\n auto  the coordinator chooses for each round K, and where an unsure drafter\n"
              "       ends before it (-k auto, the default)")
    early = max((setting.min_probability for setting in runs), default=0.0)
    if early:
        print(f"\n ?  a draft ends where the drafter's first choices are less probable than {early:g}\n"
              "    together (--min-draft-probability)")
    if any(setting.prompt_lookup for setting in runs):
        print(" +  where the text repeats itself, drafts are taken from it without asking the\n"
              "    drafter (--prompt-lookup); greedy text of a model this small repeats itself\n"
              "    much, which flatters this: temperature 1 is below")


def predict(runs: list[Run], k: int, inside: Inside) -> Prediction:
    rounds = [one for run in runs for one in run.decode_rounds]
    accepted = sum(one["accepted"] for one in rounds)
    refused = sum(one["accepted"] < one["drafted"] for one in rounds)
    alpha = accepted / (accepted + refused) if accepted + refused else 0.0
    overhead_ms = statistics.median(
        one["round_ms"] - one["draft_compute_ms"] - one["verify_compute_ms"] for one in rounds)
    plain_ms = inside.rows_ms[0]
    # Without drafts the verifier makes some passes in a call, a token each.
    passes = statistics.mean(1 + one["more"] for one in rounds)
    return Prediction(
        alpha=alpha,
        tokens=sum(alpha**i for i in range(k + 1)) + passes - 1,
        drafting=k * inside.draft_step_ms / plain_ms,
        verifying=inside.rows_ms[k] / plain_ms + passes - 1,
        overhead=overhead_ms / plain_ms)


def print_formula(runs: dict[Setting, list[Run]], inside: Inside) -> None:
    heading("The formula beside the measurement: speed-up = E(K) / (K c + v + o)")
    plain_ms = inside.rows_ms[0]
    print(f"Times in units of T(1) = {plain_ms:.2f} ms, the verifier's pass over one token:\n"
          "  a      accepted / (accepted + refused): drafts after a refusal were never judged\n"
          "  E(K)   1 + a + ... + a^K, tokens a round if every draft were accepted with chance a;\n"
          "         without drafts those that the verifier draws in a call, a pass each\n"
          f"  c      one draft token: {inside.draft_step_ms:.2f} ms, or "
          f"{inside.draft_step_ms / plain_ms:.3f}\n"
          "  v      T(K + 1), the pass over K drafts and one token\n"
          "  o      the rest of a round: RPC, packing, acceptance (round less compute, median)\n")
    print(" K      a    E(K)    K c      v      o    formula   measured")
    for setting in sorted(runs):
        if not setting.is_plain_k:
            continue
        p = predict(runs[setting], setting.k, inside)
        alpha = f"{p.alpha:.2f}" if setting.k else "-"
        print(f"{setting.k:2}   {alpha:>4}   {p.tokens:5.2f}   {p.drafting:4.2f}   "
              f"{p.verifying:4.2f}   {p.overhead:4.2f}   {p.speed_up:7.2f}x   "
              f"{speed_up_over_plain(runs[setting], inside):7.2f}x")


def print_split(runs: list[Run], setting: Setting, inside: Inside) -> None:
    heading(f"Where a round's time goes at K = {setting}".rstrip())
    rounds = [one for run in runs for one in run.decode_rounds]

    def mean(field: str) -> float:
        return statistics.mean(one[field] for one in rounds)

    k = min(round(mean("drafted")), len(inside.rows_ms) - 1)
    further_ms = mean("more") * inside.rows_ms[0]  # passes that the verifier went on with
    by_drafter = mean("drafted") - mean("looked_up")
    draft, verify, whole = mean("draft_ms"), mean("verify_ms"), mean("round_ms")
    parts = [("draft", draft, mean("draft_compute_ms"), by_drafter * inside.draft_step_ms),
             ("verify", verify, mean("verify_compute_ms"), inside.rows_ms[k] + further_ms)]
    for name, ms, compute, alone in parts:
        print(f"  {name:6}  {ms:6.2f} ms  {100 * ms / whole:3.0f} %   {compute:.2f} ms of it "
              f"computing ({alone:.2f} ms where nothing else runs)")
    rest = whole - draft - verify
    print(f"  {'rest':6}  {rest:6.2f} ms  {100 * rest / whole:3.0f} %   the coordinator's own work")
    kilobytes = (total(runs, "drafter_bytes") + total(runs, "verifier_bytes")) / 1e3
    print(f"  {'round':6}  {whole:6.2f} ms          {kilobytes / total(runs, 'tokens'):.1f} kB of "
          "messages a token")


def print_sampled(runs: dict[Setting, list[Run]], inside: Inside) -> None:
    heading("Temperature 1, seed 1: other tokens, drawn from the target's distribution all the same")
    print_speed_table(runs, inside)
