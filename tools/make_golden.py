#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden models: small random checkpoints and their float32 logits.

    python3 tools/make_golden.py [--out tests/golden/testdata/models] [case ...]

Each case is a Hugging Face model directory plus golden.json, {"tokens": [n],
"logits": [n][vocab_size]}, as `transformers` computes them in float32 with eager
attention. config.json is written as transformers 4 or 5 would write it.
"""
import argparse
import json
import pathlib
import shutil

import torch
import transformers
from safetensors.torch import save_file

VOCAB_SIZE = 67  # odd on purpose: nothing may rely on a multiple of 8
SEED = 20260101

LLAMA = dict(
    model_type="llama", vocab_size=VOCAB_SIZE, hidden_size=32,
    intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=128, hidden_act="silu",
    rms_norm_eps=1e-5, rope_theta=10000.0, bos_token_id=0, eos_token_id=1,
    tie_word_embeddings=False)
QWEN2 = LLAMA | dict(model_type="qwen2", rms_norm_eps=1e-6,
                     rope_theta=1000000.0)
GPT2 = dict(model_type="gpt2", vocab_size=VOCAB_SIZE, n_embd=32, n_layer=2,
            n_head=4, n_positions=64, n_inner=None,
            activation_function="gelu_new", layer_norm_epsilon=1e-5,
            bos_token_id=0, eos_token_id=1)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32)
LLAMA3_ROPE = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                   high_freq_factor=4.0, original_max_position_embeddings=16)


def case(config, **how):
    """`how`: dtype, style (4 or 5), shards, eos (null and list forms),
    num_tokens, gpt2_names ("", or "transformer.")."""
    defaults = dict(dtype=torch.float32, style=4, shards=1, num_tokens=40,
                    prefix="transformer.", generation=None)
    assert set(how) <= set(defaults), how
    return config, defaults | how


CASES = {
    "llama": case(LLAMA),
    "llama_biases": case(
        LLAMA | dict(attention_bias=True, mlp_bias=True, eos_token_id=[1, 2]),
        style=5, generation={"eos_token_id": [2, 3]}),
    # The text goes beyond original_max_position_embeddings, 16.
    "llama3_rope": case(
        LLAMA | dict(head_dim=16, rope_theta=500000.0,
                     rope_scaling=LLAMA3_ROPE), num_tokens=100),
    "llama3_rope_v5": case(
        LLAMA | dict(head_dim=16, rope_theta=5000.0, eos_token_id=None,
                     rope_scaling=LLAMA3_ROPE), num_tokens=100, style=5),
    "llama_linear_rope": case(
        LLAMA | dict(rope_scaling=dict(type="linear", factor=2.5)),
        num_tokens=60),
    # Pairs that are kept, blended and stretched: with theta = 100 the bounds of
    # these eight are 0 and 3, and 0.9 and 4.0.
    "qwen3_yarn": case(
        QWEN2 | dict(model_type="qwen3", head_dim=16, rope_theta=100.0,
                     rope_scaling=YARN), num_tokens=100),
    "llama_yarn_v5": case(
        LLAMA | dict(head_dim=16, rope_theta=100.0, rope_scaling=YARN | dict(
            beta_fast=3.0, beta_slow=0.5, truncate=False, attention_factor=1.25)),
        num_tokens=100, style=5),
    "tinyllama_tied_bf16": case(
        LLAMA | dict(tie_word_embeddings=True, num_attention_heads=8),
        dtype=torch.bfloat16),
    "mistral_sliding_sharded": case(
        LLAMA | dict(model_type="mistral", sliding_window=7), shards=3),
    "mistral_fp16": case(
        LLAMA | dict(model_type="mistral", sliding_window=None, head_dim=16),
        dtype=torch.float16, style=5),
    "qwen2_tied": case(
        QWEN2 | dict(tie_word_embeddings=True, use_sliding_window=False,
                     sliding_window=4, max_window_layers=1)),
    "qwen2_sliding": case(
        QWEN2 | dict(num_hidden_layers=3, use_sliding_window=True,
                     sliding_window=5, max_window_layers=1), style=5),
    "qwen2_sliding_bf16_sharded": case(
        QWEN2 | dict(num_hidden_layers=3, use_sliding_window=True,
                     sliding_window=5, max_window_layers=2),
        dtype=torch.bfloat16, shards=2),
    "qwen3": case(QWEN2 | dict(model_type="qwen3", head_dim=16,
                               tie_word_embeddings=True), style=5),
    # Names without the prefix, and with the mask buffers, as on the hub.
    "gpt2": case(GPT2, prefix=""),
    "gpt2_untied": case(GPT2 | dict(n_inner=56, tie_word_embeddings=False),
                        style=5),
}


def make_model(config):
    fields = {k: v for k, v in config.items() if k != "model_type"}
    parsed = transformers.AutoConfig.for_model(config["model_type"], **fields)
    torch.manual_seed(SEED)
    model = transformers.AutoModelForCausalLM.from_config(
        parsed, attn_implementation="eager").eval()
    # Larger than any initialisation: a mistake must show in the logits.
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn_like(parameter)
            is_norm = parameter.dim() == 1 and name.endswith("weight")
            spread = 0.3 if parameter.dim() == 1 else 1.5 * config.get(
                "hidden_size", 32) ** -0.5
            parameter.copy_((1.0 if is_norm else 0.0) + spread * noise)
    return model


def checkpoint_tensors(model, config, how):
    tensors = {}
    for name, tensor in model.state_dict().items():
        if config.get("tie_word_embeddings", config["model_type"] == "gpt2"):
            if name == "lm_head.weight":
                continue
        if config["model_type"] == "gpt2" and name != "lm_head.weight":
            name = how["prefix"] + name.removeprefix("transformer.")
        tensors[name] = tensor.to(how["dtype"]).contiguous().clone()
    if config["model_type"] == "gpt2" and how["prefix"] == "":
        n = config["n_positions"]
        for layer in range(config["n_layer"]):
            tensors[f"h.{layer}.attn.bias"] = torch.tril(
                torch.ones(n, n, dtype=torch.uint8)).view(1, 1, n, n)
    return tensors


def write_tensors(directory, tensors, num_shards):
    metadata = {"format": "pt"}
    if num_shards == 1:
        save_file(tensors, directory / "model.safetensors", metadata)
        return
    weight_map = {}
    names = list(tensors)
    for i in range(num_shards):
        shard = f"model-{i + 1:05}-of-{num_shards:05}.safetensors"
        part = {name: tensors[name] for name in names[i::num_shards]}
        save_file(part, directory / shard, metadata)
        weight_map |= {name: shard for name in part}
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    write_json(directory / "model.safetensors.index.json",
               {"metadata": {"total_size": size}, "weight_map": weight_map})


def config_json(model, config, how):
    """What transformers 4 (4.57 says dtype, older ones torch_dtype) or 5 writes."""
    dtype = str(how["dtype"]).removeprefix("torch.")
    # They have the order of the file, and the fields the library adds.
    fields = {"architectures": [type(model).__name__]} | config
    if how["style"] == 4:
        return fields | {"torch_dtype": dtype, "transformers_version": "4.44.0"}
    fields |= {"dtype": dtype, "transformers_version": "5.0.0"}
    if "rope_theta" in fields:
        scaling = fields.pop("rope_scaling", None) or {"rope_type": "default"}
        fields["rope_parameters"] = {
            "rope_theta": fields.pop("rope_theta")} | scaling
    if config["model_type"] in ("qwen2", "qwen3"):
        fields["layer_types"] = model.config.layer_types
    return fields


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def write_case(directory, config, how):
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    model = make_model(config)
    # What the file holds is what the reference computes with. Parameters only:
    # rotary frequencies are float32 whatever the checkpoint is.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.to(how["dtype"]))
    write_tensors(directory, checkpoint_tensors(model, config, how),
                  how["shards"])
    write_json(directory / "config.json", config_json(model, config, how))
    if how["generation"] is not None:
        write_json(directory / "generation_config.json", how["generation"])

    generator = torch.Generator().manual_seed(SEED)
    tokens = torch.randint(VOCAB_SIZE, (1, how["num_tokens"]),
                           generator=generator)
    with torch.no_grad():
        logits = model(tokens, use_cache=False).logits[0].float()
    rows = [[float(f"{x:.7g}") for x in row] for row in logits.tolist()]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    (directory / "golden.json").write_text(
        '{"tokens": %s,\n"logits": [\n%s\n]}\n' % (tokens[0].tolist(), lines))
    print(f"{directory.name}: {len(rows)} rows, logits in "
          f"[{logits.min():.2f}, {logits.max():.2f}]")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path("tests/golden/testdata/models"))
    parser.add_argument("cases", nargs="*", default=[])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.cases or CASES:
        write_case(arguments.out / name, *CASES[name])


if __name__ == "__main__":
    main()
