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
PROTO_OF = {"Draft": "drafter", "Verify": "verifier", "Generate": "generation", "Truncate": "cache",
            "Release": "cache", "Isolate": "verifier", "NodeDescription": "types"}
# The codes that come with a RetryInfo.
RESOURCE_EXHAUSTED, UNAVAILABLE = 8, 14


def encode(message, text):
    """The bytes of outrider.v1.`message`, written in protobuf's text format."""
    stem = next(name for prefix, name in PROTO_OF.items() if message.startswith(prefix))
    return encode_from([f"outrider/v1/{stem}.proto"], f"outrider.v1.{message}", text)


def encode_from(protos, message, text):
    """The same of any message that these files have."""
    return subprocess.run(["protoc", f"--encode={message}", *protos],
                          input=text, cwd=ROOT / "proto", check=True, capture_output=True).stdout


def message_pairs():
    """Makes one input of `seeds/draft/open.request` and `.response`, as MessagePair reads it."""
    for request in sorted(HERE.glob("seeds/*/*.request")):
        kind = request.parent.name
        first = encode(f"{kind.title()}Request", request.read_bytes())
        response = request.with_suffix(".response").read_bytes()
        second = encode(f"{kind.title()}Response", response)
        yield f"{kind}_messages", request.stem, struct.pack("<H", len(first)) + first + second


def single_messages():
    """Makes an input of one message, such as `seeds/cache_messages/live.TruncateRequest`."""
    for path in sorted(HERE.glob("seeds/*/*.[A-Z]*")):
        message = path.suffix[1:]
        yield path.parent.name, f"{path.stem}_{message}", encode(message, path.read_bytes())


def field_counts():
    """The requests of verify_messages, and a header that ends before its cache delta does."""
    for path in sorted(HERE.glob("seeds/verify/*.request")):
        yield "field_count", path.stem, encode("VerifyRequest", path.read_bytes())
    yield "field_count", "overrun", b"\x0a\x02\x22\x0b\x0a\x01\x07" + 4 * b"\x7a\x00"


def status_details():
    """A code and google.rpc.Status, as RetryInfo travels in it; and gRPC's own words."""
    protos = ["google/rpc/status.proto", "google/rpc/error_details.proto"]
    for path in sorted(HERE.glob("seeds/status_details/*.details")):
        details = encode_from(protos, "google.rpc.Status", path.read_bytes())
        for code in (RESOURCE_EXHAUSTED, UNAVAILABLE):
            yield "status_details", f"{path.stem}_{code}", bytes([code]) + details
    words = b"Received message larger than max (1538000 vs. 1048576)"
    yield "status_details", "too_large", bytes([RESOURCE_EXHAUSTED]) + words


def trace_contexts():
    """A traceparent of this version, one of a later, and a request id."""
    trace, span = b"4bf92f3577b34da6a3ce929d0e0e4736", b"00f067aa0ba902b7"
    yield "trace_context", "today", b"00-%s-%s-01" % (trace, span)
    yield "trace_context", "later", b"01-%s-%s-01-more" % (trace, span)
    yield "trace_context", "request_id", b"job-7.retry_2"


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


def generation_configs():
    """Each generation_config.json that the repository has; their ids, and those of the fuzzer's small vocabulary."""
    for folder in (GOLDEN / "models", ROOT / "models"):
        for path in sorted(folder.glob("*/generation_config.json")):
            yield "generation_config", path.parent.name, path.read_bytes()
    for name, ids in (("one", 3), ("several", [2, 3, 7]), ("none", None), ("none_of_several", [])):
        yield "generation_config", name, json.dumps({"eos_token_id": ids}).encode()


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
    for make in (message_pairs, single_messages, field_counts, status_details, trace_contexts, checkpoints, configs,
                 generation_configs, tokenizers, prompts):
        for fuzzer, name, data in make():
            folder = pathlib.Path(out) / fuzzer
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    # What was found once, as it was found.
    for path in HERE.glob("seeds/found/*/*"):
        folder = pathlib.Path(out) / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / path.name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    main(sys.argv[1])
