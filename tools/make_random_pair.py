#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a target and its drafter with random weights and the shapes of real models, to measure speed with.

  tools/make_random_pair.py --shape llama-3.1-8b --out FOLDER [--draft-layers 2] [--acceptance 0.8] [--tokenizer DIR]

FOLDER/target has the shape's layers; FOLDER/draft has the first of them, with the same embedding and head. The target's
other layers do all of their work, but add so little to the residual stream that drafts are accepted as often as
--acceptance says: at temperature 1, by rejection, under random texts; as far as the arithmetic of wide layers holds,
so what a run measures is what counts. Rows are as decided as a trained model's: a few tokens have nearly all the mass.
The tokenizer is --tokenizer's, which encodes as it did, with words of no meaning up to the shape's vocabulary, so that
what looks at a row looks at all of it. Text is nonsense; work and memory are real. Standard library alone: weights are
bfloat16, cut from one pool of random numbers, so that gigabytes take seconds.
"""
import argparse
import array
import itertools
import json
import math
import pathlib
import random
import shutil
import statistics
import struct

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHAPES = {  # vocabulary, hidden, intermediate, layers, heads, heads of keys, head size
    "smollm2-360m": (49152, 960, 2560, 32, 15, 5, 64),
    "smollm2-1.7b": (49152, 2048, 8192, 24, 32, 32, 64),
    "llama-3.2-1b": (128256, 2048, 8192, 16, 32, 8, 64),
    "llama-3.1-8b": (128256, 4096, 14336, 32, 32, 8, 128),
    "tiny": (4096, 256, 512, 6, 4, 2, 64),
}
TIED = {"smollm2-360m", "smollm2-1.7b", "llama-3.2-1b", "tiny"}
POOL_ITEMS = 2097143  # a prime: no two rows of a matrix begin at the same number
EMBEDDING_SPREAD = 0.01  # small beside what layers add, or with a tied head every token would repeat itself
SHALLOW_SCALE = 0.5  # of what a layer of the drafter adds
DRAFT_SUPPORT = 1024  # the most tokens of a row that generations draft with; that rows end at a mass of 0.98 is left out


def logit_spread(vocabulary):
    """The spread of a row's logits: twice what makes the greatest of so many normal numbers outweigh the others together."""
    return 2 * math.sqrt(2 * math.log(vocabulary))


def sampled_rows(vocabulary, count=32):
    """Rows as (greatest logits of the drafter in falling order, the target's own part of each), both of spread 1."""
    source, normal = random.Random(1), statistics.NormalDist()
    rows = []
    for _ in range(count):
        # The greatest of many are the first arrivals of a Poisson process, seen through the normal law.
        arrivals = itertools.accumulate(source.expovariate(1.0) for _ in range(min(vocabulary, 4096) // 2))
        greatest = [-normal.inv_cdf(min(arrival / vocabulary, 0.999)) for arrival in arrivals]
        rows.append((greatest, [source.gauss(0.0, 1.0) for _ in greatest]))
    return rows


def softmax(logits):
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    total = sum(weights)
    return [w / total for w in weights]


def acceptance_at(correlation, rows, spread):
    """How often a draft of the rows' first part stands where the target's logits correlate with it like this."""
    own = math.sqrt(1.0 - correlation * correlation)
    total = 0.0
    for greatest, others in rows:
        q = softmax([spread * x for x in greatest[:DRAFT_SUPPORT]])
        p = softmax([spread * (correlation * x + own * z) for x, z in zip(greatest, others)])
        total += sum(map(min, p, q))
    return total / len(rows)


def deep_scale_for(acceptance, vocabulary, num_shallow, num_deep):
    """What a deep layer's outputs are scaled by, so that target and drafter agree so often.

    Every layer reads a stream brought to one norm and adds a random direction to it: variances add up, and the
    logits of two streams correlate as the streams do."""
    if num_deep == 0 or acceptance >= 1.0:
        return 0.0
    rows, spread = sampled_rows(vocabulary), logit_spread(vocabulary)
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if acceptance_at(middle, rows, spread) < acceptance else (low, middle)
    correlation = max((low + high) / 2, 1e-3)
    return SHALLOW_SCALE * math.sqrt(num_shallow / num_deep * (correlation ** -2 - 1.0))


def bfloat16(values):
    """Their upper halves, as bytes."""
    words = array.array("I", array.array("f", values).tobytes())
    return array.array("H", (word >> 16 for word in words)).tobytes()


class Pool:
    """Normal numbers, of which every tensor gets a piece that starts elsewhere, at a spread of its own."""

    def __init__(self):
        source = random.Random(7)
        self.normal = array.array("f", (source.gauss(0.0, 1.0) for _ in range(POOL_ITEMS)))
        self.at_spread = {}

    def write(self, file, count, spread, start):
        if spread not in self.at_spread:
            self.at_spread[spread] = memoryview(bfloat16(x * spread for x in self.normal))
        numbers, left, at = self.at_spread[spread], 2 * count, 2 * (start % POOL_ITEMS)
        while left > 0:
            piece = numbers[at:at + left]
            file.write(piece)
            left -= len(piece)
            at = 0


def tensors_of(shape, num_layers, is_tied):
    """Name → (dimensions, inputs, layer); inputs are 0 where the tensor is a norm's, None for an embedding."""
    vocabulary, hidden, inner, _, heads, kv_heads, size = shape
    tensors = {"model.embed_tokens.weight": ((vocabulary, hidden), None, -1)}
    for i in range(num_layers):
        name = f"model.layers.{i}."
        for part, out, inputs in (("self_attn.q_proj", heads * size, hidden), ("self_attn.k_proj", kv_heads * size, hidden),
                                  ("self_attn.v_proj", kv_heads * size, hidden), ("self_attn.o_proj", hidden, heads * size),
                                  ("mlp.gate_proj", inner, hidden), ("mlp.up_proj", inner, hidden),
                                  ("mlp.down_proj", hidden, inner)):
            tensors[f"{name}{part}.weight"] = ((out, inputs), inputs, i)
        for part in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{name}{part}.weight"] = ((hidden,), 0, i)
    tensors["model.norm.weight"] = ((hidden,), 0, -1)
    if not is_tied:
        tensors["lm_head.weight"] = ((vocabulary, hidden), hidden, -1)
    return tensors


def config_of(name, num_layers):
    vocabulary, hidden, inner, _, heads, kv_heads, size = SHAPES[name]
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary, "hidden_size": hidden,
            "intermediate_size": inner, "num_hidden_layers": num_layers, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "head_dim": size, "hidden_act": "silu", "max_position_embeddings": 8192,
            "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": name in TIED, "attention_bias": False,
            "mlp_bias": False, "bos_token_id": 0, "eos_token_id": 1, "torch_dtype": "bfloat16"}


def full_tokenizer(tokenizer, vocabulary):
    """A tokenizer.json with as many tokens as the model's head: no merge makes a new one, so texts are encoded as before."""
    model = tokenizer["model"]
    words = model["vocab"] | {added["content"]: added["id"] for added in tokenizer.get("added_tokens", ())}
    used = set(words.values())
    if max(used) >= vocabulary:
        raise ValueError(f"the tokenizer has ids up to {max(used)}, the shape only {vocabulary} tokens")
    if model.get("ignore_merges"):
        raise ValueError("a tokenizer that ignores merges would find the new words in texts")
    unused = (i for i in range(vocabulary) if i not in used)
    more = {f"\u0120w{i:x}": i for i in unused}  # a space and a word, as byte-level tokens spell it
    if taken := words.keys() & more.keys():
        raise ValueError(f"the tokenizer has {min(taken)!r} already")
    return tokenizer | {"model": model | {"vocab": words | more}}


def write_tokenizer(source, folder, vocabulary):
    tokenizer = json.loads((source / "tokenizer.json").read_text("utf-8"))
    (folder / "tokenizer.json").write_text(json.dumps(full_tokenizer(tokenizer, vocabulary)) + "\n")
    if (source / "tokenizer_config.json").exists():
        shutil.copy(source / "tokenizer_config.json", folder)


def write_weights(path, name, num_layers, deep, pool):
    """`deep` is the first of the layers whose outputs are scaled by something else, and that scale."""
    vocabulary, hidden = SHAPES[name][:2]
    tensors = tensors_of(SHAPES[name], num_layers, name in TIED)
    header, offset = {}, 0
    for tensor, (dimensions, _, _) in tensors.items():
        end = offset + 2 * math.prod(dimensions)
        header[tensor] = {"dtype": "BF16", "shape": dimensions, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    head_spread = EMBEDDING_SPREAD if name in TIED else hidden ** -0.5
    final_norm = logit_spread(vocabulary) / (head_spread * math.sqrt(hidden))
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor, (dimensions, inputs, layer) in tensors.items():
            if inputs == 0:
                file.write(bfloat16([final_norm if tensor == "model.norm.weight" else 1.0]) * dimensions[0])
                continue
            spread = EMBEDDING_SPREAD if inputs is None else inputs ** -0.5
            if "o_proj" in tensor or "down_proj" in tensor:
                spread *= deep[1] if layer >= deep[0] else SHALLOW_SCALE
            # Its name decides what it has, in target and drafter alike.
            pool.write(file, math.prod(dimensions), spread, random.Random(tensor).randrange(POOL_ITEMS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="FOLDER")
    parser.add_argument("--draft-layers", type=int, default=2, metavar="N")
    parser.add_argument("--acceptance", type=float, default=0.8, metavar="A", help="of a draft, 0.05 to 1")
    parser.add_argument("--tokenizer", type=pathlib.Path, default=ROOT / "models/demo-target", metavar="DIR")
    flags = parser.parse_args()
    vocabulary, num_layers = SHAPES[flags.shape][0], SHAPES[flags.shape][3]
    if not 0 < flags.draft_layers <= num_layers:
        parser.error(f"--draft-layers must be 1 to {num_layers}")
    if not 0.05 <= flags.acceptance <= 1:
        parser.error("--acceptance must be 0.05 to 1")
    scale = deep_scale_for(flags.acceptance, vocabulary, flags.draft_layers, num_layers - flags.draft_layers)
    pool = Pool()
    for role, layers in (("target", num_layers), ("draft", flags.draft_layers)):
        folder = flags.out / role
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config_of(flags.shape, layers), indent=1) + "\n")
        write_tokenizer(flags.tokenizer, folder, vocabulary)
        write_weights(folder / "model.safetensors", flags.shape, layers, (flags.draft_layers, scale), pool)
    print(f"{flags.out}/target: {num_layers} layers; {flags.out}/draft: {flags.draft_layers}; "
          f"about {flags.acceptance:g} of the drafts stand")


if __name__ == "__main__":
    main()
