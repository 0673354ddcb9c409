#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a target and its drafter with random weights and the shapes of real models, to measure speed with.

  tools/make_random_pair.py --shape llama-3.1-8b --out FOLDER [--draft-layers 2] [--agreement 0.9] [--tokenizer DIR]

FOLDER/target has the shape's layers; FOLDER/draft has the first of them, with the same embedding and head. What the
target's other layers add to the residual stream is scaled down, the more the closer --agreement is to 1, so that the
drafter's guesses are accepted as often as a trained one's. Text is nonsense; work, memory and acceptance are real.
Standard library alone: weights are bfloat16, cut from one pool of random numbers, so that gigabytes take seconds.
"""
import argparse
import array
import json
import math
import pathlib
import random
import shutil
import struct

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHAPES = {  # vocabulary, hidden, intermediate, layers, heads, heads of keys, head size
    "smollm2-360m": (49152, 960, 2560, 32, 15, 5, 64),
    "smollm2-1.7b": (49152, 2048, 8192, 24, 32, 32, 64),
    "llama-3.2-1b": (128256, 2048, 8192, 16, 32, 8, 64),
    "llama-3.1-8b": (128256, 4096, 14336, 32, 32, 8, 128),
    "tiny": (4096, 64, 128, 3, 4, 2, 16),
}
TIED = {"smollm2-360m", "smollm2-1.7b", "llama-3.2-1b", "tiny"}
POOL_ITEMS = 1 << 22


def bfloat16(values):
    """Their upper halves, as bytes."""
    words = array.array("I", array.array("f", values).tobytes())
    return array.array("H", (word >> 16 for word in words)).tobytes()


class Pool:
    """Bytes of normal numbers of one spread, of which every tensor gets a piece that starts elsewhere."""

    def __init__(self, spread, source):
        numbers = [source.gauss(0.0, spread) for _ in range(1 << 16)]
        # Longer than it is random: what one tensor has twice, no measurement sees.
        self.bytes = bfloat16(numbers) * (POOL_ITEMS >> 16)
        self.source = source

    def write(self, file, count):
        left = 2 * count
        at = 2 * self.source.randrange(1 << 15)
        while left > 0:
            piece = memoryview(self.bytes)[at:at + left]
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


def write_model(folder, name, num_layers, deep_from, deep_scale, tokenizer):
    """Layers from `deep_from` on add `deep_scale` times as much as the others."""
    shape, is_tied = SHAPES[name], name in TIED
    vocabulary, hidden, inner, _, heads, kv_heads, size = shape
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary, "hidden_size": hidden,
        "intermediate_size": inner, "num_hidden_layers": num_layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "head_dim": size, "hidden_act": "silu", "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": is_tied, "attention_bias": False,
        "mlp_bias": False, "bos_token_id": 0, "eos_token_id": 1, "torch_dtype": "bfloat16"}, indent=1) + "\n")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        if (tokenizer / file).exists():
            shutil.copy(tokenizer / file, folder / file)

    tensors = tensors_of(shape, num_layers, is_tied)
    header, offset = {}, 0
    for tensor, (dimensions, _, _) in tensors.items():
        size_in_bytes = 2 * math.prod(dimensions)
        header[tensor] = {"dtype": "BF16", "shape": dimensions, "data_offsets": [offset, offset + size_in_bytes]}
        offset += size_in_bytes
    text = json.dumps(header).encode()
    pools = {}
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor, (dimensions, inputs, layer) in tensors.items():
            if inputs == 0:
                file.write(bfloat16([1.0]) * dimensions[0])
                continue
            # A generator of its own for each tensor: target and drafter have the same.
            source = random.Random(tensor)
            # Small beside what the layers add: with a tied head every token would repeat itself.
            spread = 0.02 if inputs is None else inputs ** -0.5
            if "o_proj" in tensor or "down_proj" in tensor:
                spread *= deep_scale if layer >= deep_from else 0.5
            if spread not in pools:
                pools[spread] = Pool(spread, random.Random(7))
            pools[spread].source = source
            pools[spread].write(file, math.prod(dimensions))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="FOLDER")
    parser.add_argument("--draft-layers", type=int, default=2, metavar="N")
    parser.add_argument("--agreement", type=float, default=0.9, metavar="A", help="0: unlike, to 1: the deep layers add nothing")
    parser.add_argument("--tokenizer", type=pathlib.Path, default=ROOT / "models/demo-target", metavar="DIR")
    flags = parser.parse_args()
    num_layers = SHAPES[flags.shape][3]
    if not 0 < flags.draft_layers <= num_layers:
        parser.error(f"--draft-layers must be 1 to {num_layers}")
    deep_scale = 0.5 * (1.0 - flags.agreement)
    write_model(flags.out / "target", flags.shape, num_layers, flags.draft_layers, deep_scale, flags.tokenizer)
    write_model(flags.out / "draft", flags.shape, flags.draft_layers, num_layers, 0.0, flags.tokenizer)
    print(f"{flags.out}/target: {num_layers} layers; {flags.out}/draft: {flags.draft_layers}")


if __name__ == "__main__":
    main()
