# SPDX-License-Identifier: Apache-2.0
"""The coordinators that a gateway knows: names resolved anew, and channels to those that are silent, or inflate."""
import asyncio
import unittest
from unittest import mock

import grpc
from stand_ins import node

from outrider.v1 import generation_pb2_grpc
from outrider_gateway import coordinators as coordinators_module
from outrider_gateway.coordinators import Coordinators, make_channel
from outrider_gateway.tls import Credentials


class CoordinatorsTest(unittest.IsolatedAsyncioTestCase):
    async def test_whatever_goes_wrong_coordinators_are_looked_for_again(self):
        now = "10.0.0.1"
        failures = [OSError("no DNS"), UnicodeError("label too long"), RuntimeError("a mistake of ours")]

        async def resolve(endpoint):
            if failures:
                raise failures.pop(0)
            return [f"{now}:7000"]
        with mock.patch.object(coordinators_module, "resolve", resolve), \
                mock.patch.object(coordinators_module, "_LOOK_SECONDS", 0.01), \
                self.assertLogs("outrider_gateway.coordinators", "WARNING") as logs:
            one = Coordinators(["name:7000"], Credentials(None), resolve_seconds=0)
            await one.start()
            for now in ("10.0.0.1", "10.0.0.2"):
                while list(one._nodes) != [f"{now}:7000"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await one.close()
        self.assertIn("a mistake of ours", "".join(logs.output))

    async def test_while_nobody_answers_those_who_came_in_their_place_are_looked_for_at_each_look(self):
        async def resolve(endpoint):
            nonlocal num_resolved
            num_resolved += 1
            return [f"10.0.0.{num}:7000"]
        num, num_resolved = 1, 0
        with mock.patch.object(coordinators_module, "resolve", resolve), \
                mock.patch.object(coordinators_module, "_LOOK_SECONDS", 0.01):
            one = Coordinators(["name:7000"], Credentials(None), resolve_seconds=3600)
            await one.start()
            for fails in (lambda node: node.failed(), lambda node: setattr(node, "description", None)):
                node, = one._nodes.values()
                node.description = coordinators_module.Description()
                await asyncio.sleep(0.05)  # what was begun before has ended
                before = num_resolved
                await asyncio.sleep(0.2)
                self.assertEqual(num_resolved, before, "its addresses are looked for while it answers")
                num += 1
                fails(node)
                async with asyncio.timeout(20):
                    while list(one._nodes) != [f"10.0.0.{num}:7000"]:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
            await one.close()

    async def test_a_name_that_cannot_be_resolved_keeps_its_own_addresses_alone(self):
        addresses = {"a:7000": ["10.0.0.1:7000"], "b:7000": ["10.0.0.2:7000"]}

        async def resolve(endpoint):
            if addresses[endpoint] is None:
                raise OSError("no such name")
            return addresses[endpoint]
        with mock.patch.object(coordinators_module, "resolve", resolve):
            one = Coordinators(addresses, Credentials(None))
            await one.start()
            addresses |= {"a:7000": ["10.0.0.3:7000"], "b:7000": None}
            with self.assertLogs("outrider_gateway.coordinators", "WARNING"):
                await one._resolve_all()
            self.assertEqual({node.address: node.server_name for node in one._nodes.values()},
                             {"10.0.0.2:7000": "b", "10.0.0.3:7000": "a"})
            await one.close()

    async def test_one_whose_address_goes_as_it_is_asked_answers_before_its_connection_is_closed(self):
        class Described(generation_pb2_grpc.GenerationServiceServicer):
            async def Describe(self, *_):
                return coordinators_module.Description(verifiers=[node()])
        server = grpc.aio.server()
        generation_pb2_grpc.add_GenerationServiceServicer_to_server(Described(), server)
        addresses = [f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"]
        await server.start()

        async def resolve(_):
            return addresses
        with mock.patch.object(coordinators_module, "resolve", resolve):
            one = Coordinators(["name:7000"], Credentials(None), resolve_seconds=3600)
            await one._resolve_all()
            asked = asyncio.create_task(one.describe(seconds=20))
            await asyncio.sleep(0)  # it has begun, and nothing that it began has run
            addresses = []
            await one._resolve_all()
            await one._close_idle()
            self.assertEqual(len((await asked).verifiers), 1)
            left, = one._leaving
            self.assertEqual((len(one), left.num_streams), (0, 0))
            await one._close_idle()
            self.assertEqual(one._leaving, [])
            await one.close()
        await server.stop(0)


class CompressedReplyTest(unittest.IsolatedAsyncioTestCase):
    async def test_what_comes_compressed_is_not_inflated(self):
        """A thousandth of it comes."""
        async def zeros(*_):
            return bytes(8 << 20)
        handler = grpc.method_handlers_generic_handler(
            "test.Zeros", {"Get": grpc.unary_unary_rpc_method_handler(zeros)})
        for compression in grpc.Compression.Gzip, grpc.Compression.Deflate:
            server = grpc.aio.server(compression=compression, options=[("grpc.max_send_message_length", -1)])
            server.add_generic_rpc_handlers((handler,))
            port = server.add_insecure_port("127.0.0.1:0")
            await server.start()
            channel = make_channel(f"127.0.0.1:{port}", "outrider-coordinator", None)
            with self.subTest(compression):
                try:
                    self.assertLess(len(await channel.unary_unary("/test.Zeros/Get")(b"", timeout=30)), 1 << 16)
                except grpc.aio.AioRpcError as failure:
                    self.assertEqual(failure.code(), grpc.StatusCode.UNIMPLEMENTED)
            await channel.close()
            await server.stop(0)


class SilentCoordinatorTest(unittest.IsolatedAsyncioTestCase):
    async def test_an_address_where_nobody_answers_is_given_up_before_its_callers_are(self):
        """Such as that of a pod which has gone, while DNS still has it. gRPC's own patience is 20 s."""
        async def say_nothing(*_):
            await asyncio.sleep(60)
        server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        channel = make_channel(f"127.0.0.1:{port}", "outrider-coordinator", None)
        with self.assertRaises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary("/outrider.v1.GenerationService/Describe")(b"", timeout=15)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        await channel.close()
        server.close()

    async def answer_of_one_that_hangs(self, *endpoints):
        """What a caller is told within three seconds. It has said the first words of HTTP/2, and nothing more."""
        async def greet(reader, writer):
            writer.write(b"\0\0\0\4\0\0\0\0\0")
            await reader.read()
            writer.close()
        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        coordinators = Coordinators([endpoint.format(port=port) for endpoint in endpoints], Credentials(None))
        await coordinators.start()
        try:
            await coordinators.describe(seconds=3)
        except grpc.aio.AioRpcError as failure:
            return failure.code()
        finally:
            await coordinators.close()
            server.close()

    async def test_where_there_may_be_others_one_that_hangs_is_left_as_soon_as_by_the_client_library(self):
        for endpoints in ["localhost:{port}"], ["127.0.0.1:{port}"] * 2:
            self.assertEqual(await self.answer_of_one_that_hangs(*endpoints), grpc.StatusCode.UNAVAILABLE)

    async def test_one_that_is_alone_is_waited_for(self):
        self.assertEqual(await self.answer_of_one_that_hangs("127.0.0.1:{port}"), grpc.StatusCode.DEADLINE_EXCEEDED)


if __name__ == "__main__":
    unittest.main()
