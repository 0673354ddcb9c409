# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a request, in words of the API: pydantic's finding as a refusal that names the parameter."""
from __future__ import annotations

from typing import Any

import pydantic

from .errors import INVALID_VALUE, ApiError

# Parameters of OpenAI's API and of vLLM's, and why they are refused.
NOT_SERVED = {
    "tools": "function calling is not served", "tool_choice": "function calling is not served",
    "parallel_tool_calls": "function calling is not served", "functions": "function calling is not served",
    "function_call": "function calling is not served", "audio": "audio is not served",
    "modalities": "only text is served", "prediction": "drafts come from the drafter: leave it out",
    "suffix": "filling in the middle is not served", "store": "nothing is stored",
    "reasoning_effort": "models here have no reasoning effort", "verbosity": "models here have no verbosity",
    "service_tier": "there is one tier", "web_search_options": "there is no web search",
    "guided_json": "constrained decoding is not served", "guided_regex": "constrained decoding is not served",
    "guided_choice": "constrained decoding is not served", "guided_grammar": "constrained decoding is not served",
    "structured_outputs": "constrained decoding is not served", "use_beam_search": "beam search is not served",
    "length_penalty": "beam search is not served", "early_stopping": "beam search is not served",
    "priority": "all requests are equal",
    "min_tokens": "a least number of tokens is not served", "skip_special_tokens": "special tokens are never shown",
    "spaces_between_special_tokens": "special tokens are never shown",
    "include_stop_str_in_output": "a text ends before its stop string",
    "prompt_logprobs": "log-probabilities of prompts are not served",
    # The one endpoint has these, the other has not.
    "echo": "it belongs to /v1/completions",
    "response_format": "constrained decoding is not served", "top_logprobs": "it belongs to chats; ask for logprobs",
}

# More are counted, and not looked at one by one.
_MAX_MISTAKES = 1000
# What pydantic calls the members of a union; parameters inside of others have no such names.
_MEMBERS = {"str", "int", "float", "bool", "dict"}


def refusal_of(error: pydantic.ValidationError) -> ApiError:
    if error.error_count() > _MAX_MISTAKES:
        return ApiError(400, f"the request has {error.error_count()} mistakes, such as parameters that do not exist",
                        code=INVALID_VALUE)
    # Each member of a union reports: one that has the right type knows best what is wrong.
    first = min(error.errors(include_url=False), key=_has_wrong_type)
    place = [str(part) for part in first["loc"]]
    name = place[0] if place else None
    if first["type"] == "json_invalid":
        return ApiError(400, f"the body is not JSON: {first['ctx']['error']}", code="invalid_json")
    if not place and first["type"] != "value_error":
        return ApiError(400, "the body is not a JSON object", code="invalid_json")
    if name == "prompt" and _has_wrong_type(first):
        return ApiError(400, "prompt: must be a text, token ids, or a list of texts or of lists of token ids",
                        param=name, code=INVALID_VALUE)
    if first["type"] == "extra_forbidden":
        # Its own name may be any, that of a union's member included.
        shown = ".".join([_path(place[:-1]), place[-1]]) if place[1:] else place[0]
        why = NOT_SERVED.get(place[-1], "there is no such parameter")
        return ApiError(400, f"{shown}: {why}", param=shown, code="unsupported_parameter")
    text = first["msg"].removeprefix("Value error, ")
    if name is None:  # of several parameters together: the message begins with the name
        name, _, text = text.partition(": ")
        return ApiError(400, f"{name}: {text}", param=name, code=INVALID_VALUE)
    if first["type"] == "missing":
        return ApiError(400, f"{_path(place)} is missing", param=name, code="missing_required_parameter")
    return ApiError(400, f"{_path(place)}: {text[0].lower()}{text[1:]}", param=name, code=INVALID_VALUE)


def _has_wrong_type(error: Any) -> bool:
    return str(error["type"]).endswith("_type") or error["type"] == "int_parsing"


def _path(place: list[str]) -> str:
    """The parameter's place in the request, without the names that pydantic gives to a union's members."""
    inner = [part for part in place[1:] if (part.isidentifier() or part.isdecimal()) and part not in _MEMBERS]
    return ".".join([place[0], *inner])
