# SPDX-License-Identifier: Apache-2.0
"""Two coordinators before clients that balance by themselves, when one of the two is told to end."""
import concurrent.futures
import json
import os
import pathlib
import signal
import socket
import sys
import threading
import unittest

import grpc
from programs import own_loopback, wait_until
from scraping import ScrapingTest, get

sys.path.append(str(pathlib.Path(os.environ["OUTRIDER_SOURCE_DIR"]) / "examples/python"))
from stubs import generation_pb2, generation_pb2_grpc  # noqa: E402

ROUND_ROBIN = {"loadBalancingConfig": [{"round_robin": {}}]}
HEALTHY = {**ROUND_ROBIN, "healthCheckConfig": {"serviceName": "readiness"}}  # as deploy/README.md has it
PASS_MS = 10
LONG = 900  # tokens of a stream that outlasts all else here: nine seconds of passes


def request(num_tokens):
    return generation_pb2.GenerateRequest(tokens=generation_pb2.TokenIds(ids=[1, 2, 3]), max_tokens=num_tokens,
                                          temperature=0, ignore_eos=True, num_speculative_tokens=0)


class Stream:
    """A stream that is read to its end on a thread."""

    def __init__(self, channel, num_tokens):
        self.tokens, self.error = [], None
        self._call = generation_pb2_grpc.GenerationServiceStub(channel).Generate(request(num_tokens), timeout=90)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self):
        try:
            for message in self._call:
                self.tokens += [token.id for token in message.tokens]
        except grpc.RpcError as error:
            self.error = error

    def wait(self):
        self._thread.join()
        return self.error


class DrainTest(ScrapingTest):
    HOST = own_loopback()

    def setUp(self):
        super().setUp()
        self.verifier = self.start("outrider-verifier", "--simulate", "--simulate-pass-ms", PASS_MS,
                                   "--listen", "127.0.0.1:0")
        self.coordinators = [self.start("outrider-coordinator", "--verifier", self.verifier.address(),
                                        "--listen", f"{self.HOST}:0", "--drain-seconds", "60", *self.HTTP)
                             for _ in range(2)]
        for coordinator in self.coordinators:
            self.wait_for_nodes(coordinator.address(), "verifier")

    def channel(self, service_config, *coordinators):
        """One channel over several coordinators, each of which it is connected to."""
        target = "ipv4:" + ",".join(one.address() for one in coordinators)
        channel = grpc.insecure_channel(target, options=[
            ("grpc.service_config", json.dumps(service_config)), ("grpc.enable_retries", 0),
            ("grpc.enable_http_proxy", 0)])
        self.addCleanup(channel.close)
        before = [self.num_served(one) for one in coordinators]

        def all_serve():
            error = Stream(channel, 1).wait()
            return error is None and all(self.num_served(one) > n for one, n in zip(coordinators, before))
        wait_until("the channel is connected to all", all_serve)
        return channel

    def num_served(self, coordinator):
        return self.value(coordinator, "requests_total", code="OK")

    def begin_long_stream(self, coordinator):
        stream = Stream(self.channel(ROUND_ROBIN, coordinator), LONG)
        wait_until("it has begun", lambda: stream.tokens)
        return stream

    def errors_of_calls(self, channel, num_calls):
        """Makes so many short calls, one after the other, and gives the errors of those that fail."""
        errors = [Stream(channel, 2).wait() for _ in range(num_calls)]
        return [(error.code(), error.details()) for error in errors if error is not None]

    def assert_ends_well(self, coordinator, stream):
        self.assertIsNone(stream.wait())
        self.assertEqual(len(stream.tokens), LONG)
        self.assertEqual(coordinator.wait(), 0)
        self.assertEqual(coordinator.err().count(" E "), 0, coordinator.err())

    def test_clients_that_balance_go_elsewhere_at_once_and_begun_streams_go_on(self):
        first, second = self.coordinators
        channel = self.channel(ROUND_ROBIN, first, second)
        stream = self.begin_long_stream(first)
        first.send(signal.SIGTERM)
        errors = self.errors_of_calls(channel, 30)
        self.assertLess(len(stream.tokens), LONG, "the stream was over too soon")
        self.assertLessEqual(len(errors), 1, errors)  # of a call that was on its way when they were sent away
        self.assert_ends_well(first, stream)
        self.assertEqual(self.errors_of_calls(channel, 4), [])

    def test_of_clients_that_watch_its_health_no_call_fails(self):
        first, second = self.coordinators
        channel = self.channel(HEALTHY, first, second)
        stream = self.begin_long_stream(first)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            callers = [pool.submit(self.errors_of_calls, channel, 20) for _ in range(4)]
            first.send(signal.SIGTERM)
            self.assertEqual([caller.result() for caller in callers], [[]] * 4)
        self.assertLess(len(stream.tokens), LONG, "the stream was over too soon")
        self.assert_ends_well(first, stream)

    def test_it_answers_over_http_while_it_drains(self):
        first, _ = self.coordinators
        stream = self.begin_long_stream(first)
        first.send(signal.SIGTERM)
        wait_until("it listens for gRPC no more", lambda: not self.connects(first))
        self.assertEqual(get(self.http(first), "/live")[0], 200)
        self.assertEqual(get(self.http(first), "/health")[0], 503)
        self.assertEqual(self.value(first, "requests_running"), 1)
        self.assertLess(len(stream.tokens), LONG, "the stream was over too soon")
        self.assert_ends_well(first, stream)

    def connects(self, coordinator):
        host, port = coordinator.address().rsplit(":", 1)
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except ConnectionRefusedError:
            return False
        return True


if __name__ == "__main__":
    unittest.main()
