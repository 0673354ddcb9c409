#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A completion through the gateway by the openai client, as it comes; then how many of its tokens were drafted.

  make gateway                 # in another terminal; or any gateway
  python3 -m venv .venv-test && .venv-test/bin/pip install -r tools/requirements-test.txt    # the client
  .venv-test/bin/python examples/openai/complete.py "def add(a, b):"
"""
import argparse
import sys

import openai


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", default="http://127.0.0.1:8000/v1")
    parser.add_argument("--api-key", default="none")
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("prompt")
    flags = parser.parse_args()
    client = openai.OpenAI(base_url=flags.base_url, api_key=flags.api_key)
    try:
        model = client.models.list().data[0].id
        stream = client.completions.create(
            model=model, prompt=flags.prompt, max_tokens=flags.max_tokens, temperature=flags.temperature,
            seed=flags.seed, stream=True, stream_options={"include_usage": True},
            extra_body={"outrider": {"num_speculative_tokens": 4}})  # what OpenAI's API does not know
        for chunk in stream:
            if chunk.choices:
                print(chunk.choices[0].text, end="", flush=True)
            if chunk.usage:
                details = chunk.usage.completion_tokens_details
                print(f"\n{chunk.usage.completion_tokens} tokens; {details.accepted_prediction_tokens} drafts "
                      f"accepted, {details.rejected_prediction_tokens} refused", file=sys.stderr)
    except openai.OpenAIError as error:
        sys.exit(f"complete.py: {error}")


if __name__ == "__main__":
    main()
