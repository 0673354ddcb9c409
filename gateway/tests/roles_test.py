# SPDX-License-Identifier: Apache-2.0
"""Messages are in the prompt, or their chat is refused: no template drops one without a word."""
import contextlib
import functools
import json
import time
import unittest

from stand_ins import HERE, MODEL

from outrider_gateway.chat_prompts import ChatPrompts
from outrider_gateway.chat_template import ChatTemplate
from outrider_gateway.errors import ApiError
from outrider_gateway.roles import Roles
from outrider_gateway.tokens import Tokens

FOLDER = HERE / "chat_templates"
SPECIAL = json.loads((FOLDER / "golden.json").read_text("utf-8"))["special_tokens"]
QUESTION = {"role": "user", "content": "Why?"}
FRENCH = "ONLYFRENCH"


@functools.cache
def template(name):
    return ChatTemplate((FOLDER / f"{name}.jinja").read_text("utf-8"), SPECIAL)


@functools.cache
def roles_of(name):
    return Roles(template(name))


class RolesTest(unittest.TestCase):
    def rendered(self, name, *messages):
        """The prompt that a chat gets; an ApiError where it is refused."""
        return roles_of(name).render(list(messages))

    def refusal(self, name, *messages):
        with self.assertRaises(ApiError) as refusal:
            self.rendered(name, *messages)
        self.assertEqual((refusal.exception.status, refusal.exception.param), (400, "messages"))
        return refusal.exception.message

    def test_with_every_template_a_message_of_any_role_is_in_the_prompt_or_refused(self):
        names = sorted(path.stem for path in FOLDER.glob("*.jinja"))
        self.assertGreaterEqual(len(names), 10)
        num_written = 0
        for name in names:
            for role in ("developer", "system", "tool", "function", "User", "ipython", "\u00fcbel'\"%"):
                for place in range(3):
                    turns = [QUESTION, {"role": "assistant", "content": "So."}, QUESTION]
                    turns.insert(place, {"role": role, "content": FRENCH})
                    with self.subTest(name, role=role, place=place):
                        try:
                            self.assertIn(FRENCH, self.rendered(name, *turns))
                            num_written += 1
                        except ApiError as refusal:
                            self.assertEqual((refusal.status, refusal.param), (400, "messages"))
        self.assertGreater(num_written, 100)

    def test_a_developers_message_is_the_systems_where_the_template_knows_only_that(self):
        for name in ("qwen2_5", "zephyr", "deepseek", "phi3", "llama2"):
            with self.subTest(name):
                asked = {"role": "developer", "content": FRENCH}
                self.assertEqual(self.rendered(name, asked, QUESTION),
                                 template(name).render([{**asked, "role": "system"}, QUESTION]))
                self.assertEqual(asked["role"], "developer")
        self.assertIn("<|start_header_id|>developer", self.rendered("llama3", asked, QUESTION))

    def test_a_role_that_the_template_does_not_know_is_refused_by_its_name(self):
        for role in ("User", "ipython", "function"):
            message = self.refusal("qwen2_5", QUESTION, {"role": role, "content": FRENCH})
            self.assertIn("messages.1.role: ", message)
            self.assertIn(repr(role), message)
        self.assertIn("the role 'system'", self.refusal("training", {"role": "system", "content": "x"}, QUESTION))

    def test_a_role_of_the_templates_own_is_rendered(self):
        known = "{% for m in messages %}{% if m.role in ['user', 'ipython'] %}{{ m.content }}{% endif %}{% endfor %}"
        roles = Roles(ChatTemplate(known))
        self.assertEqual(roles.render([{"role": "ipython", "content": "x"}]), "x")
        for role in ("IPython", "assistant"):
            with self.assertRaisesRegex(ApiError, f"the role '{role}'"):
                roles.render([{"role": role, "content": "x"}])

    def test_what_the_template_itself_says_of_a_role_is_what_its_sender_reads(self):
        self.assertIn("Only user and assistant roles", self.refusal(
            "mistral", QUESTION, {"role": "system", "content": FRENCH}))

    def test_of_several_system_messages_none_is_lost(self):
        two = [{"role": role, "content": f"{role} words \n"} for role in ("system", "developer")]
        self.assertIn("messages.0.content: ", self.refusal("deepseek", *two, QUESTION))
        for word in ("system words", "developer words"):
            self.assertIn(word, self.rendered("qwen2_5", *two, QUESTION))

    def test_a_switch_that_the_template_takes_out_of_the_systems_message_is_no_loss(self):
        """SmolLM3's template and Nemotron's do so."""
        roles = Roles(ChatTemplate(
            "{% if messages[0].role == 'system' %}{{ messages[0].content.replace('/no_think', '') | trim }}"
            "{% endif %}"
            "{% for m in messages %}{% if m.role == 'user' %}|Q: {{ m.content }}{% endif %}{% endfor %}"))
        for content, written in (("/no_think", ""), ("Be /no_think brief.", "Be  brief."), ("", "")):
            system = {"role": "system", "content": content}
            self.assertEqual(roles.render([system, QUESTION]), f"{written}|Q: Why?")
            with self.assertRaisesRegex(ApiError, "messages.2.content: "):
                roles.render([system, QUESTION, {"role": "system", "content": "Be slow."}])

    def test_a_developer_is_the_system_where_a_chat_begins_with_that_alone_though_later_turns_have_any_role(self):
        """Gemma 3's template is such a one."""
        roles = Roles(ChatTemplate(
            "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% set messages = messages[1:] %}"
            "{% endif %}"
            "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
            "{{ raise_exception('roles alternate') }}{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}"))
        developer = {"role": "developer", "content": "Be brief."}
        self.assertEqual(roles.render([developer, QUESTION]), "Be brief.<user>Why?")

    def test_a_role_that_only_the_callers_variables_have_written_is_no_mistake(self):
        roles = Roles(ChatTemplate("{% for m in messages %}{% if m.role == 'user' or (functions and m.role|lower == "
                                   "'tool') %}{{ m.content }} {% endif %}{% endfor %}"))
        for role in ("tool", "Tool"):
            chat = [QUESTION, {"role": role, "content": "Because."}]
            self.assertEqual(roles.render(chat, variables={"functions": ["f"]}), "Why? Because. ")
            with self.assertRaisesRegex(ApiError, f"messages.1.role: .*'{role}'"):
                roles.render(chat)

    def test_many_long_messages_are_looked_for_once(self):
        """Each with much in common with all others. Looked for from the beginning they would take a minute."""
        for name in ("chatml", "deepseek"):
            messages = [{"role": "system", "content": "a" * 450 + str(i) + "a" * 450} for i in range(4000)]
            roles_of(name)
            begin = time.process_time()
            with contextlib.suppress(ApiError):
                self.rendered(name, *messages, {"role": "user", "content": "a" * 300000})
            self.assertLess(time.process_time() - begin, 4)


class ChatTest(unittest.IsolatedAsyncioTestCase):
    async def test_chats_are_checked_before_they_have_a_prompt(self):
        prompts = ChatPrompts(template("phi3"), Tokens.load(MODEL))

        async def ids(role):
            return await prompts.ids([{"role": role, "content": FRENCH}, QUESTION], {}, add_generation_prompt=True,
                                     longest_text=1024)
        self.assertEqual(await ids("developer"), await ids("system"))
        with self.assertRaisesRegex(ApiError, "'System'"):
            await ids("System")


if __name__ == "__main__":
    unittest.main()
