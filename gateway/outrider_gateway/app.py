# SPDX-License-Identifier: Apache-2.0
"""The HTTP application: endpoints, and what is common to them."""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib.resources
import re
import secrets
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

import grpc
import prometheus_client
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from . import requests, serving
from .chat_template import ChatTemplate
from .coordinators import Coordinators
from .errors import ApiError, from_rpc
from .generation import Generation
from .keys import Account, Keys
from .lingering import Lingering
from .metrics import METRICS
from .replies import ChatShape, CompletionShape, Json, Shape
from .stop_tokens import StopTokens
from .tokens import Tokens
from .translate import seeds, to_generate_request

_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_REQUEST_ID = re.compile(r"[-_.A-Za-z0-9]{1,64}")
_HEALTH_SECONDS = 1.0
Result = TypeVar("Result")


@dataclasses.dataclass
class Options:
    model_name: str = ""  # empty: what the coordinators' verifier is called
    max_body_bytes: int = 8 << 20
    max_requests: int = 4096
    request_seconds: float = 600.0
    slow_reader_seconds: float = 60.0
    body_seconds: float = 60.0  # that a body may take to arrive


@dataclasses.dataclass
class Parts:
    coordinators: Coordinators
    keys: Keys
    tokens: Tokens | None = None  # without a model directory: completions of text alone
    template: ChatTemplate | None = None
    no_template: str = ""  # why there is none


class Gateway:
    """Serves one event loop; its methods are the endpoints."""

    def __init__(self, parts: Parts, options: Options) -> None:
        self._parts = parts
        self._options = options
        self._model_name = options.model_name
        self._num_running = 0
        self.idle = asyncio.Event()  # no request runs
        self.idle.set()
        self._healthy_at = float("-inf")
        self.draining = False

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        del app
        await self._parts.coordinators.start()
        yield
        await self._parts.coordinators.close()

    # ---- generations

    async def completions(self, request: Request) -> ASGIApp:
        return await self._answer(request, self._completion)

    async def chat(self, request: Request) -> ASGIApp:
        try:
            return await self._answer(request, self._chat)
        except ApiError as error:
            if error.param == "prompt":  # as coordinators call it
                error.param = "messages"
            raise

    async def _completion(self, body: bytes) -> tuple[requests.SamplingRequest, list[Generation], Shape]:
        asked = requests.parse(requests.CompletionRequest, body)
        self._check_logprobs(asked.num_logprobs())
        prompts = asked.prompts()
        echoes = None
        if asked.echo:
            echoes = [text for prompt in prompts for text in [self._text_of(prompt)] * asked.n]
        model = await self._check_model(asked.model)
        shape = CompletionShape(model, self._parts.tokens, asked.logprobs is not None, echoes)
        return asked, self._generations(asked, prompts), shape

    async def _chat(self, body: bytes) -> tuple[requests.SamplingRequest, list[Generation], Shape]:
        asked = requests.parse(requests.ChatRequest, body)
        model = await self._check_model(asked.model)
        template, tokens = self._parts.template, self._parts.tokens
        if template is None or tokens is None:
            raise ApiError(400, f"this model serves /v1/completions only: {self._parts.no_template}",
                           param="messages", code="no_chat_template")
        messages = [message.for_template() for message in asked.messages]
        # This has a thread, as a template and a tokenizer may take seconds.
        prompt = await asyncio.to_thread(lambda: tokens.encode(template.render(
            messages, add_generation_prompt=asked.add_generation_prompt, variables=asked.chat_template_kwargs)))
        if not prompt:
            raise ApiError(400, "messages: the chat template made an empty prompt of them", param="messages")
        return asked, self._generations(asked, [prompt]), ChatShape(model, tokens, asked.logprobs)

    def _generations(self, asked: requests.SamplingRequest,
                     prompts: list[str | list[int]]) -> list[Generation]:
        made = []
        for prompt in prompts:
            for seed in seeds(asked, asked.n):
                stop = StopTokens(asked.stop_token_ids, self._parts.tokens) if asked.stop_token_ids else None
                made.append(Generation(self._parts.coordinators,
                                       to_generate_request(asked, prompt, seed),  # type: ignore[arg-type]
                                       stop=stop, timeout=self._options.request_seconds))
        return made

    async def _answer(self, request: Request, prepare) -> ASGIApp:  # type: ignore[no-untyped-def]
        """Runs a request of either endpoint, within its key's limits and ours."""
        metadata, headers = _identity(request)
        request.state.headers = headers  # for a refusal, too
        account = self._parts.keys.authenticate(request.headers.get("authorization"))
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(self._running())
            stack.enter_context(account.request(time.monotonic()))
            asked, generations, shape = await prepare(await self._body(request))
            for generation in generations:
                generation.set_caller(metadata, account.cache_salt(asked.cache_salt))
            choices = await stack.enter_async_context(serving.Choices(generations))
            stack.callback(lambda: _spend(account, choices))
            if not asked.stream:
                reply = await _unless_disconnected(request, serving.whole_reply(
                    choices, shape, asked.n, asked.extras()))
                return JSONResponse(reply, headers=headers)
            # A refusal still has a status of its own.
            await _unless_disconnected(request, choices.begin())
            body = serving.events(choices, shape, asked.n, asked.extras())
            return serving.EventStream(body, [(k.encode(), v.encode()) for k, v in headers.items()],
                                       self._options.slow_reader_seconds, stack.pop_all().aclose)
        raise AssertionError("unreachable")

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        if self.draining:
            raise ApiError(503, "this gateway is about to end; ask again, and another one answers",
                           code="draining", retry_after=1.0)
        if self._num_running >= self._options.max_requests:
            raise ApiError(429, "the gateway has as many requests as it may; try again later",
                           code="rate_limit_exceeded", retry_after=1.0)
        self._num_running += 1
        self.idle.clear()
        METRICS.running.set(self._num_running)
        try:
            yield
        finally:
            self._num_running -= 1
            METRICS.running.set(self._num_running)
            if not self._num_running:
                self.idle.set()

    async def _body(self, request: Request) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout(self._options.body_seconds):
                async for part in request.stream():
                    body += part
                    if len(body) > self._options.max_body_bytes:
                        raise ApiError(413, f"the body is larger than {self._options.max_body_bytes} bytes")
        except TimeoutError:
            raise ApiError(408, f"the body did not arrive within {self._options.body_seconds:g} s") from None
        return bytes(body)

    async def _check_model(self, asked: str) -> str:
        name = await self._name()
        if asked != name:
            raise ApiError(404, f"the model {asked!r} does not exist; this gateway serves {name!r}",
                           param="model", code="model_not_found")
        return name

    async def _name(self) -> str:
        if not self._model_name:
            try:
                described = await self._parts.coordinators.describe()
            except (grpc.aio.AioRpcError, LookupError) as error:
                raise ApiError(503, "no coordinator answers; try again later", code="unavailable",
                               retry_after=1.0) from error
            if not described.verifiers:
                raise ApiError(503, "no verifier is ready; try again later", code="unavailable", retry_after=1.0)
            self._model_name = described.verifiers[0].model_name
        return self._model_name

    def _check_logprobs(self, asked: int | None) -> None:
        if asked is not None and self._parts.tokens is None:
            raise ApiError(400, "logprobs: names of tokens need a gateway with --model", param="logprobs",
                           code="unsupported_parameter")

    def _text_of(self, prompt: str | list[int]) -> str:
        if isinstance(prompt, str):
            return prompt
        if self._parts.tokens is None:
            raise ApiError(400, "echo: the text of token ids needs a gateway with --model", param="echo",
                           code="unsupported_parameter")
        return self._parts.tokens.decode(prompt)

    # ---- the rest

    async def models(self, request: Request) -> Response:
        self._parts.keys.authenticate(request.headers.get("authorization"))
        return JSONResponse({"object": "list", "data": [_model(await self._name())]})

    async def model(self, request: Request) -> Response:
        self._parts.keys.authenticate(request.headers.get("authorization"))
        return JSONResponse(_model(await self._check_model(request.path_params["model"])))

    async def health(self, request: Request) -> Response:
        """200 where requests are welcome: a coordinator answers and has a verifier."""
        del request
        if self.draining:
            return JSONResponse({"status": "draining"}, 503)
        now = time.monotonic()
        if now > self._healthy_at + _HEALTH_SECONDS:
            try:
                described = await self._parts.coordinators.describe(seconds=1.0)
            except (grpc.aio.AioRpcError, LookupError):
                return JSONResponse({"status": "no coordinator answers"}, 503)
            if not described.verifiers:
                return JSONResponse({"status": "no verifier is ready"}, 503)
            self._healthy_at = now
        return JSONResponse({"status": "ok"})

    async def live(self, request: Request) -> Response:
        del request
        return JSONResponse({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        del request
        METRICS.coordinators.set(len(self._parts.coordinators))
        return Response(prometheus_client.generate_latest(METRICS.registry),
                        media_type=prometheus_client.CONTENT_TYPE_LATEST)

    async def page(self, request: Request) -> Response:
        del request
        text = importlib.resources.files(__package__).joinpath("page.html").read_text("utf-8")
        return HTMLResponse(text, headers={"Content-Security-Policy":
                                           "default-src 'none'; style-src 'unsafe-inline'; "
                                           "script-src 'unsafe-inline'; connect-src 'self'; img-src data:"})


def _model(name: str) -> Json:
    return {"id": name, "object": "model", "created": 0, "owned_by": "outrider"}


def _identity(request: Request) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """What names this request in every log on its way: for the coordinator, and for the reply."""
    name = request.headers.get("x-request-id", "")
    if not _REQUEST_ID.fullmatch(name):
        name = secrets.token_hex(8)
    metadata = [("x-request-id", name)]
    parent = request.headers.get("traceparent", "")
    if _TRACEPARENT.fullmatch(parent):
        metadata.append(("traceparent", parent))
    return metadata, {"x-request-id": name}


def _spend(account: Account, choices: serving.Choices) -> None:
    used = sum(tally.prompt_tokens + tally.completion_tokens for tally in choices.tallies)
    account.spend(used, time.monotonic())


async def _unless_disconnected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """The work's result; cancelled, as nobody waits for it, where the reader leaves."""
    task = asyncio.create_task(work)
    leaving = asyncio.create_task(serving.until_disconnected(request.receive))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return await task
    finally:
        for one in (task, leaving):
            one.cancel()
        await asyncio.gather(task, leaving, return_exceptions=True)


async def _on_api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    response = error.response()
    response.headers.update(getattr(request.state, "headers", {}))
    return response


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = {404: f"there is no {request.url.path} here", 405: f"{request.url.path} is not served for "
            f"{request.method}"}.get(error.status_code, error.detail)
    return ApiError(error.status_code, what).response()


async def _on_disconnect(request: Request, error: Exception) -> Response:
    del request, error
    return Response(status_code=499)  # nobody reads it


async def _on_rpc_error(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, grpc.aio.AioRpcError)
    return from_rpc(error).response()


async def _on_bug(request: Request, error: Exception) -> Response:
    del request, error  # the server logs it
    return ApiError(500, "the gateway failed on this request; its log says why").response()


class _Counting:
    """Counts what is answered, by endpoint and status."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counted(message) -> None:  # type: ignore[no-untyped-def]
            if message["type"] == "http.response.start":
                route = scope.get("route")
                METRICS.requests.labels(getattr(route, "path", "other"), str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, counted)


def create_app(gateway: Gateway, *, with_metrics: bool) -> Starlette:
    """The door. `with_metrics`: /metrics is here, too."""
    routes = [
        Route("/v1/completions", gateway.completions, methods=["POST"]),
        Route("/v1/chat/completions", gateway.chat, methods=["POST"]),
        Route("/v1/models", gateway.models),
        Route("/v1/models/{model:path}", gateway.model),
        Route("/health", gateway.health),
        Route("/live", gateway.live),
        Route("/", gateway.page),
    ]
    if with_metrics:
        routes.append(Route("/metrics", gateway.metrics))
    app = Starlette(
        routes=routes,
        exception_handlers={ApiError: _on_api_error, HTTPException: _on_http_error,
                            ClientDisconnect: _on_disconnect, grpc.aio.AioRpcError: _on_rpc_error,
                            Exception: _on_bug},
        lifespan=gateway.lifespan)
    app.add_middleware(_Counting)
    app.add_middleware(Lingering)
    return app


def create_side_app(gateway: Gateway) -> Starlette:
    """What operators ask, at an address of its own."""
    return Starlette(routes=[Route("/health", gateway.health), Route("/live", gateway.live),
                             Route("/metrics", gateway.metrics)])
