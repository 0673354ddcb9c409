#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes gateway/tests/chat_templates/golden.json: what the reference implementation makes of our messages.

Needs transformers (any 4.5x or later; neither torch nor a model). The templates beside the golden file are those that
model families publish, `llama3_1.jinja` and `qwen2_5.jinja` without the tools that a request may offer, the second
from memory; `training.jinja` and `texts_of_calls.jinja` are ours.
"""
import datetime
import json
import pathlib
import unittest.mock

import jinja2
from transformers.utils import chat_template_utils

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "gateway/tests/chat_templates"
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
DAY = datetime.datetime(2026, 7, 14, 9, 30)
CONVERSATIONS = {
    "one question": [{"role": "user", "content": "What is a queue?"}],
    "with a system message": [{"role": "system", "content": "Answer in one line. "},
                              {"role": "user", "content": "  <b>Hi</b> & \"hello\"\n"}],
    "several turns": [{"role": "user", "content": "Zähle bis drei."}, {"role": "assistant", "content": "1, 2, 3"},
                      {"role": "user", "content": "再来一次"}],
    "roles out of turn": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
}
# These are for templates that write calls. Arguments are texts, as OpenAI's API has them. Most templates want what the
# texts say; some, as DeepSeek R1's do, add them to other texts.
WITH_OBJECTS = ["llama3_1.jinja", "qwen2_5.jinja"]
WITH_TEXTS = ["texts_of_calls.jinja"]
CALLS = {
    name: [{"role": "user", "content": "Wie warm ist es in Köln?"},
           {"role": "assistant", "content": "", "tool_calls": [
               {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": arguments}}]},
           {"role": "tool", "tool_call_id": "call_1", "content": "{\"celsius\": 11}"}]
    for name, arguments in (("a call", "{\"place\":\"Köln \\\"Mitte\\\"\",\"days\":[1,2.50],\"at\": null}"),
                            ("a call without arguments", "{}"))
}


class _Day(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return DAY


def rendered(source, messages, add_generation_prompt):
    with unittest.mock.patch.object(chat_template_utils, "datetime", _Day):
        try:
            texts, _ = chat_template_utils.render_jinja_template(
                conversations=[messages], chat_template=source, add_generation_prompt=add_generation_prompt, **SPECIAL)
        except jinja2.TemplateError as error:
            return {"refused": str(error)}
    return {"text": texts[0]}


def taken_apart(message):
    calls = [{**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
             for call in message.get("tool_calls", ())]
    return {**message, "tool_calls": calls} if calls else message


def main():
    cases = []
    for path in sorted(FOLDER.glob("*.jinja")):
        source = path.read_text("utf-8")
        for name, messages in (CONVERSATIONS | (CALLS if path.name in WITH_OBJECTS + WITH_TEXTS else {})).items():
            given = messages if path.name in WITH_TEXTS else [taken_apart(message) for message in messages]
            for add in (True, False):
                cases.append({"template": path.name, "conversation": name, "messages": messages,
                              "add_generation_prompt": add,
                              **rendered(source, given, add)})
    text = json.dumps({"special_tokens": SPECIAL, "now": DAY.isoformat(), "cases": cases}, indent=1, ensure_ascii=False)
    (FOLDER / "golden.json").write_text(text + "\n", "utf-8")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
