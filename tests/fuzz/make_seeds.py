#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_seeds.py OUT: what the fuzzers begin with, a folder each, from files of the repository.

Messages are written as text beside this file and encoded here; checkpoints and
tokenizers are cut down, as a fuzzer gets nowhere with much to change.
"""
import json
import pathlib
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GOLDEN = ROOT / "tests/golden/testdata"
PROTO_OF = {"Draft": "drafter", "Verify": "verifier", "Generate": "generation"}


def encode(message, text):
    """The bytes of outrider.v1.`message`, written in protobuf's text format."""
    stem = next(name for prefix, name in PROTO_OF.items() if message.startswith(prefix))
    return subprocess.run(
        ["protoc", f"--encode=outrider.v1.{message}", f"outrider/v1/{stem}.proto"],
        input=text, cwd=ROOT / "proto", check=True, capture_output=True).stdout


def message_pairs():
    """For `seeds/draft/open.request` and `.response`: one input, as MessagePair reads it."""
    for request in sorted(HERE.glob("seeds/*/*.request")):
        kind = request.parent.name
        first = encode(f"{kind.title()}Request", request.read_bytes())
        response = request.with_suffix(".response").read_bytes()
        second = encode(f"{kind.title()}Response", response)
        yield f"{kind}_messages", request.stem, struct.pack("<H", len(first)) + first + second


def checkpoints():
    """Checkpoints of at most two tensors each, and an index."""
    for path in sorted(GOLDEN.glob("models/*/model.safetensors")):
        data = path.read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])
        tensors = [(name, entry) for name, entry in header.items() if name != "__metadata__"][:2]
        kept, offset = {}, 0
        for name, entry in tensors:
            begin, end = entry["data_offsets"]
            shape = [1] * (len(entry["shape"]) - 1) + [2]
            length = 2 * {"F32": 4, "F16": 2, "BF16": 2, "F64": 8}[entry["dtype"]]
            assert length <= end - begin
            kept[name] = {"dtype": entry["dtype"], "shape": shape, "data_offsets": [offset, offset + length]}
            offset += length
        text = json.dumps(kept).encode()
        yield "safetensors", path.parent.name, struct.pack("<Q", len(text)) + text + bytes(offset)
    index = {"metadata": {"total_size": 8}, "weight_map": {"a": "shard.safetensors"}}
    yield "safetensors", "index", json.dumps(index).encode()


def configs():
    """Each config.json that the golden tests have."""
    for path in sorted(GOLDEN.glob("models/*/config.json")):
        yield "model_config", path.parent.name, path.read_bytes()


def tokenizers():
    """Tokenizers with the 300 first of their tokens, whose merges lead to no other."""
    for path in sorted(GOLDEN.glob("tokenizer/*/tokenizer.json")):
        whole = json.loads(path.read_text("utf-8"))
        model = whole["model"]
        vocabulary = dict(sorted(model["vocab"].items(), key=lambda item: item[1])[:300])
        added = {token["content"] for token in whole.get("added_tokens", [])}
        vocabulary |= {token: i for token, i in model["vocab"].items() if token in added}
        model["vocab"] = vocabulary
        pairs = [merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"]]
        model["merges"] = [merge for merge, pair in zip(model["merges"], pairs)
                           if {*pair, "".join(pair)} <= vocabulary.keys()]
        yield "tokenizer_file", path.parent.name, json.dumps(whole, ensure_ascii=False).encode()


def prompts():
    """Texts of the tokenizers' golden cases, through every kind of tokenizer in turn."""
    for path in sorted(GOLDEN.glob("tokenizer/*/cases.json")):
        for i, case in enumerate(json.loads(path.read_text("utf-8"))["encode"][:40]):
            text = case["text"].encode("utf-8", "surrogatepass")[:200]
            yield "prompt", f"{path.parent.name}_{i}", bytes([i]) + text


def main(out):
    """Writes all of them below `out`."""
    for make in (message_pairs, checkpoints, configs, tokenizers, prompts):
        for fuzzer, name, data in make():
            folder = pathlib.Path(out) / fuzzer
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    # What was found once, as it was found.
    for path in HERE.glob("seeds/found/*/*"):
        folder = pathlib.Path(out) / path.parent.name
        (folder / path.name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    main(sys.argv[1])
