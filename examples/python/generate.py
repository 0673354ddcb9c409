#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls Generate: streams the text, and shows how a stream is cancelled and resumed.

  python generate.py --coordinator 127.0.0.1:7000 "def fibonacci(n):"
  python generate.py --cancel-after 20 --temperature 0 "def fibonacci(n):"

With --cancel-after the stream is cancelled after that many tokens, and a second
call goes on from there; at temperature 0 the text is that of a single call.
"""
import argparse
import secrets
import sys

import grpc
from arguments import MOST_UINT32, MOST_UINT64, whole_number
from stubs import generation_pb2, generation_pb2_grpc


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prompt")
    parser.add_argument("--coordinator", default="127.0.0.1:7000")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--max-tokens", type=whole_number(1, MOST_UINT32), default=64)
    parser.add_argument("--k", type=whole_number(0, MOST_UINT32, "auto"),
                        help="draft tokens a round, or auto: chosen for each round; default: the coordinator's")
    parser.add_argument("--seed", type=whole_number(0, MOST_UINT64))
    parser.add_argument("--cancel-after", type=whole_number(1, MOST_UINT32), help="tokens")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for each call")
    flags = parser.parse_args()

    with grpc.insecure_channel(flags.coordinator) as channel:
        try:
            generate(generation_pb2_grpc.GenerationServiceStub(channel), flags)
        except grpc.RpcError as error:
            sys.exit(f"generate.py: {error.code().name}: {error.details()}")


def generate(stub, flags):
    request = generation_pb2.GenerateRequest(
        text=flags.prompt, temperature=flags.temperature, max_tokens=flags.max_tokens,
        num_speculative_tokens=None if flags.k == "auto" else flags.k,
        auto_num_speculative_tokens=flags.k == "auto", seed=flags.seed)
    delivered, finish = stream(stub, request, flags, stop_after=flags.cancel_after)
    if finish is None:
        print(f"\n-- cancelled after {len(delivered)} tokens; resuming --", file=sys.stderr)
        # The request as it was, with the seed, the model and the salt in use and what has arrived.
        request.delivered.ids.extend(delivered)
        more, finish = stream(stub, request, flags)
        delivered += more
    print(f"\n{len(delivered)} tokens, "
          f"{generation_pb2.FinishReason.Name(finish.reason)}, seed {request.seed}", file=sys.stderr)


def stream(stub, request, flags, stop_after=None):
    """Prints the text as it comes: the ids, and the last message or None where it was cancelled."""
    # Any id of ours; the logs of the coordinator and of the nodes have it, and the trace.
    metadata = (("x-request-id", f"example-{secrets.token_hex(4)}"),
                ("traceparent", f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"))
    call = stub.Generate(request, timeout=flags.timeout, metadata=metadata)
    for key, value in call.initial_metadata():
        if key == "x-request-id":
            print(f"request {value}, trace {metadata[1][1]}", file=sys.stderr)
    ids = []
    next_index = len(request.delivered.ids)
    for message in call:
        if message.HasField("start"):
            request.seed = message.start.seed
            request.model.CopyFrom(message.start.model)
            request.cache_salt = message.start.cache_salt or request.cache_salt
            if message.start.auto_num_speculative_tokens:
                request.auto_num_speculative_tokens = True
        if message.first_index > next_index and message.tokens:
            raise RuntimeError(f"tokens are missing: expected {next_index}, got {message.first_index}")
        for index, token in enumerate(message.tokens, message.first_index):
            if index < next_index:
                continue  # we have it already
            ids.append(token.id)
            next_index += 1
            print(token.text, end="", flush=True)
            if stop_after is not None and len(ids) == stop_after:
                call.cancel()
                return ids, None
        if message.HasField("finish"):
            print(message.finish.trailing_text, end="", flush=True)
            return ids, message.finish
    raise RuntimeError("the stream ended without its last message")


if __name__ == "__main__":
    main()
