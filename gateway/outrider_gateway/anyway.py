# SPDX-License-Identifier: Apache-2.0
"""Parameters with values that ask for what happens anyway, most of which are not served else: those are taken.

Clients send them as they are, since their libraries or their settings name a default.
"""
from __future__ import annotations

from typing import Any

_VALUES: dict[str, list[Any]] = {
    "store": [False],
    "tools": [[]],
    "tool_choice": ["none"],
    "parallel_tool_calls": [False],
    "functions": [[]],
    "function_call": ["none"],
    "suffix": [""],
    "modalities": [["text"]],
    "response_format": [{"type": "text"}],
    "service_tier": ["auto", "default"],
    "logprobs": [False],  # of completions, where it is a number; to chats it is what they have anyway
    # vLLM's.
    "seed": [-1],  # none
    "skip_special_tokens": [True],
    "spaces_between_special_tokens": [True],
    "include_stop_str_in_output": [False],
    "min_tokens": [0],
    "use_beam_search": [False],
    "length_penalty": [1, 1.0],
    "early_stopping": [False],
    "priority": [0],
    "echo": [False],  # of chats; /v1/completions has one of its own, and the same default
}


def left_out(asked: dict[str, Any]) -> dict[str, Any]:
    """The same parameters without those."""
    return {name: value for name, value in asked.items()
            # To Python False is 0, which is no way to write it.
            if not any(type(value) is type(one) and value == one for one in _VALUES.get(name, ()))}
