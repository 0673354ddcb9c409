# SPDX-License-Identifier: Apache-2.0
"""A rolling update of each role under load: no reader sees an error, nor another text.

Readers ask the gateway, and while coordinators roll, coordinators too.
"""
import contextlib
import json
import sys
import threading

import grpc

import meaning
from cluster import PROMPT, expect, say, wait_until
from playing import ROLES

sys.path.insert(0, str(meaning.ROOT / "examples/python"))

from stubs import generation_pb2, generation_pb2_grpc  # noqa: E402

READERS = 6
TOKENS = 200
ENOUGH = 3  # replies of each reader before, and after, a pod has gone
# What ../README.md tells those to take who balance by themselves.
SERVICE_CONFIG = {"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": "readiness"}}


class Load:
    """Readers that ask for the same greedy text again and again, each reply compared. `ask` gives a text."""

    def __init__(self, ask, plain):
        self._ask, self._plain = ask, plain
        self._stopping = threading.Event()
        self._replies = [0] * READERS
        self._errors = []
        self._readers = [threading.Thread(target=self._read, args=(i,)) for i in range(READERS)]

    def __enter__(self):
        for reader in self._readers:
            reader.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        for reader in self._readers:
            reader.join()

    def _read(self, number):
        while not self._stopping.is_set():
            try:
                text = self._ask()
                if not (text and self._plain.startswith(text)):
                    self._errors.append(f"another text: {text!r}")
                self._replies[number] += 1
            except Exception as error:  # whatever it is, a reader has seen it
                self._errors.append(repr(error))
                return

    def serve(self):
        """Waits until each reader has had some more replies, without an error."""
        goals = [count + ENOUGH for count in self._replies]
        wait_until("every reader is served", lambda: self._errors or all(
            count >= goal for count, goal in zip(self._replies, goals)))
        expect(not self._errors, f"readers have seen {self._errors[:3]}")

    def num_replies(self):
        return sum(self._replies)


class Gateway:
    """The gateway, as its readers ask it."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.turn_to_successor()

    def turn_to_successor(self):
        """Does what a Service does: new requests go to the pod that will stay."""
        self._address = self._cluster.address("gateway")

    def ask(self):
        reply = self._cluster.complete(self._address, prompt=PROMPT, temperature=0, ignore_eos=True, max_tokens=TOKENS)
        return reply["choices"][0]["text"]


@contextlib.contextmanager
def direct_load(addresses, plain):
    """Readers of one gRPC channel over several coordinators, as a headless Service gives it."""
    target = "ipv4:" + ",".join(f"{address}:7000" for address in addresses)
    options = [("grpc.service_config", json.dumps(SERVICE_CONFIG)), ("grpc.enable_retries", 0), ("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(target, options=options) as channel:
        stub = generation_pb2_grpc.GenerationServiceStub(channel)

        def ask():
            call = stub.Generate(generation_pb2.GenerateRequest(
                text=PROMPT, temperature=0, ignore_eos=True, max_tokens=TOKENS), timeout=60)
            return "".join("".join(token.text for token in message.tokens) + message.finish.trailing_text for message in call)
        with Load(ask, plain) as load:
            yield load


def found(cluster, role):
    """Whether those who talk to a role know of two of its pods, which minReadySeconds leaves them time for."""
    def value(page, line):
        return next((float(one.rsplit(" ", 1)[1]) for one in (page or "").splitlines() if one.startswith(line)), 0)
    if role == "gateway":
        return True
    if role == "coordinator":
        return value(cluster.page("gateway", "/metrics"), "outrider_gateway_coordinators") >= 2
    page = cluster.page("coordinator", "/metrics") or ""
    return any(f'peer="{role}"' in line and 'state="ready"' in line and line.endswith(" 2")
               for line in page.splitlines() if line.startswith("outrider_nodes{"))


def check_rolling_updates(cluster, plain):
    gateway = Gateway(cluster)
    with Load(gateway.ask, plain) as load:
        load.serve()
        for role in ROLES:
            before, address = load.num_replies(), cluster.address(role)
            end_the_one_before = cluster.start_successor(role)
            wait_until(f"the second {role} is found", lambda role=role: found(cluster, role))
            if role == "gateway":
                gateway.turn_to_successor()
            with contextlib.ExitStack() as stack:
                loads = [load]
                if role == "coordinator":
                    loads.append(stack.enter_context(direct_load([address, cluster.address(role)], plain)))
                for one in loads:
                    one.serve()
                end_the_one_before()
                for one in loads:
                    one.serve()
            say(f"rolling update of the {role} under {READERS} readers: {load.num_replies() - before} replies, no error")
