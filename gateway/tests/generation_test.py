# SPDX-License-Identifier: Apache-2.0
"""One generation before coordinators that a test plays: what is resumed, who is shunned, what is counted."""
import pathlib
import sys
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import make_stubs  # noqa: E402

make_stubs.main()

import grpc  # noqa: E402

from outrider.v1 import generation_pb2 as pb  # noqa: E402
from outrider_gateway import generation  # noqa: E402
from outrider_gateway.coordinators import Coordinator, Coordinators  # noqa: E402
from outrider_gateway.errors import ApiError  # noqa: E402
from outrider_gateway.tls import Credentials  # noqa: E402


def error(code):
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details="why")


def begin(seed=7, cached=None):
    return pb.GenerateResponse(start=pb.GenerationStart(seed=seed, prompt_length=3, cache_salt="secret",
                                                        cached_prompt_tokens=cached))


def round_of(first_index, *ids, origin=pb.TOKEN_ORIGIN_DRAFT, drafted=0, accepted=0, last=False):
    message = pb.GenerateResponse(first_index=first_index, tokens=[
        pb.GeneratedToken(id=i, text=f"{i} ", origin=origin) for i in ids])
    message.round.num_drafted, message.round.num_accepted = drafted, accepted
    if last:
        message.finish.reason = pb.FINISH_REASON_LENGTH
    return message


class Call:
    def __init__(self, script):
        self._script = script
        self.is_cancelled = False

    async def __aiter__(self):
        for step in self._script:
            if isinstance(step, Exception):
                raise step
            if callable(step):
                step()
                continue
            yield step

    def cancel(self):
        self.is_cancelled = True


class Stub:
    """Answers each call by the next of its scripts: messages, what is done between them, an error."""

    def __init__(self, *scripts):
        self._scripts = list(scripts)
        self.requests, self.calls = [], []

    def Generate(self, request, **_):
        self.requests.append(pb.GenerateRequest.FromString(request.SerializeToString()))
        self.calls.append(Call(self._scripts.pop(0)))
        return self.calls[-1]


class GenerationTest(unittest.IsolatedAsyncioTestCase):
    def over(self, *stubs, **options):
        """A generation before one coordinator for each stub."""
        coordinators = Coordinators([], Credentials(None))
        self.nodes = [Coordinator(str(i), "", None, stub) for i, stub in enumerate(stubs)]
        coordinators._nodes = {node.address: node for node in self.nodes}
        return generation.Generation(coordinators, pb.GenerateRequest(text="p"), **options)

    async def ids(self, one):
        return [token.id async for message in one.messages() for token in message.tokens]

    async def test_a_broken_stream_goes_on_with_what_has_arrived(self):
        stub = Stub([begin(), round_of(0, 1, 2), error(grpc.StatusCode.UNAVAILABLE)],
                    [begin(), round_of(1, 2, 3), round_of(3, 4, last=True)])
        one = self.over(stub)
        self.assertEqual(await self.ids(one), [1, 2, 3, 4])
        self.assertEqual((list(stub.requests[1].delivered.ids), stub.requests[1].seed), ([1, 2], 7))
        self.assertEqual([request.cache_salt for request in stub.requests], ["", "secret"])
        self.assertEqual((one.tally.num_resumes, one.tally.completion_tokens), (1, 4))

    async def test_a_stream_that_waited_long_for_its_beginning_is_resumed_too(self):
        clock = mock.Mock(wraps=time, monotonic=mock.Mock(return_value=100.0))

        def wait():
            clock.monotonic.return_value += 2 * generation.RESUME_SECONDS
        stub = Stub([wait, begin(), error(grpc.StatusCode.UNAVAILABLE)], [begin(), round_of(0, 1, last=True)])
        with mock.patch.object(generation, "time", clock):
            self.assertEqual(await self.ids(self.over(stub)), [1])

    async def test_a_reader_who_leaves_cancels_the_call_at_once(self):
        stub = Stub([begin(), round_of(0, 1), round_of(1, 2, last=True)])
        messages = self.over(stub).messages()
        await anext(messages)
        self.assertEqual(self.nodes[0].num_streams, 1)
        kept = messages.ag_frame  # as a debugger or a traceback would
        await messages.aclose()
        del kept
        self.assertTrue(stub.calls[0].is_cancelled)
        self.assertEqual(self.nodes[0].num_streams, 0)

    async def test_a_request_that_is_at_fault_says_nothing_of_the_coordinator(self):
        for code, is_shunned in ((grpc.StatusCode.INVALID_ARGUMENT, False), (grpc.StatusCode.INTERNAL, False),
                                 (grpc.StatusCode.RESOURCE_EXHAUSTED, False), (grpc.StatusCode.UNAVAILABLE, True),
                                 (grpc.StatusCode.UNAUTHENTICATED, True)):
            with self.subTest(code.name):
                with self.assertRaises(ApiError):
                    await self.ids(self.over(Stub([error(code)])))
                self.assertEqual(self.nodes[0].is_shunned(time.monotonic()), is_shunned)

    async def test_what_one_coordinator_cannot_serve_another_may(self):
        refusing = Stub([error(grpc.StatusCode.FAILED_PRECONDITION)])
        serving = Stub([begin(), round_of(0, 1, last=True)])
        one = self.over(refusing, serving)
        self.nodes[1].num_streams += 1  # so that it is asked last
        self.assertEqual(await self.ids(one), [1])
        self.assertEqual(len(refusing.requests), 1)
        with self.assertRaises(ApiError) as raised:
            await self.ids(self.over(Stub([error(grpc.StatusCode.FAILED_PRECONDITION)])))
        self.assertEqual(raised.exception.status, 400)

    async def test_a_stream_whose_model_is_gone_from_one_coordinator_goes_on_where_it_is_served(self):
        for code in grpc.StatusCode.ABORTED, grpc.StatusCode.FAILED_PRECONDITION:
            with self.subTest(code.name):
                first = Stub([begin(), round_of(0, 1, 2), error(code)])
                second = Stub([begin(), round_of(2, 3, last=True)])
                one = self.over(first, second)
                self.nodes[1].num_streams += 1  # so that it is asked last
                self.assertEqual(await self.ids(one), [1, 2, 3])
                self.assertEqual(list(second.requests[0].delivered.ids), [1, 2])
                self.assertFalse(self.nodes[0].is_shunned(time.monotonic()))

    async def test_of_a_stream_that_nobody_goes_on_with_its_reader_hears_what_broke_it(self):
        # The others' refusals speak of a resume, which the reader has not asked for.
        for code, status in (grpc.StatusCode.ABORTED, 409), (grpc.StatusCode.UNAVAILABLE, 503):
            with self.subTest(code.name), mock.patch.object(generation, "RESUME_SECONDS", 0.2):
                stub = Stub([begin(), round_of(0, 1), error(code)],
                            *[[error(grpc.StatusCode.FAILED_PRECONDITION)] for _ in range(9)])
                with self.assertRaises(ApiError) as raised:
                    await self.ids(self.over(stub))
                self.assertGreater(len(stub.calls), 1)
                self.assertEqual(raised.exception.status, status)
                self.assertNotIn("why", raised.exception.message)

    async def test_of_a_stream_whose_own_time_ends_before_it_is_resumed_its_reader_hears_that(self):
        stub = Stub([begin(), round_of(0, 1), error(grpc.StatusCode.UNAVAILABLE)],
                    [lambda: time.sleep(0.1), error(grpc.StatusCode.DEADLINE_EXCEEDED)])
        with self.assertRaises(ApiError) as raised:
            await self.ids(self.over(stub, deadline=time.monotonic() + 0.1))
        self.assertEqual(raised.exception.status, 504)

    async def test_a_stream_that_a_model_failed_on_is_tried_on_no_other_coordinator(self):
        # It may be what two verifiers were lost by.
        for said in ([], [begin(), round_of(0, 1)]):
            stubs = [Stub([*said, error(grpc.StatusCode.INTERNAL)]) for _ in range(3)]
            with self.assertRaises(ApiError) as failure:
                await self.ids(self.over(*stubs))
            self.assertEqual(failure.exception.status, 500)
            self.assertEqual(sum(len(stub.calls) for stub in stubs), 1)

    async def test_a_request_whose_own_time_is_over_says_nothing_of_the_coordinator(self):
        with self.assertRaises(ApiError) as refusal:
            await self.ids(self.over(Stub([error(grpc.StatusCode.DEADLINE_EXCEEDED)]), deadline=time.monotonic()))
        self.assertEqual(refusal.exception.status, 504)
        self.assertFalse(self.nodes[0].is_shunned(time.monotonic()))

    async def test_a_deadline_that_comes_a_moment_early_is_still_the_requests_own(self):
        # The call's is on another clock than the request's.
        with self.assertRaises(ApiError) as refusal:
            await self.ids(self.over(Stub([error(grpc.StatusCode.DEADLINE_EXCEEDED)]),
                                     deadline=time.monotonic() + 0.5))
        self.assertEqual(refusal.exception.status, 504)
        self.assertFalse(self.nodes[0].is_shunned(time.monotonic()))

    async def test_what_was_cached_is_what_the_first_session_found(self):
        last = round_of(1, 3, last=True)
        for cached in 2, 0, None:  # None: an older coordinator
            resumed = self.over(Stub([begin(cached=cached), round_of(0, 1), error(grpc.StatusCode.UNAVAILABLE)],
                                     [begin(cached=3), last]))
            await self.ids(resumed)
            self.assertEqual((resumed.tally.num_cached, resumed.tally.num_resumes), (cached, 1))

    async def test_the_log_names_the_request_whose_stream_broke(self):
        one = self.over(Stub([begin(), round_of(0, 1), error(grpc.StatusCode.UNAVAILABLE)],
                             [begin(), error(grpc.StatusCode.INTERNAL)]))
        one.set_caller([("x-request-id", "mine-7")], "")
        with self.assertLogs("outrider_gateway.generation", "WARNING") as logs, self.assertRaises(ApiError):
            await self.ids(one)
        self.assertEqual(len(logs.output), 2)
        self.assertTrue(all(line.endswith("request_id=mine-7") for line in logs.output), logs.output)

    async def test_drafts_beyond_the_end_are_not_in_the_continuation(self):
        one = self.over(Stub([begin(), round_of(0, 1, 2, drafted=5, accepted=5, last=True)]))
        self.assertEqual(await self.ids(one), [1, 2])
        self.assertEqual((one.tally.num_drafted, one.tally.num_accepted), (5, 2))


if __name__ == "__main__":
    unittest.main()
