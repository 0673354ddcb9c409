# SPDX-License-Identifier: Apache-2.0
"""Hugging Face directories: written for what was trained, read for what is distilled."""
import json
import shutil

import torch

# What a Hugging Face tokenizer may consist of.
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                   "added_tokens.json", "vocab.json", "merges.txt", "tokenizer.model",
                   "chat_template.jinja")


def write_model(folder, model, special_ids):
    """Writes model.safetensors (bf16) and the configuration of a trained Llama.

    `special_ids` is what config.json says of bos_token_id and eos_token_id.
    """
    from safetensors.torch import save_file
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {f"model.{name}": value.bfloat16().cpu().contiguous()
               for name, value in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = llama_config(model.shape) | special_ids | {"torch_dtype": "bfloat16"}
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", special_ids)


def llama_config(shape):
    return dict(
        architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=shape.vocab,
        hidden_size=shape.hidden, intermediate_size=shape.ffn, num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim, hidden_act="silu", max_position_embeddings=shape.context,
        rms_norm_eps=shape.norm_eps, rope_theta=shape.rope_theta, tie_word_embeddings=True,
        attention_bias=False, mlp_bias=False)


def write_tokenizer(folder, tokenizer, bos, eos, context):
    """Writes a tokenizer trained here, and what transformers wants to know of it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", dict(
        tokenizer_class="PreTrainedTokenizerFast", bos_token=bos, eos_token=eos,
        model_max_length=context, clean_up_tokenization_spaces=False))


def copy_tokenizer(source, folder):
    """Copies a tokenizer file by file: the coordinator refuses a drafter whose differs."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in TOKENIZER_FILES:
        if (source / name).exists():
            shutil.copyfile(source / name, folder / name)


def same_tokenizer(a, b):
    """Whether two folders have equal tokenizer.json files."""
    files = [folder / "tokenizer.json" for folder in (a, b)]
    return all(f.exists() for f in files) and files[0].read_bytes() == files[1].read_bytes()


def read_config(folder):
    path = folder / "config.json"
    if not path.exists():
        raise SystemExit(f"{path} does not exist: a Hugging Face model directory is expected")
    return json.loads(path.read_text())


def special_ids(config):
    """bos_token_id and eos_token_id (an id or a list) as the target has them."""
    keys = ("bos_token_id", "eos_token_id")
    return {key: config[key] for key in keys if config.get(key) is not None}


def special_ids_of(folder, tokenizer):
    """`special_ids` of a directory: config.json's, else the tokens that tokenizer_config.json names.

    Refused where neither says which token ends a text.
    """
    configs = [json.loads(path.read_text()) if (path := folder / name).exists() else {}
               for name in ("config.json", "tokenizer_config.json")]
    ids = special_ids(configs[0])
    for key in ("bos_token", "eos_token"):
        token = configs[1].get(key)
        text = token.get("content") if isinstance(token, dict) else token
        named = tokenizer.token_to_id(text) if isinstance(text, str) else None
        if named is not None:
            ids.setdefault(f"{key}_id", named)
    if "eos_token_id" not in ids:
        raise SystemExit(f"{folder} does not say which token ends a text: neither config.json has an eos_token_id, "
                         "nor tokenizer_config.json an eos_token that the tokenizer knows")
    return ids


def end_id(ids):
    """The token that ends a text: the first of eos_token_id."""
    end = ids["eos_token_id"]
    return end[0] if isinstance(end, list) else end


def write_special_ids(folder, ids):
    """Keeps beside a tokenizer what the token files were made with, for the models that learn from them."""
    write_json(folder / "special_ids.json", ids)


def read_special_ids(folder):
    path = folder / "special_ids.json"
    if not path.exists():
        raise SystemExit(f"{path} does not exist: run `data`")
    return json.loads(path.read_text())


def load_frozen(folder, dtype, device):
    """Any causal language model transformers knows, for reading only."""
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, use_safetensors=True)
    return model.to(torch.device(device)).eval().requires_grad_(False)


def read_weights(folder, model):
    """The weights of a checkpoint that `write_model` wrote, into a model of its shape."""
    from safetensors.torch import load_file
    tensors = load_file(folder / "model.safetensors")
    model.load_state_dict({name.removeprefix("model."): value.float() for name, value in tensors.items()})


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")
