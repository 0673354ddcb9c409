# SPDX-License-Identifier: Apache-2.0
"""What tests put in place of coordinators and of the server: a gateway's application, called as servers call it."""
import asyncio
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import make_stubs  # noqa: E402

make_stubs.main()

import grpc  # noqa: E402
from google.rpc import error_details_pb2, status_pb2  # noqa: E402

from outrider.v1 import generation_pb2 as pb  # noqa: E402
from outrider.v1 import types_pb2  # noqa: E402
from outrider_gateway import app, keys  # noqa: E402
from outrider_gateway.coordinators import Coordinator, Coordinators  # noqa: E402
from outrider_gateway.tls import Credentials  # noqa: E402

MODELS = HERE.parent.parent / "models"
MODEL = MODELS / "demo-target"
TOKENIZERS = HERE.parent.parent / "tests/golden/testdata/tokenizer"
ASKED = {"model": "m", "prompt": "p", "max_tokens": 3}


def rpc_error(code, details="why", *, reason=None, **metadata):
    """A coordinator's status, with an ErrorInfo where a reason is given."""
    trailing = grpc.aio.Metadata()
    if reason is not None:
        status = status_pb2.Status(code=code.value[0], message=details)
        status.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain="outrider", metadata=metadata))
        trailing.add("grpc-status-details-bin", status.SerializeToString())
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, details=details)


def node(**changes):
    """A verifier's description of itself."""
    return types_pb2.NodeDescription(**{"model_name": "m", "context_length": 1024, **changes})


def word(text="x", *, start=True, finish=True, **changes):
    """A coordinator's message: one token of this text."""
    message = pb.GenerateResponse(tokens=[pb.GeneratedToken(id=1, text=text, logprob=-1)], **changes)
    if start:
        message.start.CopyFrom(pb.GenerationStart(seed=1, prompt_length=1))
    if finish:
        message.finish.CopyFrom(pb.GenerationFinish(reason=pb.FINISH_REASON_LENGTH))
    return message


class Stub:
    """A coordinator that says this to everybody: messages, errors, and what is awaited between them."""

    def __init__(self, *steps, verifiers=None):
        self._steps = steps
        self.verifiers = [node()] if verifiers is None else verifiers
        self.requests = []
        self.num_described = 0

    @property
    def num_calls(self):
        return len(self.requests)

    def Generate(self, request, **_):
        self.requests.append(pb.GenerateRequest.FromString(request.SerializeToString()))
        return self

    async def Describe(self, request, **_):
        del request
        self.num_described += 1
        if isinstance(self.verifiers, Exception):
            raise self.verifiers
        return pb.GenerationServiceDescribeResponse(verifiers=self.verifiers)

    def cancel(self):
        pass

    async def __aiter__(self):
        for step in self._steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, pb.GenerateResponse):
                yield pb.GenerateResponse.FromString(step.SerializeToString())  # readers change what they get
            else:
                await step()


def over(*stubs):
    """Coordinators that are these."""
    coordinators = Coordinators([], Credentials(None))
    addresses = [f"10.1.2.{i + 3}:7000" for i in range(len(stubs))]
    coordinators._nodes = {address: Coordinator(address, "", None, stub)
                           for address, stub in zip(addresses, stubs, strict=True)}
    return coordinators


def gateway(*stubs, options=None, **parts):
    """A gateway before them, whose model is called m where nothing else is said."""
    parts.setdefault("keys", keys.Keys(None))
    return app.Gateway(app.Parts(over(*stubs), **parts), options or app.Options(model_name="m"))


def http_request(body, *, more_body=False):
    return {"type": "http.request", "body": body if isinstance(body, bytes) else json.dumps(body).encode(),
            "more_body": more_body}


async def never():
    await asyncio.Event().wait()


class Reader:
    """Asks an application; what it has sent so far is in `sent`."""

    def __init__(self, application, *received, path="/v1/completions", headers=(), method="POST"):
        self._application = application
        self._received = list(received)
        self.sent = []
        self._has_sent = asyncio.Event()
        self.scope = {"type": "http", "method": method, "path": path, "headers": list(headers), "query_string": b"",
                      "http_version": "1.1", "scheme": "http", "server": ("x", 80)}

    async def _receive(self):
        if not self._received:
            await never()
        return self._received.pop(0)

    async def _send(self, message):
        self.sent.append(message)
        self._has_sent.set()

    async def until(self, condition):
        """Waits until what was sent is such that this holds."""
        async with asyncio.timeout(5):
            while not condition():
                self._has_sent.clear()
                await self._has_sent.wait()

    async def ask(self):
        """(status, headers, body) of what is answered; the server has those messages, then none for ever."""
        await self._application(self.scope, self._receive, self._send)
        return self.status, self.headers, self.body

    @property
    def status(self):
        return self.sent[0]["status"]

    @property
    def headers(self):
        return {name.decode().lower(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self):
        return b"".join(one.get("body", b"") for one in self.sent)

    @property
    def error(self):
        return json.loads(self.body)["error"]
