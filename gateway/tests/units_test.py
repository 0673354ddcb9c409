# SPDX-License-Identifier: Apache-2.0
"""The gateway's parts by themselves: templates, keys, requests, refusals, tokens."""
import datetime
import json
import pathlib
import resource
import socket
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import make_stubs  # noqa: E402

make_stubs.main()

from outrider.v1 import generation_pb2 as pb  # noqa: E402
from outrider_gateway import chat_template, json_text, keys, main, replies, requests, server  # noqa: E402
from outrider_gateway.errors import ApiError  # noqa: E402
from outrider_gateway.generation import Tally  # noqa: E402
from outrider_gateway.replies import usage  # noqa: E402
from outrider_gateway.tokens import Tokens  # noqa: E402

MODEL = HERE.parent.parent / "models/demo-target"


class ChatTemplateTest(unittest.TestCase):
    GOLDEN = json.loads((HERE / "chat_templates/golden.json").read_text("utf-8"))

    def test_templates_render_as_the_reference_does(self):
        now = datetime.datetime.fromisoformat(self.GOLDEN["now"])
        templates = set()
        for case in self.GOLDEN["cases"]:
            source = (HERE / "chat_templates" / case["template"]).read_text("utf-8")
            template = chat_template.ChatTemplate(source, self.GOLDEN["special_tokens"], now=lambda: now)
            # They are as a client sends them, with the arguments of calls as texts.
            asked = requests.parse(requests.ChatRequest, json.dumps(
                {"model": "m", "messages": case["messages"]}).encode())
            messages, _ = asked.take_chat()
            with self.subTest(case["template"], conversation=case["conversation"]):
                if "refused" in case:
                    with self.assertRaises(ApiError) as refusal:
                        template.render(messages, add_generation_prompt=case["add_generation_prompt"])
                    self.assertEqual(refusal.exception.status, 400)
                    self.assertIn(case["refused"], refusal.exception.message)
                else:
                    self.assertEqual(template.render(
                        messages, add_generation_prompt=case["add_generation_prompt"]), case["text"])
            templates.add(case["template"])
        self.assertGreaterEqual(len(templates), 10)

    def render(self, source, content="hello"):
        return chat_template.ChatTemplate(source).render([{"role": "user", "content": content}])

    def test_of_two_renderings_that_fail_the_first_says_why(self):
        def asked(calls):
            return [{"role": "assistant", "content": "x", "tool_calls": calls}]
        call = {"type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
        source = "{{ 'x' + messages[0].tool_calls[0].function.arguments['a'] }}"
        with self.assertRaisesRegex(ApiError, "cannot render them: can only concatenate str"):
            chat_template.ChatTemplate(source).render(asked([call]))
        # Without arguments that are taken apart the second would be the first.
        now = mock.Mock(return_value=datetime.datetime.now())
        with self.assertRaisesRegex(ApiError, "cannot render them: can only concatenate str"):
            chat_template.ChatTemplate("{{ strftime_now('x') + 1 }}", now=now).render(asked([]))
        now.assert_called_once()

    def test_a_template_cannot_reach_python(self):
        for source in ("{{ ''.__class__.__mro__ }}", "{{ messages.__class__ }}", "{{ cycler.__init__.__globals__ }}",
                       "{{ messages.append(1) }}", "{{ self.__init__.__globals__ }}"):
            with self.subTest(source), self.assertRaises(ApiError):
                if self.render(source) == "":  # an undefined name is nothing
                    raise ApiError(400, "rendered as nothing")

    def test_a_template_that_never_ends_is_stopped(self):
        loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% set c = b %}{% endfor %}{% endfor %}"
        start = time.monotonic()
        with self.assertRaisesRegex(ApiError, "took longer"):
            self.render(loop)
        self.assertLess(time.monotonic() - start, 20)

    def test_a_template_is_compiled_once_and_each_rendering_has_its_own_deadline(self):
        loop = "{% for a in range(99999) %}{% for b in range(messages | length) %}{% endfor %}{% endfor %}"
        with mock.patch.object(chat_template._Environment, "compile", autospec=True,
                               side_effect=chat_template._Environment.compile) as compiled, \
                mock.patch.object(chat_template, "MAX_SECONDS", 0.2):
            template = chat_template.ChatTemplate(loop + "{{ messages[0] }}")
            with self.assertRaisesRegex(ApiError, "took longer"):
                template.render([{}] * 99999)
            template = chat_template.ChatTemplate("{{ messages[0].content }}")
            self.assertEqual([template.render([{"content": text}]) for text in "ab"], ["a", "b"])
            time.sleep(0.3)
            self.assertEqual(template.render([{"content": "c"}]), "c")
        self.assertEqual(compiled.call_count, 2)

    def test_loops_that_call_nothing_are_stopped_too(self):
        with self.assertRaisesRegex(ApiError, "took longer"):
            self.render("{% set s = 'x' * 4000000 %}{% for a in s %}{% for b in s %}{% endfor %}{% endfor %}")

    def test_whatever_a_template_does_with_messages_is_a_refusal(self):
        for source in ("{{ 1 / 0 }}", "{{ '{5}'.format(1) }}", "{{ none + 1 }}", "{{ 5 % 0 }}"):
            with self.subTest(source), self.assertRaises(ApiError) as refusal:
                self.render(source)
            self.assertEqual((refusal.exception.status, refusal.exception.param), (400, "messages"))

    def test_callers_variables_go_before_special_tokens_and_never_before_messages(self):
        source = "{{ bos_token }}{{ style }}{{ messages | length }}"
        template = chat_template.ChatTemplate(source, {"bos_token": "<s>"})
        self.assertEqual(template.render([], variables={"style": "x"}), "<s>x0")
        self.assertEqual(template.render([], variables={"bos_token": "<t>", "messages": [1], "self": 2}), "<t>0")

    def test_a_template_that_grows_without_bound_is_stopped(self):
        twice = "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}"
        for source in ("{{ 'a' * 99999999999 }}", "{{ 10 ** 99999999 }}", twice, twice.replace("~", "+"),
                       twice.replace("ns.s ~ ns.s", "ns.s.replace('b', 'bb')"), "{{ 'a'.ljust(99999999999) }}",
                       "{% for i in range(99999) %}{{ 'abcdefghij' * 1000 }}{% endfor %}"):
            with self.subTest(source), self.assertRaises(ApiError):
                self.render(source)

    def test_a_directory_without_a_template_says_so(self):
        with self.assertRaisesRegex(chat_template.NoTemplateError, "neither"):
            chat_template.load(MODEL)

    def test_the_own_file_comes_before_the_configuration(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "tokenizer_config.json").write_text(json.dumps(
                {"chat_template": [{"name": "tool_use", "template": "T"},
                                   {"name": "default", "template": "D{{bos_token}}"}],
                 "bos_token": {"content": "<s>"}}))
            self.assertEqual(chat_template.load(folder).render([]), "D<s>")
            (folder / "chat_template.jinja").write_text("F")
            self.assertEqual(chat_template.load(folder).render([]), "F")
            (folder / "chat_template.jinja").write_text("{% if %}")
            with self.assertRaisesRegex(ValueError, "damaged"):
                chat_template.load(folder)


class KeysTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "keys"
        self.now = 0.0

    def keys(self, text):
        self.path.write_text(text)
        return keys.Keys(self.path, clock=lambda: self.now)

    def test_only_a_known_key_is_let_in(self):
        known = self.keys("# who\nalice secret-a\nbob secret-b requests=2\n")
        self.assertEqual(known.authenticate("Bearer secret-b").name, "bob")
        for wrong in (None, "", "secret-a", "Basic secret-a", "Bearer secret", "Bearer "):
            with self.subTest(wrong), self.assertRaises(ApiError) as refusal:
                known.authenticate(wrong)
            self.assertEqual(refusal.exception.status, 401)

    def test_without_a_file_everybody_is_let_in(self):
        self.assertEqual(keys.Keys(None).authenticate(None).name, "anyone")

    def test_requests_at_a_time_are_limited(self):
        account = self.keys("a k requests=1").authenticate("Bearer k")
        with account.request(0), self.assertRaises(ApiError) as refusal, account.request(0):
            pass
        self.assertEqual((refusal.exception.status, refusal.exception.response().headers["retry-after"]), (429, "1"))
        with account.request(0):
            pass

    def test_tokens_a_minute_come_back_with_time(self):
        account = self.keys("a k tokens_per_minute=60").authenticate("Bearer k")
        account.settle(account.reserve(0, now=0), 90, now=0)
        with self.assertRaises(ApiError) as refusal, account.request(0):
            pass
        self.assertEqual(refusal.exception.response().headers["retry-after"], "30")
        self.assertIn("has used its 60 tokens", refusal.exception.message)
        with account.request(30.5):
            pass

    def test_what_requests_may_take_counts_from_their_beginning(self):
        account = self.keys("a k tokens_per_minute=60").authenticate("Bearer k")
        reserved = [account.reserve(50, now=0), account.reserve(50, now=0)]
        for refused in lambda: account.reserve(1, now=0), account.request(0).__enter__:
            with self.assertRaises(ApiError) as refusal:
                refused()
            self.assertEqual(refusal.exception.status, 429)
            self.assertIn("reserved by requests that run", refusal.exception.message)  # as nothing has been used
        account.settle(reserved[0], 10, now=0)
        account.settle(reserved[1], 20, now=0)
        self.assertEqual(account.reserve(30, now=0).tokens, 30)

    def used(self, account, now):
        account._drain(now)
        return account._spent

    def test_a_reservation_that_has_drained_is_not_given_back_once_more(self):
        account = self.keys("a k tokens_per_minute=60").authenticate("Bearer k")
        long = account.reserve(60, now=0)
        account.settle(account.reserve(50, now=59), 50, now=59)
        self.assertEqual(self.used(account, 59), 51)
        account.settle(long, 0, now=59)
        self.assertEqual(self.used(account, 59), 50)  # which is the other's

    def test_what_was_used_beyond_a_reservation_is_counted_as_it_drained(self):
        account = self.keys("a k tokens_per_minute=60").authenticate("Bearer k")
        for reserved, used, seconds, left in ((60, 60, 30, 30), (60, 20, 30, 0), (60, 500, 60, 440),
                                              (60, 10, 600, 0), (30, 30, 60, 0), (60, 60, 0, 60)):
            with self.subTest(reserved=reserved, used=used, seconds=seconds):
                self.now += 10 ** 6
                reservation = account.reserve(reserved, now=self.now)
                account.settle(reservation, used, now=self.now + seconds)
                self.assertEqual(self.used(account, self.now + seconds), left)

    def test_a_limit_that_changes_while_a_request_runs_is_the_one_it_is_settled_by(self):
        account = self.keys("a k").authenticate("Bearer k")
        reservation = account.reserve(50, now=0)
        account.limits = keys.Limits(tokens_per_minute=60)
        account.settle(reservation, 40, now=0)
        self.assertEqual(self.used(account, 0), 40)
        reservation = account.reserve(50, now=0)
        account.limits = keys.Limits()
        account.settle(reservation, 40, now=0)
        self.assertEqual(self.used(account, 0), 0)

    def test_a_request_that_may_take_much_keeps_no_others_out_for_longer_than_a_minute(self):
        account = self.keys("a k tokens_per_minute=60").authenticate("Bearer k")
        self.assertEqual(account.reserve(10 ** 6, now=0).tokens, 60)
        account.settle(account.reserve(10, now=0), 10 ** 6, now=0)
        with self.assertRaises(ApiError) as refusal:
            account.reserve(1, now=0)
        self.assertEqual(refusal.exception.retry_after, 60)
        unlimited = keys.Keys(None).authenticate(None)
        self.assertEqual(unlimited.reserve(10 ** 9, now=0).tokens, 0)

    def test_a_limit_that_comes_later_counts_from_then_on(self):
        known = self.keys("a k")
        account = known.authenticate("Bearer k")
        account.settle(account.reserve(10 ** 9, now=0), 10 ** 9, now=0)
        self.path.write_text("a k tokens_per_minute=60\n")
        self.now = 2
        with known.authenticate("Bearer k").request(2):
            pass
        self.assertEqual(account.limits.tokens_per_minute, 60)

    def test_a_changed_file_is_read_and_a_damaged_one_is_not(self):
        known = self.keys("a old")
        account = known.authenticate("Bearer old")
        account.num_running = 3
        self.path.write_text("a old requests=5\nb new\n")
        self.now = 2
        self.assertEqual(known.authenticate("Bearer new").name, "b")
        self.assertIs(known.authenticate("Bearer old"), account)  # with what it has used
        self.assertEqual(account.limits.requests, 5)
        self.path.write_text("only-a-name\n")
        with self.assertLogs("outrider_gateway.keys", "ERROR") as logs:
            for self.now in (4, 6):
                self.assertEqual(known.authenticate("Bearer new").name, "b")
        self.assertEqual(len(logs.output), 1)  # said once

    def test_a_file_that_cannot_be_says_where(self):
        for text, words in (("", "no key"), ("name", "line 1"), ("\na k requests=0", "line 2"), ("a k x=1", "x=1")):
            with self.subTest(text), self.assertRaisesRegex(ValueError, words):
                self.keys(text)

    def test_a_comment_begins_with_a_word_and_never_inside_of_a_key(self):
        known = self.keys("\ufeff# who\na sec#ret requests=2 # until May\nb two #requests=0\n#c three\n\t\r\n"
                          "d four\r\n")
        self.assertEqual(known.authenticate("Bearer sec#ret").limits.requests, 2)
        self.assertEqual([known.authenticate(f"Bearer {key}").name for key in ("two", "four")], ["b", "d"])
        for stump in ("sec", "three", "who"):
            with self.subTest(stump), self.assertRaises(ApiError):
                known.authenticate(f"Bearer {stump}")
        with self.assertRaisesRegex(ValueError, "line 1: a key has a name and a secret"):
            self.keys("a #secret")

    def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(self):
        for key in ("gr\u00fc\u00df", "a\x00b", "a\u00a0b", "a\x0bb", "a\u2028b", "a\x85b", "\x7f"):
            with self.subTest(key), self.assertRaisesRegex(ValueError, "line 2: .*printable") as refusal:
                self.keys(f"good key\na {key}\n")
            self.assertNotIn(key, str(refusal.exception))

    def test_only_requests_of_one_key_and_one_salt_share_a_cache(self):
        known = self.keys("a 1\nb 2")
        salts = [known.authenticate(f"Bearer {key}").cache_salt(asked) for key in "12" for asked in (None, "x", "y")]
        self.assertEqual(len(set(salts)), 6)
        self.assertEqual(known.authenticate("Bearer 1").cache_salt("x"), salts[1])
        self.assertTrue(all(len(salt) == 64 and "1" != salt != "x" for salt in salts))

    def test_strangers_share_a_cache_only_where_they_ask_for_it(self):
        anyone = keys.Keys(None).authenticate(None)
        self.assertEqual(anyone.cache_salt(None), "")
        self.assertNotEqual(anyone.cache_salt("ours"), "")


class UsageTest(unittest.TestCase):
    def test_a_prompt_counts_once_however_many_choices_it_has(self):
        tallies = [Tally(prompt_tokens=7, completion_tokens=3, num_cached=4, num_drafted=5, num_accepted=2)
                   for _ in range(4)]  # two prompts of two choices each
        self.assertEqual(usage(tallies, 2), {
            "prompt_tokens": 14, "completion_tokens": 12, "total_tokens": 26,
            "prompt_tokens_details": {"cached_tokens": 8},
            "completion_tokens_details": {"accepted_prediction_tokens": 8, "rejected_prediction_tokens": 12}})

    def test_what_was_cached_is_not_said_where_nobody_knows(self):
        self.assertIsNone(usage([Tally(num_cached=4), Tally()], 1)["prompt_tokens_details"])


class ShapesTest(unittest.TestCase):
    TOKENS = Tokens.load(MODEL)

    def tokens(self, *texts):
        return [pb.GeneratedToken(id=70 + i, text=text, logprob=-2) for i, text in enumerate(texts)]

    def test_offsets_count_the_characters_that_are_shown(self):
        shape = replies.CompletionShape("m", self.TOKENS, True, ["echo"])
        # The first token is half a character, which comes with the second.
        whole = shape.choice(0, "\u518dab", self.tokens("", "\u518d", "ab", ""), "stop")
        self.assertEqual(whole["logprobs"]["text_offset"], [4, 4, 5, 7])
        shape.first_chunk(0)
        offsets = [offset for part in (["", "\u518d"], ["ab", ""])
                   for offset in shape.chunk(0, "".join(part), self.tokens(*part), None)["logprobs"]["text_offset"]]
        self.assertEqual(offsets, [4, 4, 5, 7])

    def test_the_token_itself_is_among_its_alternatives(self):
        shape = replies.CompletionShape("m", self.TOKENS, True, None)
        token, = self.tokens("x")
        own = self.TOKENS.name(token.id)
        self.assertEqual(shape.choice(0, "x", [token], None)["logprobs"]["top_logprobs"], [{own: -2}])
        token.top_logprobs.add(id=90, logprob=-1)
        self.assertEqual(shape.choice(0, "x", [token], None)["logprobs"]["top_logprobs"],
                         [{self.TOKENS.name(90): -1, own: -2}])
        token.top_logprobs.add(id=token.id, logprob=-2)
        self.assertEqual(len(shape.choice(0, "x", [token], None)["logprobs"]["top_logprobs"][0]), 2)

    def test_each_name_is_made_once(self):
        tokens = Tokens.load(MODEL)
        with mock.patch.object(tokens, "_tokenizer", mock.Mock(id_to_token=lambda i: f"t{i}")) as inner:
            shape = replies.ChatShape("m", tokens, True)
            inner.id_to_token = mock.Mock(side_effect=lambda i: f"t{i}")
            message = self.tokens("x", "y")
            for token in message:
                for i in range(70, 80):
                    token.top_logprobs.add(id=i, logprob=-1)
            shape.choice(0, "xy", message, None)
            self.assertEqual(inner.id_to_token.call_count, 10)

    def test_no_character_of_a_text_ends_a_line_of_an_event(self):
        text = "a\u2028b\u2029c\u0085d\ne\x0bf\x1cg"
        written = json_text.to_json({"text": text})
        self.assertEqual(written.splitlines(), [written])
        self.assertEqual(json.loads(written)["text"], text)
        self.assertEqual(json_text.to_json("gr\u00fc\u00df"), '"gr\u00fc\u00df"')


class ConnectionsTest(unittest.TestCase):
    def test_a_peer_that_takes_nothing_does_not_keep_its_connection(self):
        with server.bind("127.0.0.1", 0, 7) as listener, socket.create_connection(listener.getsockname()):
            taken, _ = listener.accept()
            with taken:
                self.assertEqual(taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT), 67_000)

    def test_there_may_be_as_many_as_the_machine_allows(self):
        before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (before, most))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(before, 200), most))
        main.allow_many_connections()
        self.assertEqual(resource.getrlimit(resource.RLIMIT_NOFILE), (most, most))


if __name__ == "__main__":
    unittest.main()
