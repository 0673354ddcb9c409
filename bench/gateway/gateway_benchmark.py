#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the gateway adds to a stream: the same load over HTTP and over gRPC, in turns, in one run.

Starts a coordinator before calibrated nodes (timing models) and a gateway before it. Streams begin
evenly spread over a time, so that none waits for another's beginning; both clients live in one event
loop of this process, and each does as little as it can with a message. Needs what the gateway's tests
need: tools/setup.sh --tests, then .venv-test/bin/python bench/gateway/gateway_benchmark.py
"""
from __future__ import annotations

import argparse
import asyncio
import json
import os
import pathlib
import re
import statistics
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "gateway"), str(ROOT / "tools")]
import make_stubs  # noqa: E402

make_stubs.main()

import grpc  # noqa: E402
import uvloop  # noqa: E402
from outrider.v1 import generation_pb2 as pb  # noqa: E402
from outrider.v1 import generation_pb2_grpc  # noqa: E402
from program import Program  # noqa: E402

BIN = pathlib.Path(os.environ.get("OUTRIDER_BIN_DIR", ROOT / "build/release/bin"))
PROMPT = list(range(1, 17))
TIME_PER_TOKEN_RATIO, FIRST_TOKEN_SECONDS = 1.1, 0.005  # what is asked of the gateway


class Stream:
    """One reader's experience."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.count = wanted, 0
        self.begun = asyncio.Event()  # its first token is there
        self._began = time.monotonic()
        self._first = self._last = 0.0

    def take(self, num_tokens: int) -> None:
        self._last = time.monotonic()
        if not self.count:
            self._first = self._last
            self.begun.set()
        self.count += num_tokens

    @property
    def first_token(self) -> float:
        return self._first - self._began

    @property
    def per_token(self) -> float:
        return (self._last - self._first) / (self.count - 1)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--tokens", type=int, default=96, help="of each stream")
    parser.add_argument("--spread", type=float, default=5.0, metavar="SECONDS", help="over which streams begin")
    parser.add_argument("--repeat", type=int, default=3, help="turns of each client")
    parser.add_argument("--verifiers", type=int, default=8)
    parser.add_argument("--pass-ms", type=float, default=50.0, help="of the calibrated verifier")
    parser.add_argument("--row-ms", type=float, default=0.04, help="that each token of a pass adds")
    parser.add_argument("--profile", type=pathlib.Path, help="writes the gateway's cProfile there")
    return parser.parse_args()


def start_services(flags: argparse.Namespace, programs: list[Program]) -> tuple[Program, Program]:
    """(the coordinator, the gateway)."""
    def start(path, *words, **more) -> Program:
        programs.append(Program(path, *words, "--listen", "127.0.0.1:0", **more))
        return programs[-1]

    verifiers = [start(BIN / "outrider-verifier", "--simulate", "--simulate-pass-ms", flags.pass_ms,
                       "--simulate-row-ms", flags.row_ms, "--prefill-chunk", 8192) for _ in range(flags.verifiers)]
    drafter = start(BIN / "outrider-drafter", "--simulate", "--simulate-pass-ms", 2, "--simulate-row-ms",
                    flags.row_ms / 10, "--simulate-acceptance", 0.8)
    nodes = [word for verifier in verifiers for word in ("--verifier", verifier.address())]
    coordinator = start(BIN / "outrider-coordinator", *nodes, "--drafter", drafter.address(), "--max-sessions",
                        2 * flags.streams, "--max-waiting", 2 * flags.streams, "--metrics-listen", "127.0.0.1:0")
    profile = ["-m", "cProfile", "-o", flags.profile] if flags.profile else []
    gateway = start(sys.executable, "-B", *profile, "-m", "outrider_gateway", "--coordinator",
                    coordinator.address(), inside=("env", f"PYTHONPATH={ROOT / 'gateway'}"))
    return coordinator, gateway


class Http:
    """Server-sent events, which are not parsed further than to count their tokens."""

    def __init__(self, address: str) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._head = f"POST /v1/completions HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"

    async def read(self, seed: int, stream: Stream) -> None:
        body = json.dumps({"model": "simulated-target", "prompt": PROMPT, "max_tokens": stream.wanted, "seed": seed,
                           "stream": True, "ignore_eos": True, "return_token_ids": True}).encode()
        loop = asyncio.get_running_loop()
        transport, events = await loop.create_connection(lambda: Events(stream), self._host, self._port)
        try:
            transport.write(f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await events.end
        finally:
            transport.close()


class Events(asyncio.Protocol):
    """A reply, from its status to its end."""

    def __init__(self, stream: Stream) -> None:
        self.end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stream = stream
        self._is_good = False  # its status has been read
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        self._rest += data
        if not self._is_good:
            status, is_whole, _ = self._rest.partition(b"\r\n")
            if not is_whole or self.end.done():
                return
            if status.split()[1:2] != [b"200"]:
                # The connection may stay open, and no more come.
                self.end.set_exception(RuntimeError(f"a request was refused: {self._rest!r}"))
                return
            self._is_good = True
        *events, self._rest = self._rest.split(b"\n\n")
        for event in events:
            ids = event.partition(b'"token_ids":[')[2].partition(b"]")[0]
            if ids:
                self._stream.take(ids.count(b",") + 1)
            elif event.endswith(b"data: [DONE]") and not self.end.done():
                self.end.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.end.done():
            self.end.set_exception(RuntimeError(f"a stream ended before its end: {error or self._rest!r}"))


class Grpc:
    def __init__(self, address: str) -> None:
        self._channel = grpc.aio.insecure_channel(address)
        self._stub = generation_pb2_grpc.GenerationServiceStub(self._channel)

    async def read(self, seed: int, stream: Stream) -> None:
        request = pb.GenerateRequest(tokens=pb.TokenIds(ids=PROMPT), max_tokens=stream.wanted, seed=seed,
                                     ignore_eos=True)
        async for message in self._stub.Generate(request):
            if message.tokens:
                stream.take(len(message.tokens))


async def read(client: Http | Grpc, delay: float, seed: int, tokens: int) -> Stream:
    await asyncio.sleep(delay)
    stream = Stream(tokens)
    await client.read(seed, stream)
    if stream.count != tokens:
        raise RuntimeError(f"a stream had {stream.count} tokens, not {tokens}")
    return stream


async def turn(client: Http | Grpc, flags: argparse.Namespace, first_seed: int) -> list[Stream]:
    return await asyncio.gather(*(read(client, flags.spread * i / flags.streams, first_seed + i, flags.tokens)
                                  for i in range(flags.streams)))


def cpu_seconds(program: Program) -> float:
    fields = pathlib.Path(f"/proc/{program.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def seconds_to_cancel(http: Http, coordinator: Program, seed: int) -> float:
    """The time from a reader's leaving, after its first token, to the end of its session at the coordinator."""
    url = f"http://{re.search(r'metrics on (.*)', coordinator.out())[1]}/metrics"

    def is_running() -> bool:
        page = urllib.request.urlopen(url).read().decode()
        return float(re.search(r"^outrider_requests_running\{.*\} (.*)$", page, re.M)[1]) > 0
    stream = Stream(4096)
    reading = asyncio.create_task(http.read(seed, stream))
    await stream.begun.wait()
    reading.cancel()
    left = time.monotonic()
    while await asyncio.to_thread(is_running):
        pass
    return time.monotonic() - left


async def measure(flags: argparse.Namespace, coordinator: Program, gateway: Program) -> bool:
    clients = {"gRPC": Grpc(coordinator.address()), "HTTP": Http(gateway.address())}
    for client in clients.values():  # connections, code paths
        await asyncio.gather(*(read(client, 0, i, 8) for i in range(16)))
    streams: dict[str, list[Stream]] = {name: [] for name in clients}
    for i in range(flags.repeat):
        for name, client in clients.items():
            before = cpu_seconds(gateway)
            began = time.monotonic()
            found = await turn(client, flags, 1 + i * flags.streams)
            spent = time.monotonic() - began
            streams[name] += found
            print(f"{name}, turn {i + 1}: {spent:.1f} s, first token {median(found, 'first_token'):.1f} ms, a token "
                  f"{median(found, 'per_token'):.2f} ms (medians of {len(found)}), gateway's CPU "
                  f"{100 * (cpu_seconds(gateway) - before) / spent:.0f} %", flush=True)
    ends = [1000 * await seconds_to_cancel(clients["HTTP"], coordinator, i) for i in range(20)]
    print(f"a reader who leaves ends the session in {statistics.median(ends):.1f} ms (median of {len(ends)}; at most "
          f"{max(ends):.1f})")
    ratio = median(streams["HTTP"], "per_token") / median(streams["gRPC"], "per_token")
    more = median(streams["HTTP"], "first_token") - median(streams["gRPC"], "first_token")
    is_good = ratio <= TIME_PER_TOKEN_RATIO and more <= 1000 * FIRST_TOKEN_SECONDS
    print(f"through the gateway: a token takes {ratio:.3f} times as long (at most {TIME_PER_TOKEN_RATIO}), the first "
          f"one {more:.1f} ms longer (at most {1000 * FIRST_TOKEN_SECONDS:.0f}): {'good' if is_good else 'MISSED'}")
    return is_good


def median(streams: list[Stream], what: str) -> float:
    return 1000 * statistics.median(getattr(stream, what) for stream in streams)


def main() -> int:
    flags = parse()
    programs: list[Program] = []
    try:
        return 0 if uvloop.run(measure(flags, *start_services(flags, programs))) else 1
    except Exception:
        for program in programs:
            print(f"{program.name}: {program.err()[-2000:]}", file=sys.stderr)
        raise
    finally:
        for program in reversed(programs):
            program.end()
            program.close()


if __name__ == "__main__":
    sys.exit(main())
