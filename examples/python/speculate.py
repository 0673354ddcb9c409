#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speculative sampling by hand: calls Draft and Verify directly, and accepts or rejects here.

  python speculate.py --drafter 127.0.0.1:7001 --verifier 127.0.0.1:7002 --prompt "0 17 4"

The plain reading of the method (Leviathan et al. 2023, Algorithm 1; Chen et al.
2023, Algorithm 2), without a coordinator: the drafter proposes K tokens with
their distributions q, the verifier answers with K + 1 rows of raw logits (FULL),
whose softmax is p. Token x is accepted with probability min(1, p(x) / q(x));
after the first refusal one token is drawn from the residual max(0, p - q), after
K acceptances one from the last row. Prints token ids.
"""
import argparse
import contextlib
import math
import random
import secrets
import struct
import sys

import grpc
from arguments import MOST_UINT32, MOST_UINT64, token_ids, whole_number
from sparse_row import row_to_dict
from stubs import (cache_pb2, cache_pb2_grpc, drafter_pb2, drafter_pb2_grpc, types_pb2, verifier_pb2,
                   verifier_pb2_grpc)

# K + 1 rows of a large vocabulary are more than gRPC's default of 4 MiB.
CHANNEL_OPTIONS = [("grpc.max_receive_message_length", 256 << 20)]


def softmax(logits, temperature):
    """p of one row, as a list over the vocabulary; temperature 0 is the argmax, lowest id on ties."""
    if temperature == 0:
        best = max(range(len(logits)), key=lambda i: (logits[i], -i))
        return [float(i == best) for i in range(len(logits))]
    top = max(logits)
    weights = [math.exp((x - top) / temperature) for x in logits]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def acceptance_probability(p, q, token):
    return min(1.0, p[token] / q[token])


def residual(p, q):
    """norm(max(0, p - q))."""
    rest = [max(0.0, probability - q.get(token, 0.0)) for token, probability in enumerate(p)]
    total = math.fsum(rest)
    return [probability / total for probability in rest]


def draw(p, coin):
    return coin.choices(range(len(p)), weights=p)[0]


def judge(drafts, qs, ps, coin):
    """The tokens that one round commits: the accepted drafts, and one of the target's own."""
    for i, (token, q) in enumerate(zip(drafts, qs, strict=True)):
        if coin.random() >= acceptance_probability(ps[i], q, token):
            return drafts[:i] + [draw(residual(ps[i], q), coin)]
    return drafts + [draw(ps[-1], coin)]


class Node:
    """What we know of one node's cache, and the headers that bring it up to date."""

    def __init__(self, session):
        self.session, self.incarnation, self.cached = session, b"", 0

    def header(self, step, committed):
        """Cut to what is right, append what is missing: absolute, so safe to send twice."""
        keep = min(self.cached, len(committed) - 1)
        return types_pb2.RequestHeader(
            session_id=self.session, incarnation=self.incarnation, step=step,
            cache_delta=types_pb2.CacheDelta(keep_length=keep, append_tokens=committed[keep:]))

    def answered(self, reply):
        """Takes note; False where the cache was not as assumed: send again."""
        if reply.HasField("miss"):
            lost = reply.miss.reason != types_pb2.Miss.REASON_LENGTH
            self.cached = 0 if lost else reply.miss.cached_length
            if lost:
                self.incarnation = b""
            return False
        self.incarnation = reply.header.incarnation
        self.cached = reply.header.cached_length
        return True


class Speculator:
    """One generation over a drafter and a verifier."""

    def __init__(self, drafter_channel, verifier_channel, flags):
        self.drafter = drafter_pb2_grpc.DrafterServiceStub(drafter_channel)
        self.verifier = verifier_pb2_grpc.VerifierServiceStub(verifier_channel)
        self.caches = [cache_pb2_grpc.CacheServiceStub(c) for c in (drafter_channel, verifier_channel)]
        session = secrets.token_bytes(16)
        self.nodes = Node(session), Node(session)
        self.flags = flags
        self.coin = random.Random(flags.seed)
        self.sampling = types_pb2.SamplingParams(temperature=flags.temperature, top_p=1.0)
        self.step = 0  # one counter of the session, over both nodes
        self.num_drafted = self.num_accepted = 0

    def next_step(self):
        self.step += 1
        return self.step

    def draft(self, committed, k):
        while True:
            reply = self.drafter.Draft(drafter_pb2.DraftRequest(
                header=self.nodes[0].header(self.next_step(), committed), max_draft_tokens=k,
                sampling=self.sampling, seed=self.flags.seed), timeout=self.flags.timeout)
            if self.nodes[0].answered(reply):
                drafts = list(reply.result.tokens)
                # No rows: each draft has all the mass of its own.
                return drafts, [row_to_dict(row) for row in reply.result.rows] or [{x: 1.0} for x in drafts]

    def verify(self, committed, drafts):
        while True:
            reply = self.verifier.Verify(verifier_pb2.VerifyRequest(
                header=self.nodes[1].header(self.next_step(), committed), draft_tokens=drafts,
                reply_format=types_pb2.REPLY_FORMAT_FULL), timeout=self.flags.timeout)
            if self.nodes[1].answered(reply):
                break
        size = reply.full.vocab_size
        rows = [struct.unpack_from(f"<{size}f", reply.full.logits, 4 * size * i)
                for i in range(reply.full.num_rows)]
        return [softmax(row, self.flags.temperature) for row in rows]

    def round(self, committed, k):
        drafts, qs = self.draft(committed, k)
        ps = self.verify(committed, drafts)
        block = judge(drafts, qs, ps, self.coin)
        shared = len(committed) + len(block) - 1  # the last token is in no cache yet
        for node in self.nodes:
            node.cached = min(node.cached, shared)
        self.num_drafted += len(drafts)
        self.num_accepted += len(block) - 1
        return block

    def generate(self, prompt, max_tokens):
        committed = list(prompt)
        end = len(prompt) + max_tokens
        while len(committed) < end:
            # A round commits one token more than it accepts.
            committed += self.round(committed, min(self.flags.k, end - len(committed) - 1))
        return committed[len(prompt):]

    def release(self):
        """Gives the caches back early; without it their leases run out."""
        for cache, node in zip(self.caches, self.nodes):
            if node.incarnation:
                cache.Release(cache_pb2.ReleaseRequest(
                    session_id=node.session, incarnation=node.incarnation,
                    step=self.next_step()), timeout=self.flags.timeout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drafter", default="127.0.0.1:7001")
    parser.add_argument("--verifier", default="127.0.0.1:7002")
    parser.add_argument("--prompt", required=True, type=token_ids, help='token ids, such as "0 17 4"')
    parser.add_argument("--k", type=whole_number(0, MOST_UINT32), default=4)
    parser.add_argument("--max-tokens", type=whole_number(1, MOST_UINT32), default=32)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--seed", type=whole_number(0, MOST_UINT64), default=secrets.randbits(32))
    parser.add_argument("--timeout", type=float, default=30, help="seconds for each call")
    flags = parser.parse_args()
    with grpc.insecure_channel(flags.drafter, CHANNEL_OPTIONS) as drafter, \
            grpc.insecure_channel(flags.verifier, CHANNEL_OPTIONS) as verifier:
        try:
            speculator = Speculator(drafter, verifier, flags)
            print(*speculator.generate(flags.prompt, flags.max_tokens), flush=True)
        except grpc.RpcError as error:
            sys.exit(f"speculate.py: {error.code().name}: {error.details()}")
        with contextlib.suppress(grpc.RpcError):
            speculator.release()
    print(f"{speculator.num_accepted} of {speculator.num_drafted} drafts accepted", file=sys.stderr)


if __name__ == "__main__":
    main()
