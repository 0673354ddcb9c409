#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes gateway/tests/chat_templates/golden.json: what the reference implementation makes of our messages.

Needs transformers (any 4.5x or later; neither torch nor a model). The templates beside the
golden file are those that model families publish, `llama3_1.jinja` without what is for tools; `training.jinja` is
ours.
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


def main():
    cases = []
    for path in sorted(FOLDER.glob("*.jinja")):
        source = path.read_text("utf-8")
        for name, messages in CONVERSATIONS.items():
            for add in (True, False):
                cases.append({"template": path.name, "conversation": name, "messages": messages,
                              "add_generation_prompt": add, **rendered(source, messages, add)})
    text = json.dumps({"special_tokens": SPECIAL, "now": DAY.isoformat(), "cases": cases}, indent=1, ensure_ascii=False)
    (FOLDER / "golden.json").write_text(text + "\n", "utf-8")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
