# SPDX-License-Identifier: Apache-2.0
"""Streams like those of users, their clients, and what they have to be."""
from __future__ import annotations

import asyncio
import collections
import dataclasses
import json
import pathlib
import secrets
import sys
import time

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/python"))
import stubs  # noqa: E402
from stream_check import differences  # noqa: E402

generation_pb2, types_pb2 = stubs.generation_pb2, stubs.types_pb2
LONGEST = 512
AUTO = "auto"  # K is the coordinator's choice, round by round
PATIENCE = 180  # seconds that a stream may take altogether
# What another coordinator may do better, as the client library has it. CANCELLED is
# what gRPC's servers say to calls that they have not begun when they shut down.
ELSEWHERE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.CANCELLED,
             grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ABORTED)
TRIES_OF_EACH = 2
PAUSE = 0.5
CHANNEL = (("grpc.keepalive_time_ms", 500), ("grpc.keepalive_timeout_ms", 1000), ("grpc.http2.ping_timeout_ms", 1000),
           ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0),
           ("grpc.enable_retries", 0), ("grpc.enable_http_proxy", 0),
           ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.min_reconnect_backoff_ms", 900),
           ("grpc.max_reconnect_backoff_ms", 400))


@dataclasses.dataclass(frozen=True)
class Text:
    """What decides the tokens of a stream: what else a request says must not change them."""
    prompt: str
    seed: int | None  # None: greedy; else coupled with this seed

    def request(self, num_tokens, **more):
        rule = ({"temperature": 0} if self.seed is None else
                {"temperature": 1, "seed": self.seed,
                 "acceptance_rule": types_pb2.AcceptanceRule.ACCEPTANCE_RULE_COUPLED})
        return generation_pb2.GenerateRequest(text=self.prompt, max_tokens=num_tokens, ignore_eos=True, **rule, **more)


def texts(random, count):
    """Greedy and coupled in turns, of prompts of 20 to 100 tokens."""
    lines = (ROOT / "models/prompts.jsonl").read_text().splitlines()
    prompts = [json.loads(line)["prompt"] for line in random.sample(lines, count)]
    return [Text(prompt, None if number % 2 else random.getrandbits(32)) for number, prompt in enumerate(prompts)]


@dataclasses.dataclass
class Arrival:
    at: float
    num_tokens: int
    num_drafted: int
    num_accepted: int
    num_more: int  # tokens that the verifier went on with by itself


class Stream:
    """One generation, which goes on at the next coordinator where it breaks: what client/resuming_stream.h does."""

    def __init__(self, text, num_tokens, **options):
        self.text = text
        self.num_tokens = num_tokens
        self.name = secrets.token_hex(8)  # by which logs know it
        self.has_auto_k = options.get("auto_num_speculative_tokens", False)
        self.model = None  # that gave the first token: a ModelIdentity
        self._request = text.request(num_tokens, **options)
        self.tokens = []
        self.arrivals = []
        self.prompt_length = 0
        self.breaks = []  # (time, code, what it said): of calls, after which it went on
        self.error = None  # the code that ended it
        self.broken_rules = collections.Counter()  # indices that are missing, or that come again
        self.begun = time.monotonic()
        self.ended = None

    @property
    def times(self):
        return [arrival.at for arrival in self.arrivals]

    def ran_at(self, at):
        return bool(self.arrivals) and self.arrivals[0].at < at < self.arrivals[-1].at

    def length_at(self, at):
        """Tokens that a node would have to be given then, the prompt's among them."""
        return self.prompt_length + sum(arrival.num_tokens for arrival in self.arrivals if arrival.at <= at)

    def replace_prompt(self, ids):
        self._request.tokens.ids.extend(ids)

    async def run(self, coordinators, first, patience=PATIENCE):
        """`coordinators`: stubs, of which `first` is asked first."""
        latest = self.begun + patience
        tries = 0
        while self.error is None and self.ended is None:
            tries += 1
            num_tokens = len(self.tokens)
            try:
                stub = coordinators[(first + len(self.breaks)) % len(coordinators)]
                await self._read(stub.Generate(self._request, timeout=max(0.001, latest - time.monotonic()),
                                               metadata=(("x-request-id", self.name),)))
                self.ended = time.monotonic()
            except grpc.aio.AioRpcError as failure:
                self.breaks.append((time.monotonic(), failure.code().name, failure.details()))
                if len(self.tokens) > num_tokens:
                    tries = 1
                if failure.code() not in ELSEWHERE or tries >= TRIES_OF_EACH * len(coordinators):
                    self.error = failure.code().name
                elif tries % len(coordinators) == 0:
                    await asyncio.sleep(PAUSE)
                if self.tokens:
                    self._request.delivered.ids[:] = self.tokens
        return self

    async def _read(self, call):
        async for message in call:
            if message.HasField("start"):
                self.prompt_length = message.start.prompt_length
                self._request.seed = message.start.seed
                if self.tokens and message.start.model != self.model:
                    self.broken_rules["of another model"] += 1
                self.model = message.start.model
                self._request.model.CopyFrom(self.model)
                self._request.cache_salt = message.start.cache_salt or self._request.cache_salt
            if message.tokens:
                self._take(message)
            if message.HasField("finish"):
                return
        self.error = "NO_FINISH"

    def _take(self, message):
        ids = [token.id for token in message.tokens]
        next_index = len(self.tokens)
        if message.first_index > next_index:
            self.broken_rules["lost"] += message.first_index - next_index
        if message.first_index < next_index:
            self.broken_rules["doubled"] += next_index - message.first_index
        self.tokens += ids
        stats = message.round
        self.arrivals.append(Arrival(time.monotonic(), len(ids), stats.num_drafted, stats.num_accepted, stats.num_more))


class Clients:
    """Connections to the coordinators, and the golden of each text by each model."""

    def __init__(self, addresses, goldens, credentials=None, longest=LONGEST):
        """`longest`: tokens that any stream has."""
        self.channels = [grpc.aio.secure_channel(address, credentials, CHANNEL) if credentials else
                         grpc.aio.insecure_channel(address, CHANNEL) for address in addresses]
        self.stubs = [stubs.generation_pb2_grpc.GenerationServiceStub(channel) for channel in self.channels]
        self.goldens = goldens
        self._longest = longest

    async def learn(self, some_texts, model):
        """Decodes plainly, by nodes of this model, what is not known yet: they must be undisturbed."""
        turns = asyncio.Semaphore(8)  # fewer than any row's coordinator takes

        async def learn(text):
            async with turns:
                golden = await Stream(text, self._longest, num_speculative_tokens=0, model=model).run(self.stubs[:1], 0)
            assert golden.error is None and len(golden.tokens) == self._longest, golden.breaks
            assert golden.model == model, golden.model
            self.goldens[_key(text, model)] = tuple(golden.tokens)
        await asyncio.gather(*(learn(text) for text in some_texts if _key(text, model) not in self.goldens))

    def differences(self, stream):
        if stream.model is None:  # nothing has come
            return collections.Counter(lost=stream.num_tokens if stream.error is None else 0) + stream.broken_rules
        of = _key(stream.text, stream.model)
        golden = self.goldens[of][:stream.num_tokens]
        tokens = tuple(stream.tokens)
        if stream.error is not None:
            golden = golden[:len(tokens)]  # it was cut short, and says so
        if tokens == golden:
            return stream.broken_rules
        others = [other for another, other in self.goldens.items() if another != of]
        return differences(tokens, golden, others) + stream.broken_rules

    async def close(self):
        for channel in self.channels:
            await channel.close()


def _key(text, model):
    """The key of a golden: each cluster's nodes measure which kernels are the fastest, and the text is the kernels' too."""
    return text, model.weights_hash, model.dtype, model.numerics


def _drafting(k):
    """What a request says of its drafts."""
    return {"auto_num_speculative_tokens": True} if k == AUTO else {"num_speculative_tokens": k}


class Load:
    """Users who ask for one stream after the other, until they are told to stop."""

    def __init__(self, clients, some_texts, random, users, shortest=64, longest=LONGEST, ks=(2, 4, 6)):
        self.clients = clients
        self.streams = []
        self._texts = some_texts
        self._random = random
        self._lengths = (shortest, longest)
        self._ks = ks
        self._ends = False
        self._users = [asyncio.ensure_future(self._ask(number)) for number in range(users)]

    async def _ask(self, number):
        while not self._ends:
            stream = Stream(self._random.choice(self._texts), self._random.randint(*self._lengths),
                            **_drafting(self._random.choice(self._ks)))
            self.streams.append(stream)
            await stream.run(self.clients.stubs, number)
            if stream.error is not None:
                await asyncio.sleep(PAUSE)

    async def has_begun(self, patience):
        """Returns when the first stream of each user has given a token or was refused: texts are taken in no more at once."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            await asyncio.sleep(0.02)
            if all(first.times or first.error for first in self.streams[:len(self._users)]):
                return

    async def finish(self):
        """Lets the last streams end."""
        self._ends = True
        await asyncio.gather(*self._users)

    def running(self):
        return [stream for stream in self.streams if stream.ended is None and stream.error is None]

    def arrivals(self, begin, end):
        return [arrival for stream in self.streams for arrival in stream.arrivals if begin <= arrival.at < end]

    def goodput(self, begin, end):
        """Tokens a second."""
        return sum(arrival.num_tokens for arrival in self.arrivals(begin, end)) / max(end - begin, 1e-9)

    def goodputs(self, begin, end):
        """The goodput of each whole second."""
        return [self.goodput(begin + second, begin + second + 1) for second in range(int(end - begin))]

    def drafts_a_round(self, begin, end):
        """The mean of streams whose K is chosen for each round."""
        counts = [arrival.num_drafted for stream in self.streams if stream.has_auto_k
                  for arrival in stream.arrivals if begin <= arrival.at < end]
        return sum(counts) / max(len(counts), 1)

    def acceptance(self, begin, end):
        drafted = sum(arrival.num_drafted for arrival in self.arrivals(begin, end))
        return sum(arrival.num_accepted for arrival in self.arrivals(begin, end)) / drafted if drafted else None
