# SPDX-License-Identifier: Apache-2.0
"""Makes a coordinator's requests of the API's."""
from __future__ import annotations

from outrider.v1 import generation_pb2 as pb
from outrider.v1 import types_pb2

from .errors import INVALID_VALUE, ApiError
from .requests import ChatRequest, CompletionRequest, SamplingRequest

_RULES = {"rejection": types_pb2.ACCEPTANCE_RULE_REJECTION, "greedy": types_pb2.ACCEPTANCE_RULE_GREEDY,
          "coupled": types_pb2.ACCEPTANCE_RULE_COUPLED, "block": types_pb2.ACCEPTANCE_RULE_BLOCK}
_SCHEDULES = {"sequential": pb.SCHEDULE_SEQUENTIAL, "ahead": pb.SCHEDULE_AHEAD,
              "predraft": pb.SCHEDULE_PREDRAFT, "auto": pb.SCHEDULE_AUTO}
_SEED_MASK = (1 << 64) - 1
# What coordinators receive (kMaxGenerateRequestBytes), less what a resume adds: 64 Ki delivered tokens.
MOST_REQUEST_BYTES = (8 << 20) - (1 << 18)


def to_generate_request(asked: CompletionRequest | ChatRequest, prompt: str | list[int]) -> pb.GenerateRequest:
    """What all choices for one prompt ask, without a seed. ApiError 413 where no coordinator would receive it."""
    request = pb.GenerateRequest(stop_strings=asked.stop_strings(), stop_token_ids=asked.stop_token_ids,
                                 ignore_eos=asked.ignore_eos)
    if isinstance(prompt, str):
        request.text = prompt
    else:
        request.tokens.ids.extend(prompt)
    for name in ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
                 "max_tokens"):
        value = getattr(asked, name)
        if value is not None:
            setattr(request, name, value)
    if asked.top_k is not None:
        request.top_k = max(asked.top_k, 0)  # -1 is vLLM's word for "off"
    for token, bias in (asked.logit_bias or {}).items():
        request.logit_bias.add(id=_token_id(token), bias=bias)
    if (num_logprobs := asked.num_logprobs()) is not None:
        request.logprobs = num_logprobs
    _add_options(asked, request)
    if request.ByteSize() > MOST_REQUEST_BYTES:
        raise ApiError(413, f"the request takes more than the {MOST_REQUEST_BYTES} bytes that a coordinator accepts, "
                            "4 for each token id; send less", code="request_too_large")
    return request


def _add_options(asked: SamplingRequest, request: pb.GenerateRequest) -> None:
    ours = asked.outrider
    if ours.num_speculative_tokens == "auto":
        request.auto_num_speculative_tokens = True
    elif ours.num_speculative_tokens is not None:
        request.num_speculative_tokens = ours.num_speculative_tokens
    if ours.acceptance_rule is not None:
        request.acceptance_rule = _RULES[ours.acceptance_rule]
    if ours.schedule is not None:
        request.schedule = _SCHEDULES[ours.schedule]
    if ours.prompt_lookup is not None:
        request.prompt_lookup = ours.prompt_lookup
    if ours.min_draft_probability is not None:
        request.draft_options.min_draft_probability = ours.min_draft_probability


def _token_id(text: str) -> int:
    token = int(text)
    if token >= 1 << 31:
        raise ApiError(400, f"logit_bias: token {token} is not in the vocabulary", param="logit_bias",
                       code=INVALID_VALUE)
    return token


def seeds(asked: SamplingRequest, count: int) -> list[int] | list[None]:
    """One for each choice: the caller's for the first, and from it for the others.

    Where the caller names none the coordinators choose: one that is named may fix K.
    """
    if asked.seed is None:
        return [None] * count
    return [(asked.seed + i) & _SEED_MASK for i in range(count)]
