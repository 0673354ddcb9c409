# SPDX-License-Identifier: Apache-2.0
"""The coordinators that there are: names resolved, one channel an address, one of them chosen."""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ipaddress
import logging
import random
import socket
import time
from collections.abc import Callable, Collection, Iterable, Iterator

import grpc

from outrider.v1 import generation_pb2, generation_pb2_grpc

from .tls import Credentials

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
# A coordinator that has just failed comes last for so long.
_SHUNNED_SECONDS = 5.0
_CHANNEL_OPTIONS = [("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0),
                    ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 400),
                    ("grpc.min_reconnect_backoff_ms", 900),  # which is how long an attempt to connect may take
                    ("grpc.max_receive_message_length", 64 << 20), ("grpc.enable_retries", 0),
                    # None but what is not compressed: gRPC may inflate a message before it looks at its size.
                    ("grpc.compression_enabled_algorithms_bitset", 1), ("grpc.per_message_decompression", 0)]


@dataclasses.dataclass(frozen=True)
class Keepalive:
    """A connection without a byte for so long is pinged, and is given up where it does not answer in time.

    The client library has the same two: where another coordinator can go on, one that says
    nothing at all is not waited for much longer than a slow token.
    """

    quiet_ms: int
    answer_ms: int

    def options(self) -> list[tuple[str, int]]:
        # For a ping, gRPC of today minds its own limit, a minute unless told, in place of the keepalive's.
        return [("grpc.keepalive_time_ms", self.quiet_ms), ("grpc.keepalive_timeout_ms", self.answer_ms),
                ("grpc.http2.ping_timeout_ms", self.answer_ms)]


ALONE = Keepalive(quiet_ms=5000, answer_ms=2000)
NOT_ALONE = Keepalive(quiet_ms=500, answer_ms=1000)


Description = generation_pb2.GenerationServiceDescribeResponse


@dataclasses.dataclass
class Coordinator:
    """One address, and what is known of it."""

    address: str
    server_name: str  # what its certificate is checked for
    channel: grpc.aio.Channel
    stub: generation_pb2_grpc.GenerationServiceStub
    num_streams: int = 0
    failed_at: float = -_SHUNNED_SECONDS
    description: Description | None = None  # what it said when it was last asked; None: nothing

    def is_shunned(self, now: float) -> bool:
        return now < self.failed_at + _SHUNNED_SECONDS

    def failed(self) -> None:
        self.failed_at = time.monotonic()

    @contextlib.contextmanager
    def stream(self) -> Iterator[None]:
        self.num_streams += 1
        try:
            yield
        finally:
            self.num_streams -= 1


def make_channel(address: str, server_name: str, credentials: grpc.ChannelCredentials | None,
                 keepalive: Keepalive = ALONE) -> grpc.aio.Channel:
    """Plain text without credentials; with them, certificates are checked for `server_name`."""
    options: list[tuple[str, int | str]] = [*_CHANNEL_OPTIONS, *keepalive.options()]
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=options)
    options.append(("grpc.ssl_target_name_override", server_name))
    return grpc.aio.secure_channel(address, credentials, options=options)


class Coordinators:
    """All coordinators behind the endpoints of the command line. Used by one event loop."""

    def __init__(self, endpoints: Iterable[str], credentials: Credentials, resolve_seconds: float = 30.0) -> None:
        self._endpoints = list(endpoints)
        self._keepalive = NOT_ALONE if may_be_several(self._endpoints) else ALONE
        self._credentials = credentials
        self._resolve_seconds = resolve_seconds
        self._addresses: dict[str, list[str]] = {endpoint: [] for endpoint in self._endpoints}
        self._nodes: dict[str, Coordinator] = {}
        self._leaving: list[Coordinator] = []  # with streams yet; they get no new ones
        self._resolving: asyncio.Task[None] | None = None
        self._describing: set[asyncio.Task[Description]] = set()

    async def start(self) -> None:
        await self._resolve_all()
        self._resolving = asyncio.create_task(self._resolve_for_ever())

    async def close(self) -> None:
        if self._resolving is not None:
            self._resolving.cancel()
        for task in self._describing:
            task.cancel()
        await asyncio.gather(*(node.channel.close() for node in [*self._nodes.values(), *self._leaving]))

    def choose(self, without: Collection[str] = (), fits: Callable[[Coordinator], bool] | None = None
               ) -> Coordinator | None:
        """Takes the one with the fewest streams; one that has just failed only where no other that fits is left."""
        now = time.monotonic()
        candidates = [node for address, node in self._nodes.items()
                      if address not in without and (fits is None or fits(node))]
        if not candidates:
            return None
        # Equals are drawn, so that several gateways do not all begin with the same one.
        return min(candidates, key=lambda n: (n.is_shunned(now), n.num_streams, random.random()))

    def __len__(self) -> int:
        return len(self._nodes)

    def certificate_expiries(self) -> dict[str, float]:
        return self._credentials.expiries()

    def descriptions(self) -> list[Description]:
        """What is known of those that are not leaving, fewer than there are where some have not answered."""
        return [node.description for node in self._nodes.values() if node.description is not None]

    def forget_descriptions(self) -> None:
        for node in self._nodes.values():
            node.description = None

    async def describe(self, seconds: float,
                       is_enough: Callable[[Description], bool] = lambda said: bool(said.verifiers)) -> Description:
        """What a coordinator says of itself, of all that are asked at once the first that is enough.

        Where none is, one that has a verifier, or any. The others are not waited for, but it is noted what they say.
        Raises a coordinator's error where none answers within `seconds`, and LookupError where there is none.
        """
        answers: list[Description] = []
        error: Exception = LookupError("no coordinator has an address")
        for one in asyncio.as_completed([self._begin_to_describe(node, seconds) for node in self._nodes.values()]):
            try:
                answer = await one
            except grpc.aio.AioRpcError as failure:
                error = failure
                continue
            if is_enough(answer):
                return answer
            answers.append(answer)
        if not answers:
            raise error
        return max(answers, key=lambda said: bool(said.verifiers))

    def _begin_to_describe(self, node: Coordinator, seconds: float) -> asyncio.Task[Description]:
        # Its connection is not closed meanwhile, nor before the task runs at all.
        node.num_streams += 1
        task = asyncio.create_task(self._describe_one(node, seconds))
        self._describing.add(task)
        task.add_done_callback(lambda task: self._end_describing(node, task))
        return task

    def _end_describing(self, node: Coordinator, task: asyncio.Task[Description]) -> None:
        node.num_streams -= 1
        self._describing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.debug("a coordinator does not describe itself", exc_info=error)

    @staticmethod
    async def _describe_one(node: Coordinator, seconds: float) -> Description:
        try:
            answer: Description = await node.stub.Describe(
                generation_pb2.GenerationServiceDescribeRequest(), timeout=seconds)
        except grpc.aio.AioRpcError:
            node.failed()
            node.description = None
            raise
        node.description = answer
        return answer

    async def _resolve_for_ever(self) -> None:
        resolved_at = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                if self._credentials.changed():
                    self._connect_anew()
                # Often while there is nobody to talk to: others may have come in place of those that are gone.
                if not self._anybody_answers() or time.monotonic() >= resolved_at + self._resolve_seconds:
                    resolved_at = time.monotonic()
                    await self._resolve_all()
                await self._close_idle()
            except Exception:
                # Whatever a resolver or a file came up with: who looks no more knows addresses of the past alone.
                log.exception("coordinators cannot be looked for now; the gateway tries again")

    def _anybody_answers(self) -> bool:
        now = time.monotonic()
        return any(node.description is not None and not node.is_shunned(now) for node in self._nodes.values())

    def _connect_anew(self) -> None:
        """Connects with the certificates of now; streams go on where they are."""
        before = list(self._nodes.values())
        self._leaving += before
        self._nodes = {node.address: self._connect(node.address, node.server_name) for node in before}

    def _connect(self, address: str, server_name: str) -> Coordinator:
        channel = make_channel(address, server_name, self._credentials.current, self._keepalive)
        return Coordinator(address, server_name, channel, generation_pb2_grpc.GenerationServiceStub(channel))

    async def _close_idle(self) -> None:
        idle = [node for node in self._leaving if node.num_streams == 0]
        self._leaving = [node for node in self._leaving if node.num_streams > 0]
        await asyncio.gather(*(node.channel.close() for node in idle))

    async def _resolve_all(self) -> None:
        for endpoint in self._endpoints:
            try:
                self._addresses[endpoint] = await resolve(endpoint)
            except (OSError, UnicodeError) as error:  # the latter of a name that DNS cannot have
                # Nobody could be asked, which says nothing of the addresses known.
                log.warning("%s cannot be resolved: %s", endpoint, error)
        found = {address: host_of(endpoint) for endpoint in self._endpoints for address in self._addresses[endpoint]}
        for address, server_name in found.items():
            if address not in self._nodes:
                self._nodes[address] = self._connect(address, server_name)
        self._leaving += [self._nodes.pop(address) for address in set(self._nodes) - set(found)]


def host_of(endpoint: str) -> str:
    return endpoint.rpartition(":")[0].strip("[]")


def may_be_several(endpoints: list[str]) -> bool:
    """One name may stand for them all, such as a Service's."""
    return len(endpoints) > 1 or not all(_is_resolved(endpoint) for endpoint in endpoints)


def _is_resolved(endpoint: str) -> bool:
    try:
        ipaddress.ip_address(host_of(endpoint))
    except ValueError:
        return False
    return True


async def resolve(endpoint: str) -> list[str]:
    """All addresses behind HOST:PORT, each as HOST:PORT; of a name with both kinds the IPv4 ones."""
    if _is_resolved(endpoint):
        return [endpoint]
    host, port = host_of(endpoint), endpoint.rpartition(":")[2]
    infos = await asyncio.get_running_loop().getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    v4 = sorted({info[4][0] for info in infos if info[0] == socket.AF_INET})
    v6 = sorted({info[4][0] for info in infos if info[0] == socket.AF_INET6})
    return [f"{address}:{port}" for address in v4] or [f"[{address}]:{port}" for address in v6]
