# SPDX-License-Identifier: Apache-2.0
"""What the gateway answers: the real `openai` client before real coordinators."""
import json
import socket
import unittest
import urllib.error
import urllib.request

import openai
from bad_requests import BAD_CHATS, BAD_COMPLETIONS, GOOD_CHAT, GOOD_COMPLETION, MISSING
from door import PROMPT, TARGET, DoorTest, wait_until


class AnswersTest(DoorTest):
    # ---- equal texts

    def test_completions_are_those_of_outrider_generate_for_the_seed(self):
        self.gateway()
        coupled = {"outrider": {"acceptance_rule": "coupled"}}
        for temperature in (0, 1):
            expected = self.spoken("--temperature", str(temperature), "--seed", "7", "--max-tokens", "48",
                                   "--acceptance-rule", "coupled")
            reply = self.client().completions.create(model="demo-target", prompt=PROMPT, max_tokens=48, seed=7,
                                                     temperature=temperature, extra_body=coupled)
            self.assertEqual(reply.choices[0].text.strip("\n"), expected.strip("\n"))
            streamed = self.client().completions.create(model="demo-target", prompt=PROMPT, max_tokens=48, seed=7,
                                                        temperature=temperature, stream=True, extra_body=coupled)
            self.assertEqual("".join(chunk.choices[0].text for chunk in streamed), reply.choices[0].text)

    def test_chats_are_completions_of_the_rendered_template(self):
        self.gateway()
        messages = [{"role": "user", "content": "# sorts a list"}]
        settings = {"model": "demo-target", "temperature": 0, "max_tokens": 24}
        chat = self.client().chat.completions.create(messages=messages, **settings)
        plain = self.client().completions.create(prompt="# sorts a list\ndef ", **settings)
        self.assertEqual(chat.choices[0].message.content, plain.choices[0].text)
        self.assertEqual(chat.usage.prompt_tokens, plain.usage.prompt_tokens)
        streamed = list(self.client().chat.completions.create(
            messages=messages, stream=True, stream_options={"include_usage": True}, **settings))
        self.assertEqual(streamed[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in streamed if c.choices),
                         chat.choices[0].message.content)
        # Which rounds had drafts, and so how many were judged, may differ from run to run.
        for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
            self.assertEqual(getattr(streamed[-1].usage, name), getattr(chat.usage, name))

    def test_a_model_without_a_chat_template_serves_completions_only_and_says_so(self):
        program = self.gateway(model=TARGET)
        self.assertIn("chat_template", program.err())
        with self.assertRaisesRegex(openai.BadRequestError, "completions only"):
            self.client().chat.completions.create(model="demo-target", messages=[{"role": "user", "content": "x"}])

    # ---- parameters

    def test_choices_differ_and_repeat_with_their_seed(self):
        self.gateway()
        settings = {"model": "demo-target", "prompt": ["def a(", "class B"], "max_tokens": 16, "n": 2, "seed": 3,
                    # Other rules repeat the law only: which rounds draft is the clock's choice.
                    "extra_body": {"outrider": {"acceptance_rule": "coupled"}}}
        first = self.client().completions.create(**settings)
        self.assertEqual([c.index for c in first.choices], [0, 1, 2, 3])
        texts = [c.text for c in first.choices]
        self.assertNotEqual(texts[0], texts[1])
        self.assertEqual([c.text for c in self.client().completions.create(**settings).choices], texts)

    def test_usage_is_true(self):
        self.gateway()
        reply = self.client().completions.create(
            model="demo-target", prompt=PROMPT, max_tokens=48, temperature=0,
            extra_body={"outrider": {"num_speculative_tokens": 4, "rounds": True}})
        rounds = reply.choices[0].outrider["rounds"]
        details = reply.usage.completion_tokens_details
        self.assertEqual(reply.usage.completion_tokens, sum(len(r["tokens"]) for r in rounds))
        self.assertEqual(details.accepted_prediction_tokens, sum(r["round"]["num_accepted"] for r in rounds))
        self.assertEqual(details.rejected_prediction_tokens,
                         sum(r["round"]["num_drafted"] - r["round"]["num_accepted"] for r in rounds))
        self.assertGreater(details.accepted_prediction_tokens, 0)
        origins = [t["origin"] for r in rounds for t in r["tokens"]]
        self.assertEqual(origins.count("draft"), details.accepted_prediction_tokens)

    def test_the_second_turn_of_a_chat_finds_the_first_cached_under_its_salt_alone(self):
        self.gateway()
        messages = [{"role": "user", "content": PROMPT * 4}]

        def turn(salt):
            reply = self.client().chat.completions.create(
                model="demo-target", messages=messages, max_tokens=40, temperature=0, seed=2, stream=True,
                stream_options={"include_usage": True}, extra_body={"cache_salt": salt})
            chunks = list(reply)
            text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
            return text, chunks[-1].usage

        answer, first = turn("mine")
        self.assertEqual(first.prompt_tokens_details.cached_tokens, 0)
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": "# and then"}]
        (text, second), (other_text, other) = turn("mine"), turn("theirs")
        # All of the first prompt but the end of its last block, and what follows a turn's text.
        self.assertGreater(second.prompt_tokens_details.cached_tokens, first.prompt_tokens - 32)
        self.assertLess(second.prompt_tokens_details.cached_tokens, second.prompt_tokens)
        self.assertEqual(other.prompt_tokens_details.cached_tokens, 0)
        self.assertEqual(text, other_text)

    def test_usage_comes_at_the_end_of_a_stream_or_with_each_chunk(self):
        self.gateway()
        for continuous in (False, True):
            chunks = list(self.client().completions.create(
                model="demo-target", prompt=PROMPT, max_tokens=24, seed=1, stream=True,
                stream_options={"include_usage": True, "continuous_usage_stats": continuous}))
            counts = [chunk.usage and chunk.usage.completion_tokens for chunk in chunks]
            self.assertEqual((chunks[-1].choices, counts[-1]), ([], max(filter(None, counts))))
            if continuous:
                self.assertEqual(counts, sorted(counts))
            else:
                self.assertEqual(set(counts[:-1]), {None})

    def test_stop_echo_and_logprobs(self):
        self.gateway()
        reply = self.client().completions.create(model="demo-target", prompt=PROMPT, max_tokens=64, temperature=0,
                                                 stop=["()\n"], logprobs=2)
        choice = reply.choices[0]
        self.assertEqual(choice.finish_reason, "stop")
        self.assertNotIn("()", choice.text)
        # The token itself is always among them.
        self.assertTrue(all(len(top) <= 3 for top in choice.logprobs.top_logprobs))
        self.assertTrue(all(own in top for own, top in zip(choice.logprobs.tokens, choice.logprobs.top_logprobs,
                                                           strict=True)))
        self.assertTrue(all(value <= 0 for value in choice.logprobs.token_logprobs))
        self.assertTrue("".join(choice.logprobs.tokens).startswith(choice.text))
        echoed = self.client().completions.create(model="demo-target", prompt="def a(", max_tokens=4, temperature=0,
                                                  echo=True)
        self.assertTrue(echoed.choices[0].text.startswith("def a("))
        chat = self.client().chat.completions.create(
            model="demo-target", messages=[{"role": "user", "content": "x"}], max_tokens=6, temperature=0,
            logprobs=True, top_logprobs=3)
        content = chat.choices[0].logprobs.content
        self.assertEqual(len(content), chat.usage.completion_tokens)
        self.assertTrue(all(len(one.top_logprobs) == 3 for one in content))
        self.assertEqual(bytes(b for one in content for b in one.bytes).decode(errors="replace")[:4],
                         chat.choices[0].message.content[:4])

    def test_a_stop_token_ends_the_text_before_it(self):
        self.gateway()
        settings = {"model": "demo-target", "prompt": PROMPT, "seed": 5, "max_tokens": 32}
        extra = {"return_token_ids": True, "outrider": {"acceptance_rule": "coupled"}}
        ids = self.client().completions.create(**settings, extra_body=extra).choices[0].token_ids
        last = next(i for i in range(8, 32) if ids[i] not in ids[:i])
        before = self.client().completions.create(**{**settings, "max_tokens": last}, extra_body=extra).choices[0]
        for stream in (False, True):
            reply = self.client().completions.create(**settings, stream=stream,
                                                     extra_body={**extra, "stop_token_ids": [ids[last]]})
            parts = [chunk.choices[0] for chunk in reply] if stream else reply.choices
            self.assertEqual([i for part in parts for i in part.token_ids], ids[:last + 1])
            self.assertEqual(parts[-1].finish_reason, "stop")
            self.assertEqual("".join(part.text for part in parts), before.text)

    def test_request_id_and_trace_reach_the_coordinators_log(self):
        lone = self.launch_coordinator()
        self.gateway(coordinators=[lone.address()])
        trace = "0af7651916cd43dd8448eb211c80319c"
        reply = self.client().completions.with_raw_response.create(
            model="demo-target", prompt="p", max_tokens=1,
            extra_headers={"x-request-id": "mine-7", "traceparent": f"00-{trace}-b7ad6b7169203331-01"})
        self.assertEqual(reply.headers["x-request-id"], "mine-7")
        wait_until("it is logged", lambda: f"request_id=mine-7 trace_id={trace}" in lone.err())

    def test_each_request_is_a_line_of_the_gateways_own_log(self):
        program = self.gateway()
        reply = self.client().completions.with_raw_response.create(
            model="demo-target", prompt="secret words", max_tokens=2, n=2, temperature=1,
            extra_headers={"x-request-id": "mine-8"}, extra_body={"ignore_eos": True})
        usage = reply.parse().usage

        def lines():
            return [line for line in program.err().splitlines() if line.endswith("request_id=mine-8")]
        wait_until("it is logged", lines)
        line, = lines()
        self.assertIn(f"POST /v1/completions status=200 key=anyone prompt_tokens={usage.prompt_tokens} "
                      "completion_tokens=4 seconds=", line)
        self.assertNotIn("secret", program.err())

    def test_a_prompt_that_is_too_long_is_told_so_in_openais_words_whoever_finds_it(self):
        self.gateway()
        self.assertEqual(next(iter(self.client().models.list())).max_model_len, 1024)
        completions = self.client().completions

        def chat(length):
            messages = [{"role": "user", "content": "a b " * length}]
            return self.client().chat.completions.create(model="demo-target", messages=messages)
        # The coordinator finds it before or after it has tokenised a text, the gateway for token ids and for chats.
        for ask in (lambda: completions.create(model="demo-target", prompt="x" * 500_000),
                    lambda: completions.create(model="demo-target", prompt="a b " * 600),
                    lambda: completions.create(model="demo-target", prompt=[5] * 1024),
                    lambda: chat(600), lambda: chat(500_000)):
            with self.assertRaises(openai.BadRequestError) as refusal:
                ask()
            self.assertEqual(refusal.exception.code, "context_length_exceeded")
            self.assertIn("This model's maximum context length is 1024 tokens. ", refusal.exception.message)

    def test_a_text_is_too_long_where_no_verifier_has_the_memory_and_may_be_sent_again_where_one_was_lost(self):
        verifier = self.launch("outrider-verifier", "--threads", 1, "--model", TARGET, "--kv-cache-memory", "2MiB")
        small = self.launch("outrider-coordinator", "--verifier", verifier.address(), "--tokenizer", TARGET)
        self.gateway(coordinators=[small.address()])
        longest = next(iter(self.client().models.list())).max_model_len
        self.assertTrue(0 < longest < 900, longest)
        for prompt in [5] * 900, "a b " * 450:  # the gateway finds it, and the coordinator
            with self.assertRaises(openai.BadRequestError) as refusal:
                self.client().completions.create(model="demo-target", prompt=prompt)
            self.assertEqual(refusal.exception.code, "context_length_exceeded")
            self.assertIn(f"This model's maximum context length is {longest} tokens", refusal.exception.message)
        large = self.launch_coordinator()
        self.gateway(coordinators=[small.address(), large.address()])
        wait_until("both are known", lambda: next(iter(self.client().models.list())).max_model_len == 1024)
        large.close()
        with self.assertRaises(openai.InternalServerError) as refusal:
            self.client().completions.create(model="demo-target", prompt=[5] * 900)
        self.assertEqual(refusal.exception.status_code, 503, refusal.exception.message)
        self.assertIn("retry-after", refusal.exception.response.headers)

    def test_bad_requests_are_refused_in_openais_shape_and_name_the_parameter(self):
        self.gateway()
        for path, good, cases in (("/v1/completions", GOOD_COMPLETION, BAD_COMPLETIONS),
                                  ("/v1/chat/completions", GOOD_CHAT, BAD_CHATS)):
            for change, status, param, word in cases:
                with self.subTest(path, change=str(change)[:100]):
                    asked = {name: value for name, value in {**good, **change}.items() if value is not MISSING}
                    error = self.refusal(path, json.dumps(asked).encode(), status)
                    self.assertEqual((error["type"], error["param"]), ("invalid_request_error", param))
                    self.assertIn(word, error["message"])
        self.assertGreaterEqual(len(BAD_COMPLETIONS) + len(BAD_CHATS), 40)
        for body in (b"{", b"", b"\xff", b"[]"):
            with self.subTest(body):
                self.assertIn("body", self.refusal("/v1/completions", body, 400)["message"])
        self.assertIn("larger than", self.refusal("/v1/completions", b" " * (9 << 20), 413)["message"])
        self.assertIn("/v1/unknown", self.refusal("/v1/unknown", b"", 404)["message"])
        self.assertIn("POST", self.refusal("/v1/models", b"", 405)["message"])

    def test_a_refusal_arrives_though_the_body_is_still_on_its_way(self):
        self.gateway()
        host, port = self.url.removeprefix("http://").split(":")
        for path, status, first, rest in (("/v1/completions", 413, 9 << 20, 4 << 20),
                                          ("/v1/unknown", 404, 1, 4 << 20),
                                          ("/v1/models", 405, 0, 4 << 20)):
            with self.subTest(path), socket.create_connection((host, int(port)), timeout=60) as connection:
                connection.sendall(f"POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
                                   f"Content-Length: {first + rest}\r\n\r\n".encode() + b" " * first)
                reader = connection.makefile("rb")
                self.assertIn(str(status), reader.readline().decode())
                connection.sendall(b" " * rest)
                self.assertIn(b"invalid_request_error", reader.read())  # to a regular end

    def refusal(self, path, body, status):
        with self.assertRaises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(urllib.request.Request(self.url + path, body))
        self.assertEqual(refusal.exception.code, status)
        error = json.load(refusal.exception)["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        return error


if __name__ == "__main__":
    unittest.main()
