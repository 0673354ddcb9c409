# SPDX-License-Identifier: Apache-2.0
"""The HTTP application: endpoints, and what is common to them."""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib.resources
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import prometheus_client
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from . import requests, serving, version
from .admission import Admission
from .answers import EventStream, Served, WholeReply, until_disconnected
from .bodies import Bodies, BodyLimits, HeldBody
from .chat_prompts import ChatPrompts
from .chat_template import ChatTemplate
from .coordinators import Coordinator, Coordinators
from .errors import ApiError, context_exceeded
from .exception_handlers import EXCEPTION_HANDLERS
from .generation import Generation
from .generation_config import SamplingDefaults
from .keys import Account, Keys
from .lingering import Lingering
from .metrics import METRICS
from .observing import Observation, Observed, observation_of
from .origins import allowing, guarding
from .replies import ChatShape, CompletionShape, Json, Shape
from .served_model import ServedModel
from .tokens import Tokens
from .translate import seeds, to_generate_request

_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_BYTES_PER_TOKEN = 4  # about, of a text that its coordinator makes tokens of
Result = TypeVar("Result")
Asked = TypeVar("Asked", bound=requests.SamplingRequest)


@dataclasses.dataclass
class Options:
    model_name: str = ""  # empty: what the coordinators' verifier is called
    bodies: BodyLimits = dataclasses.field(default_factory=BodyLimits)
    max_requests: int = 4096
    request_seconds: float = 600.0
    slow_reader_seconds: float = 60.0


@dataclasses.dataclass
class Parts:
    coordinators: Coordinators
    keys: Keys
    tokens: Tokens | None = None  # without a model directory: completions of text alone
    template: ChatTemplate | None = None
    no_template: str = ""  # why there is none
    sampling: SamplingDefaults = dataclasses.field(default_factory=SamplingDefaults)


@dataclasses.dataclass
class Prepared:
    """A request that has been checked: what coordinators are asked, and how the answers are written."""

    generations: list[Generation]
    shape: Shape
    extras: requests.Extras
    is_stream: bool
    num_choices: int  # of each prompt
    most_tokens: int  # that it may take; of texts, about
    cache_salt: str | None
    num_bytes: int  # that are kept of it until it ends


class Gateway:
    """Serves one event loop; its methods are the endpoints."""

    def __init__(self, parts: Parts, options: Options) -> None:
        self._parts = parts
        self._options = options
        self._bodies = Bodies(options.bodies)
        self._model = ServedModel(parts.coordinators, options.model_name, parts.tokens)
        self._chats = ChatPrompts(parts.template, parts.tokens) if parts.template and parts.tokens else None
        self.admission = Admission(options.max_requests)
        self.is_open = parts.keys.are_for_anyone

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        del app
        await self._parts.coordinators.start()
        yield
        await self._parts.coordinators.close()

    # ---- generations

    async def completions(self, request: Request) -> ASGIApp:
        return await self._answer(request, requests.CompletionRequest, self._completion)

    async def chat(self, request: Request) -> ASGIApp:
        try:
            return await self._answer(request, requests.ChatRequest, self._chat)
        except ApiError as error:
            if error.param == "prompt":  # as coordinators call it
                error.param = "messages"
            raise

    async def _completion(self, asked: requests.CompletionRequest, deadline: float) -> Prepared:
        self._check_logprobs(asked.num_logprobs())
        prompts = asked.prompts()
        model = await self._check_model(asked.model)
        longest = self._model.longest_text()
        for prompt in prompts:
            if not isinstance(prompt, str) and longest and len(prompt) >= longest:
                raise context_exceeded(longest, len(prompt))
        texts = [await self._text_of(prompt) for prompt in prompts] if asked.echo else []
        echoes = [text for text in texts for _ in range(asked.n)] or None
        shape = CompletionShape(model, self._parts.tokens, asked.logprobs is not None, echoes)
        prepared = self._prepared(asked, prompts, shape, deadline)
        prepared.num_bytes += sum(map(sys.getsizeof, texts))
        return prepared

    async def _chat(self, asked: requests.ChatRequest, deadline: float) -> Prepared:
        model = await self._check_model(asked.model)
        if self._chats is None or self._parts.tokens is None:
            raise ApiError(400, f"this model serves /v1/completions only: {self._parts.no_template}",
                           param="messages", code="no_chat_template")
        await self._model.check_tokenizer()
        described = await self._model.described()
        prompt = await self._chats.ids(*asked.take_chat(), add_generation_prompt=asked.add_generation_prompt,
                                       longest_text=described.longest_text)
        await self._model.check_tokenizer()  # a large chat may have waited for minutes
        shape = ChatShape(model, self._parts.tokens, asked.logprobs)
        return self._prepared(asked, [prompt], shape, deadline, self._model.fits)

    def _prepared(self, asked: requests.CompletionRequest | requests.ChatRequest, prompts: list[str | list[int]],
                  shape: Shape, deadline: float,
                  may_begin_at: Callable[[Coordinator], bool] | None = None) -> Prepared:
        self._parts.sampling.fill(asked)
        generations = []
        most_tokens = 0
        for prompt in prompts:
            length = len(prompt) // _BYTES_PER_TOKEN + 1 if isinstance(prompt, str) else len(prompt)
            most_tokens += length + asked.n * self._most_new_tokens(asked.max_tokens, length)
            # Made of its prompt once, which takes four times as long as a copy.
            request = to_generate_request(asked, prompt)
            for seed in seeds(asked, asked.n):
                generations.append(Generation(self._parts.coordinators, request, seed=seed, deadline=deadline,
                                              may_begin_at=may_begin_at, explain=self._model.explain))
        # Each choice has a copy of its prompt, to be resumed with.
        num_bytes = sum(generation.num_bytes for generation in generations)
        return Prepared(generations, shape, asked.extras(), asked.stream, asked.n, most_tokens, asked.cache_salt,
                        num_bytes)

    def _most_new_tokens(self, asked: int | None, prompt_length: int) -> int:
        room = max(0, (self._model.longest_text() or 0) - prompt_length)
        return room if asked is None else min(asked, room or asked)

    async def _answer(self, request: Request, kind: type[Asked],
                      prepare: Callable[[Asked, float], Coroutine[Any, Any, Prepared]]) -> ASGIApp:
        """Runs a request of either endpoint, within its key's limits and ours."""
        observation = observation_of(request)
        account = self._parts.keys.authenticate(request.headers.get("authorization"))
        observation.key = account.name
        async with contextlib.AsyncExitStack() as stack:
            admitted = stack.enter_context(self.admission.request())
            stack.enter_context(account.request(time.monotonic()))
            held = stack.enter_context(self._bodies.hold())
            deadline = observation.arrived + self._options.request_seconds
            prepared = await _prepared_from(request, held, kind, self._model.longest_text(),
                                            lambda asked: prepare(asked, deadline))
            for generation in prepared.generations:
                generation.set_caller(_metadata(request, observation), account.cache_salt(prepared.cache_salt))
            stack.callback(_charged(prepared, account, observation))
            choices = await stack.enter_async_context(serving.Choices(prepared.generations, observation.arrived))
            reply_of = choices, prepared.shape, prepared.num_choices, prepared.extras
            if prepared.is_stream:
                # A refusal still has a status of its own.
                await _unless_disconnected(request, choices.begin())
                served = Served(admitted, observation, self._options.slow_reader_seconds, stack.pop_all().aclose)
                return EventStream(served, serving.events(*reply_of))
            reply = await _unless_disconnected(request, serving.whole_reply(*reply_of, held.grow))
            served = Served(admitted, observation, self._options.slow_reader_seconds, stack.pop_all().aclose)
            return WholeReply(served, reply)
        raise AssertionError("unreachable")

    async def _check_model(self, asked: str) -> str:
        name = await self._model.name()
        if asked != name:
            raise ApiError(404, f"the model {asked!r} does not exist; this gateway serves {name!r}",
                           param="model", code="model_not_found")
        return name

    def _check_logprobs(self, asked: int | None) -> None:
        if asked is not None and self._parts.tokens is None:
            raise ApiError(400, "logprobs: names of tokens need a gateway with --model", param="logprobs",
                           code="unsupported_parameter")

    async def _text_of(self, prompt: str | list[int]) -> str:
        if isinstance(prompt, str):
            return prompt
        if self._parts.tokens is None:
            raise ApiError(400, "echo: the text of token ids needs a gateway with --model", param="echo",
                           code="unsupported_parameter")
        # A long one takes tens of milliseconds, for which all other streams would stand still.
        return await asyncio.to_thread(self._parts.tokens.decode, prompt)

    # ---- the rest

    async def models(self, request: Request) -> Response:
        self._authenticate(request)
        return JSONResponse({"object": "list", "data": [await self._card(await self._model.name())]})

    async def model(self, request: Request) -> Response:
        self._authenticate(request)
        return JSONResponse(await self._card(await self._check_model(request.path_params["model"])))

    def _authenticate(self, request: Request) -> None:
        observation_of(request).key = self._parts.keys.authenticate(request.headers.get("authorization")).name

    async def _card(self, name: str) -> Json:
        return {"id": name, "object": "model", "created": 0, "owned_by": "outrider",
                "max_model_len": await self._model.asked_longest_text()}

    async def health(self, request: Request) -> Response:
        """200 where requests are welcome: a coordinator answers, and has a verifier that fits our tokenizer."""
        del request
        problem = await self._problem()
        return JSONResponse({"status": problem or "ok"}, 503 if problem else 200)

    async def _problem(self) -> str | None:
        return "draining" if self.admission.is_draining else await self._model.problem()

    async def live(self, request: Request) -> Response:
        del request
        return JSONResponse({"status": "ok"})

    async def version(self, request: Request) -> Response:
        del request
        return JSONResponse({"version": version.VERSION})

    async def metrics(self, request: Request) -> Response:
        del request
        METRICS.ready.set(await self._problem() is None)
        METRICS.coordinators.set(len(self._parts.coordinators))
        for file, expiry in self._parts.coordinators.certificate_expiries().items():
            METRICS.certificate_expiry.labels("gateway", file).set(expiry)
        return Response(prometheus_client.generate_latest(METRICS.registry),
                        media_type=prometheus_client.CONTENT_TYPE_LATEST)

    async def page(self, request: Request) -> Response:
        del request
        text = importlib.resources.files(__package__).joinpath("page.html").read_text("utf-8")
        return HTMLResponse(text, headers={"Content-Security-Policy":
                                           "default-src 'none'; style-src 'unsafe-inline'; "
                                           "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
                                           "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"})


async def _prepared_from(request: Request, held: HeldBody, kind: type[Asked], longest_text: int | None,
                         prepare: Callable[[Asked], Coroutine[Any, Any, Prepared]]) -> Prepared:
    body = await held.read(request)
    held.grow(requests.parsed_bytes(kind, body, longest_text))
    asked = requests.parse(kind, body)
    del body
    held.grow(asked.folded_bytes())
    # Large chats wait for each other here.
    prepared = await _unless_disconnected(request, prepare(asked))
    held.become(prepared.num_bytes)
    return prepared


def _charged(prepared: Prepared, account: Account, observation: Observation) -> Callable[[], None]:
    """Charges a key with what the request may take; to be called at its end, for what it took."""
    observation.tallies = [generation.tally for generation in prepared.generations]
    observation.num_choices = prepared.num_choices
    reserved = account.reserve(prepared.most_tokens, time.monotonic())
    return lambda: account.settle(reserved, observation.prompt_tokens + observation.completion_tokens,
                                  time.monotonic())


def _metadata(request: Request, observation: Observation) -> list[tuple[str, str]]:
    """What names this request in the coordinators' logs."""
    metadata = [("x-request-id", observation.request_id)]
    parent = request.headers.get("traceparent", "")
    if _TRACEPARENT.fullmatch(parent):
        metadata.append(("traceparent", parent))
    return metadata


async def _unless_disconnected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """The work's result; cancelled, as nobody waits for it, where the reader leaves."""
    task = asyncio.create_task(work)
    leaving = asyncio.create_task(until_disconnected(request.receive))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return await task
    finally:
        for one in (task, leaving):
            one.cancel()
        await asyncio.gather(task, leaving, return_exceptions=True)


def create_app(gateway: Gateway, *, with_metrics: bool, allowed_origins: Sequence[str] = (),
               is_on_loopback: bool = False) -> ASGIApp:
    """The door. `with_metrics`: /metrics is here, too. `allowed_origins`: of web pages that may ask.

    `is_on_loopback`: nobody off this machine reaches it.
    """
    routes = [
        Route("/v1/completions", gateway.completions, methods=["POST"]),
        Route("/v1/chat/completions", gateway.chat, methods=["POST"]),
        Route("/v1/models", gateway.models),
        Route("/v1/models/{model:path}", gateway.model),
        Route("/health", gateway.health),
        Route("/live", gateway.live),
        Route("/version", gateway.version),
        Route("/", gateway.page),
    ]
    if with_metrics:
        routes.append(Route("/metrics", gateway.metrics))
    app = Starlette(routes=routes, exception_handlers=EXCEPTION_HANDLERS, lifespan=gateway.lifespan)
    door = allowing(allowed_origins, app)
    if gateway.is_open:
        door = guarding(allowed_origins, door, is_on_loopback=is_on_loopback)
    return Observed(Lingering(door), lambda: gateway.admission.is_draining)


def create_side_app(gateway: Gateway) -> Starlette:
    """What operators ask, at an address of its own."""
    return Starlette(routes=[Route("/health", gateway.health), Route("/live", gateway.live),
                             Route("/metrics", gateway.metrics)])
