#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three published pairs with calibrated nodes, K = 4: what the real coordinator makes of them, beside the formula.

    bench/pairs/published_pairs.py           about a minute and a half; on an otherwise idle machine

The acceptance is fitted from the published tokens per round (Chen et al. 2023 for the first two). Plain
decoding inside the verifier is measured in the same run. The formula is that of a round that costs its models
alone; what a measured round takes beyond it is what the coordinator and its calls cost. Needs the release build
and nothing but Python's standard library. Exit status 1: a pair is off by more than its bounds.
"""
import csv
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
K = 4
# Milliseconds of the target's pass and of a draft token, and tokens per round.
PAIRS = {"Chinchilla, HumanEval": (14.1, 1.8, 4.0),
         "Chinchilla, XSum": (14.1, 1.8, 3.1),
         "GPT-2 XL and small": (73.3, 11.9, 4.06)}
# What tokens per round may be off by: four standard errors of the mean of such a run's rounds.
BOUND_OF_FIT = 0.1
BOUND_OF_OVERHEAD = 2.0  # milliseconds a round; two cores that are busy with other work cost 0.7 to 1.6


def measure(folder, verify_ms, draft_ms, tokens_per_round):
    """The row of K in results.csv, as numbers."""
    # Long enough for some 150 rounds, whatever one of them takes.
    subprocess.run([str(word) for word in (
        ROOT / "build/release/bin/outrider", "bench", "run", "--simulate", "-k", K, "--acceptance-rule", "rejection",
        "--simulate-verify-ms", verify_ms, "--simulate-draft-ms", draft_ms,
        "--simulate-tokens-per-round", tokens_per_round,
        "--max-tokens", 128, "--seconds", 0.25 * verify_ms, "--out", folder)], check=True, capture_output=True)
    with open(pathlib.Path(folder) / "results.csv", newline="", encoding="utf-8") as file:
        row, = (row for row in csv.DictReader(file) if row["k"] == str(K))
    return {name: float(row[name]) for name in
            ("speedup_over_plain_in_verifier", "tokens_per_round", "plain_in_verifier_token_ms")}


def main():
    num_missed = 0
    print(f"{'pair':24} {'tokens a round':>14} {'over plain':>11} {'formula':>8} {'ms more a round':>16}")
    for name, (verify_ms, draft_ms, published_tokens) in PAIRS.items():
        with tempfile.TemporaryDirectory() as folder:
            row = measure(folder, verify_ms, draft_ms, published_tokens)
        tokens, speedup = row["tokens_per_round"], row["speedup_over_plain_in_verifier"]
        models_ms = K * draft_ms + verify_ms
        plain_ms = tokens * row["plain_in_verifier_token_ms"]  # what plain decoding takes for a round's tokens
        overhead_ms = plain_ms / speedup - models_ms
        is_missed = abs(tokens / published_tokens - 1) > BOUND_OF_FIT or overhead_ms > BOUND_OF_OVERHEAD
        num_missed += is_missed
        print(f"{name:24} {tokens:14.2f} {speedup:11.3f} {plain_ms / models_ms:8.3f} {overhead_ms:16.2f}"
              f"{'  MISSED' if is_missed else ''}", flush=True)
    return 1 if num_missed else 0


if __name__ == "__main__":
    sys.exit(main())
