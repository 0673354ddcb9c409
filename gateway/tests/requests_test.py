# SPDX-License-Identifier: Apache-2.0
"""What requests may ask, what becomes of it, and how refusals name what is wrong."""
import json
import random
import unittest

import grpc
import pydantic
from openai.types.chat import ChatCompletionMessage
from stand_ins import HERE, rpc_error

from outrider_gateway import chat_template, requests, structure, tool_calls, translate
from outrider_gateway.errors import ApiError
from outrider_gateway.rpc_errors import from_rpc

COMPLETION = {"model": "m", "prompt": "p"}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": ""}}


class RequestTest(unittest.TestCase):
    def test_every_parameter_reaches_the_coordinator(self):
        asked = requests.parse(requests.CompletionRequest, json.dumps({
            "model": "m", "prompt": [1, 2], "max_tokens": 7, "temperature": 0.5, "top_p": 0.9, "top_k": 5,
            "min_p": 0.1, "repetition_penalty": 1.1, "presence_penalty": 0.2, "frequency_penalty": 0.3,
            "logit_bias": {"3": -2}, "stop": "x", "stop_token_ids": [4, 9], "ignore_eos": True, "logprobs": 2,
            "outrider": {"num_speculative_tokens": 3, "acceptance_rule": "coupled", "prompt_lookup": True,
                         "min_draft_probability": 0.25}}).encode())
        sent = translate.to_generate_request(asked, asked.prompts()[0])
        self.assertEqual(list(sent.tokens.ids), [1, 2])
        self.assertEqual((sent.max_tokens, sent.top_k), (7, 5))
        self.assertEqual((sent.temperature, sent.top_p, sent.min_p), (0.5, 0.9, 0.1))
        self.assertEqual((sent.repetition_penalty, sent.presence_penalty, sent.frequency_penalty), (1.1, 0.2, 0.3))
        self.assertEqual([(b.id, b.bias) for b in sent.logit_bias], [(3, -2)])
        self.assertEqual((list(sent.stop_strings), sent.ignore_eos, sent.logprobs), (["x"], True, 2))
        self.assertEqual(list(sent.stop_token_ids), [4, 9])
        self.assertEqual((sent.num_speculative_tokens, sent.acceptance_rule, sent.prompt_lookup), (3, 3, True))
        self.assertEqual(sent.draft_options.min_draft_probability, 0.25)

    def refusal(self, kind, **asked):
        with self.assertRaises(ApiError) as refusal:
            requests.parse(kind, json.dumps(asked).encode())
        self.assertEqual(refusal.exception.status, 400)
        return refusal.exception

    def test_numbers_that_no_message_can_hold_are_refused_by_name(self):
        for change in ({"top_k": 1 << 31}, {"max_tokens": 1 << 32}, {"logit_bias": {"9" * 5000: 1}},
                       {"outrider": {"num_speculative_tokens": 1 << 32}}):
            with self.subTest(change=str(change)[:60]):
                refusal = self.refusal(requests.CompletionRequest, model="m", prompt="p", **change)
                self.assertEqual(refusal.param, *change)

    def test_a_request_has_no_more_choices_than_prompts_may_be(self):
        prompts = ["p"] * 32
        self.assertEqual(len(requests.parse(requests.CompletionRequest, json.dumps(
            {"model": "m", "prompt": prompts, "n": 2}).encode()).prompts()), 32)
        refusal = self.refusal(requests.CompletionRequest, model="m", prompt=prompts, n=3)
        self.assertEqual(refusal.param, "n")
        self.assertIn("96", refusal.message)

    def test_a_long_list_of_mistakes_is_not_looked_at_to_its_end(self):
        for prompt in ([-1] * 1000, ["p", *[5] * 1000], [[-1] * 1000] * 64):
            with self.subTest(str(prompt)[:20]), \
                    self.assertRaises(pydantic.ValidationError) as mistakes:
                requests.CompletionRequest.model_validate({"model": "m", "prompt": prompt})
            self.assertLess(mistakes.exception.error_count(), 10)
        many = {f"a{i}": 1 for i in range(2000)}
        refusal = self.refusal(requests.CompletionRequest, model="m", prompt="p", **many)
        self.assertIn("2000 mistakes", refusal.message)

    def test_a_parameter_that_is_null_is_one_that_is_left_out(self):
        asked = requests.parse(requests.CompletionRequest, json.dumps({
            "model": "m", "prompt": "p", "n": None, "stream": None, "echo": None, "suffix": None, "max_tokens": None,
            "outrider": None, "stop_token_ids": None, "response_format": None, "top_logprobs": None,
            "prompt_logprobs": None, "whatever": None}).encode())
        self.assertEqual((asked.n, asked.stream, asked.echo, asked.max_tokens), (1, False, False, 16))
        self.assertEqual(self.refusal(requests.CompletionRequest, model="m", prompt=None).param, "prompt")

    def test_what_one_endpoint_alone_has_is_refused_at_the_other_with_its_reason(self):
        for name, value, word in (("response_format", {"type": "json_object"}, "constrained"),
                                  ("top_logprobs", 2, "chats"), ("prompt_logprobs", 1, "prompts")):
            refusal = self.refusal(requests.CompletionRequest, **COMPLETION, **{name: value})
            self.assertEqual(refusal.param, name)
            self.assertIn(word, refusal.message)

    def test_a_variable_with_a_parameter_of_its_own_is_refused(self):
        messages = [{"role": "user", "content": "x"}]
        for name in ("messages", "add_generation_prompt"):
            refusal = self.refusal(requests.ChatRequest, model="m", messages=messages, chat_template_kwargs={name: 1})
            self.assertEqual(refusal.param, "chat_template_kwargs")
            self.assertIn(name, refusal.message)

    def test_choices_have_seeds_of_their_own(self):
        asked = requests.parse(requests.CompletionRequest, b'{"model":"m","prompt":"p","n":3,"seed":5}')
        self.assertEqual(translate.seeds(asked, 3), [5, 6, 7])

    def test_no_seed_is_named_for_a_caller_who_names_none(self):
        asked = requests.parse(requests.CompletionRequest, b'{"model":"m","prompt":"p","n":2}')
        self.assertEqual(translate.seeds(asked, 2), [None, None])
        self.assertFalse(translate.to_generate_request(asked, "p").HasField("seed"))

    def test_k_may_be_left_to_control(self):
        asked = requests.parse(requests.CompletionRequest, json.dumps(
            {"model": "m", "prompt": "p", "outrider": {"num_speculative_tokens": "auto"}}).encode())
        sent = translate.to_generate_request(asked, "p")
        self.assertTrue(sent.auto_num_speculative_tokens)
        self.assertFalse(sent.HasField("num_speculative_tokens"))


    def parsed(self, **changes):
        """Both kinds of requests with these changes."""
        return [requests.parse(kind, json.dumps({**good, **changes}).encode())
                for kind, good in ((requests.CompletionRequest, COMPLETION), (requests.ChatRequest, CHAT))]

    def test_values_that_ask_for_what_happens_anyway_are_taken(self):
        for name, value in (("store", False), ("tool_choice", "none"), ("modalities", ["text"]),
                            ("response_format", {"type": "text"}),
                            ("skip_special_tokens", True), ("spaces_between_special_tokens", True),
                            ("min_tokens", 0), ("service_tier", "auto"), ("service_tier", "default"),
                            ("include_stop_str_in_output", False), ("use_beam_search", False),
                            ("tools", []), ("functions", []), ("function_call", "none"),
                            ("parallel_tool_calls", False), ("suffix", ""), ("echo", False), ("priority", 0),
                            ("length_penalty", 1), ("length_penalty", 1.0), ("early_stopping", False),
                            ("prompt_cache_key", "k"), ("safety_identifier", "s"), ("metadata", {"a": "b"})):
            with self.subTest(name, value=value):
                self.parsed(**{name: value})

    def test_a_chat_may_say_that_it_wants_no_log_probabilities(self):
        for says in ({"logprobs": False}, {"top_logprobs": 0}, {"logprobs": False, "top_logprobs": 0}):
            asked = requests.parse(requests.ChatRequest, json.dumps({**CHAT, **says}).encode())
            self.assertIsNone(asked.num_logprobs(), says)
        refusal = self.refusal(requests.ChatRequest, **CHAT, logprobs=False, top_logprobs=1)
        self.assertEqual(refusal.param, "top_logprobs")

    def test_a_completion_may_say_that_it_wants_no_log_probabilities(self):
        for says, num in (False, None), (None, None), (0, 0), (2, 2):
            asked = requests.parse(requests.CompletionRequest, json.dumps({**COMPLETION, "logprobs": says}).encode())
            self.assertEqual((says, asked.num_logprobs()), (says, num))
        asked = {**COMPLETION, "echo": True, "logprobs": False}
        requests.parse(requests.CompletionRequest, json.dumps(asked).encode())

    def test_a_seed_of_minus_one_is_none_as_in_vllm(self):
        for seed, named in (-1, None), (-2, (1 << 64) - 2), (0, 0):
            for asked in self.parsed(seed=seed):
                self.assertEqual(translate.seeds(asked, 1), [named])

    def test_other_values_of_the_same_parameters_are_refused_by_name(self):
        for name, value, word in (
                ("store", True, "stored"), ("store", 0, "stored"), ("tool_choice", "auto", "function"),
                ("modalities", ["audio"], "text"), ("skip_special_tokens", False, "special"),
                ("min_tokens", 1, "least"), ("min_tokens", False, "least"), ("service_tier", "flex", "tier"),
                ("include_stop_str_in_output", True, "stop string"), ("metadata", {"a": 1}, "string"),
                ("tools", [{}], "function"), ("functions", [{}], "function"), ("function_call", "auto", "function"),
                ("parallel_tool_calls", True, "function"), ("suffix", "x", "middle"), ("echo", True, "completions"),
                ("priority", 1, "equal"), ("priority", False, "equal"),
                ("length_penalty", 1.5, "beam"), ("length_penalty", True, "beam"), ("early_stopping", True, "beam"),
                ("prompt_cache_key", 5, "string")):
            with self.subTest(name, value=value):
                refusal = self.refusal(requests.ChatRequest, **CHAT, **{name: value})
                self.assertEqual(refusal.param, name)
                self.assertIn(word, refusal.message)

    def test_null_inside_of_an_option_is_one_that_is_left_out(self):
        for asked in self.parsed(stream=True, stream_options={"include_usage": True, "continuous_usage_stats": None},
                                 outrider={"rounds": None}):
            self.assertTrue(asked.extras().usage)

    def messages(self, *messages):
        asked = requests.parse(requests.ChatRequest, json.dumps({**CHAT, "messages": messages}).encode())
        return asked.take_chat()[0]

    def test_what_a_message_has_besides_is_passed_on_and_not_copied(self):
        asked = requests.parse(requests.ChatRequest, json.dumps(
            {**CHAT, "messages": [{"role": "user", "content": "x", "calls": [[1]]}]}).encode())
        calls = asked.messages[0].model_extra["calls"]
        messages, _ = asked.take_chat()
        self.assertEqual(messages, [{"role": "user", "content": "x", "calls": [[1]]}])
        self.assertIs(messages[0]["calls"], calls)

    def test_an_answer_that_is_sent_back_with_all_its_keys_is_the_same_as_with_those_that_have_a_value(self):
        answer = {"role": "assistant", "content": "A list."}
        self.assertIn("tool_calls", ChatCompletionMessage(**answer).model_dump())
        template = chat_template.ChatTemplate((HERE / "chat_templates/llama3_1.jinja").read_text())
        for written in (ChatCompletionMessage(**answer).model_dump(), {**answer, "tool_calls": []},
                        {**answer, "tool_calls": None, "name": None}):
            sent = self.messages(*CHAT["messages"], written, *CHAT["messages"])
            self.assertEqual(sent[1], answer)
            self.assertIn("A list.<|eot_id|>", template.render(sent))
        with self.assertRaisesRegex(ApiError, "single tool-calls"):
            template.render(self.messages({**answer, "tool_calls": [{}, {}]}))

    def called(self, arguments):
        return {"role": "assistant", "content": "", "tool_calls": [
            CALL, {**CALL, "function": {"name": "g", "arguments": arguments}}]}

    def test_a_calls_arguments_are_an_object_to_the_template_and_a_text_in_the_request(self):
        for text, arguments in (('{"a": [1, {"b": "x"}]}', {"a": [1, {"b": "x"}]}), ("", {}), (None, {}), ("{}", {}),
                                ({"a": 1}, {"a": 1})):
            asked = requests.parse(requests.ChatRequest, json.dumps(
                {**CHAT, "messages": [self.called(text)]}).encode())
            calls = asked.messages[0].calls()
            messages = tool_calls.with_objects(asked.take_chat()[0])
            self.assertEqual(messages, [{**self.called(arguments), "tool_calls": [
                {**CALL, "function": {"name": "f", "arguments": {}}},
                {**CALL, "function": {"name": "g", "arguments": arguments}}]}])
            self.assertEqual(calls, self.called(text)["tool_calls"])

    def test_arguments_that_are_no_object_are_refused_by_name(self):
        for arguments in ("{", "[1]", "1", '"x"', "null", " ", "{\"a\": NaN}", "[" * 5000, "9" * 5000, [1], 7, False):
            with self.subTest(arguments=str(arguments)[:20]), self.assertRaises(ApiError) as refusal:
                tool_calls.with_objects(self.messages(*CHAT["messages"], self.called(arguments)))
            self.assertEqual((refusal.exception.status, refusal.exception.param), (400, "messages"))
            self.assertIn("messages.1.tool_calls.1.function.arguments: ", refusal.exception.message)

    def test_a_call_that_is_none_of_openais_is_the_templates(self):
        for calls in ("x", {"a": 1}, [1, None, {"function": "f"}, {}]):
            message = {"role": "assistant", "content": "", "tool_calls": calls}
            self.assertEqual(tool_calls.with_objects(self.messages(message)), [message])

    def test_what_arguments_are_made_of_is_told_before_they_are_taken_apart(self):
        def folded(*arguments):
            return requests.parse(requests.ChatRequest, json.dumps(
                {**CHAT, "messages": [self.called(one) for one in arguments]}).encode()).folded_bytes()
        self.assertEqual(folded(""), 0)
        self.assertGreaterEqual(folded(json.dumps({"a": [[]] * 1000})), structure.PIECE_BYTES * 2000)
        with self.assertRaisesRegex(ApiError, "lists, objects and values"):
            folded(*[json.dumps({"a": [[]] * 10_000})] * 4)

    def test_a_chat_whose_prompt_waits_is_not_kept_beside_it(self):
        asked = requests.parse(requests.ChatRequest, json.dumps({**CHAT, "chat_template_kwargs": {"a": 1}}).encode())
        self.assertEqual(asked.take_chat(), (CHAT["messages"], {"a": 1}))
        self.assertEqual(asked.take_chat(), ([], {}))

    def test_an_assistant_without_content_has_said_nothing(self):
        call = {"role": "assistant", "tool_calls": [{"id": "1"}]}
        for message in (call, {**call, "content": None}):
            self.assertEqual(self.messages(message), [{**call, "content": ""}])

    def test_others_without_content_are_refused_by_name(self):
        for message in ({"role": "user"}, {"role": "system", "content": None}, {"role": "tool", "content": None}):
            with self.subTest(message):
                refusal = self.refusal(requests.ChatRequest, model="m", messages=[*CHAT["messages"], message])
                self.assertEqual(refusal.param, "messages")
                self.assertIn("messages.1", refusal.message)
                self.assertIn("content", refusal.message)
                self.assertIn(message["role"], refusal.message)

    def test_parts_of_a_text_are_lines(self):
        parts = [{"type": "text", "text": text} for text in ("a", "b", "")]
        self.assertEqual(self.messages({"role": "user", "content": parts})[0]["content"], "a\nb\n")

    def test_what_is_not_served_is_named_and_not_how_it_was_found(self):
        image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
        odd = [{"role": "user", "content": [{"type": "text", "text": "x", "str": 1}]}]
        for changes, param, words in (
                ({"response_format": {"type": "json_object"}}, "response_format", ["json_object", "constrained"]),
                ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format", ["json_schema"]),
                ({"messages": image}, "messages", ["messages.0.content.0", "image_url", "only text"]),
                ({"messages": odd}, "messages.0.content.0.str", ["no such parameter"]),
                ({"stop": 5}, "stop", ["stop: "]),
                ({"str": 5}, "str", ["no such parameter"]),
                ({"outrider": {"num_speculative_tokens": -1}}, "outrider", ["outrider.num_speculative_tokens: "])):
            with self.subTest(changes):
                refusal = self.refusal(requests.ChatRequest, **{**CHAT, **changes})
                self.assertEqual(refusal.param, param)
                for word in words:
                    self.assertIn(word, refusal.message)
                for internal in ("list[", "TextPart", "fail-fast", "stop.str", "literal", "constrained-int"):
                    self.assertNotIn(internal, refusal.message + refusal.param)

    def test_lists_that_no_model_has_a_context_for_are_refused(self):
        many = [{"role": "user", "content": "x"}] * 4097
        parts = [{"role": "user", "content": [{"type": "text", "text": "x"}] * 4097}]
        for changes, param in (({"messages": many}, "messages"), ({"messages": parts}, "messages"),
                               ({"logit_bias": {str(i): 1 for i in range(1025)}}, "logit_bias")):
            refusal = self.refusal(requests.ChatRequest, **{**CHAT, **changes})
            self.assertEqual(refusal.param, param)
            self.assertIn("at most", refusal.message)

    def test_a_request_that_no_coordinator_would_receive_is_too_large(self):
        asked = requests.parse(requests.CompletionRequest, json.dumps(COMPLETION).encode())
        translate.to_generate_request(asked, [5] * ((1 << 20) * 7 // 4))
        for prompt in [5] * (2 << 20), "x" * (8 << 20):
            with self.assertRaises(ApiError) as refusal:
                translate.to_generate_request(asked, prompt)
            self.assertEqual((refusal.exception.status, refusal.exception.code), (413, "request_too_large"))


class StructureTest(unittest.TestCase):
    def pieces(self, kind, asked):
        return structure.num_pieces(json.dumps(asked).encode(), kind.COUNTED)

    def test_structure_in_place_of_text_is_refused(self):
        lists, objects, names = [[]] * 100_000, [{}] * 100_000, {f"a{i}": 1 for i in range(100_000)}
        message = {"role": "user", "content": "x"}
        for kind, changes in (
                *((requests.ChatRequest, {**CHAT, "messages": [{**message, "junk": junk}]})
                  for junk in (lists, objects, names, [1] * 100_000, ["x"] * 100_000)),
                (requests.ChatRequest, {**CHAT, "chat_template_kwargs": {"a": lists}}),
                *((requests.CompletionRequest, {**COMPLETION, "stop": junk}) for junk in (lists, objects, names)),
                (requests.CompletionRequest, {**COMPLETION, "prompt": ["p"] * 200_000})):
            with self.subTest(json.dumps(changes)[:80]), self.assertRaises(ApiError) as refusal:
                self.pieces(kind, changes)
            self.assertEqual((refusal.exception.status, refusal.exception.code), (400, "invalid_value"))

    def test_what_stands_in_a_text_is_no_structure(self):
        few = self.pieces(requests.ChatRequest, CHAT)
        for text in ("[1, {2: 3}, ", '"', "\\", '\\"[', "\n", "\u2028,"):
            chat = {**CHAT, "messages": [{"role": "user", "content": text * 200_000}]}
            self.assertEqual(self.pieces(requests.ChatRequest, chat), few, text)

    def test_long_chats_and_long_lists_of_token_ids_are_taken(self):
        call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
        messages = [{"role": "assistant", "content": [{"type": "text", "text": "x"}], "tool_calls": [call]}] * 4096
        self.assertLess(self.pieces(requests.ChatRequest, {**CHAT, "messages": messages}), structure.MOST_PIECES)
        self.assertLess(self.pieces(requests.CompletionRequest, {**COMPLETION, "prompt": [5] * 1_800_000}), 10)

    def test_a_list_that_is_longer_than_any_text_is_refused_before_it_is_taken_apart(self):
        longest = 100_000
        for prompt, is_refused in (([5] * 100_010, True), ([[5] * 9, [5] * 100_010], True), ([5] * longest, False),
                                   ([[5] * 60_000] * 30, False), ("1, " * longest, False),
                                   ("[\"1," * longest, False)):
            body = json.dumps({**COMPLETION, "prompt": prompt, "n": 1, "stop": ["a", "b"]}).encode()
            with self.subTest(str(prompt)[:20], length=len(prompt)):
                if not is_refused:
                    requests.parsed_bytes(requests.CompletionRequest, body, longest)
                    continue
                with self.assertRaises(ApiError) as refusal:
                    requests.parsed_bytes(requests.CompletionRequest, body, longest)
                self.assertEqual(refusal.exception.code, "context_length_exceeded")
                self.assertRegex(refusal.exception.message, "100000 tokens.*in at least 1000[01][0-9] tokens")
        ids = json.dumps({**COMPLETION, "prompt": [5] * 200_000, "stop_token_ids": [1] * 64}).encode()
        for unknown in None, 0:
            requests.parsed_bytes(requests.CompletionRequest, ids, unknown)
        # Short lists are taken apart in no time, whatever else they are.
        requests.parsed_bytes(requests.CompletionRequest, json.dumps({**COMPLETION, "stop": ["x"] * 999}).encode(), 9)

    def test_pieces_are_those_that_a_parser_finds(self):
        chance = random.Random(7)

        def value(depth=0):
            kind = chance.randrange(5 if depth < 5 else 2)
            if kind < 2:
                return "".join(chance.choices('a\\"[]{},:\n\u2028', k=chance.randrange(6)))
            if kind == 2:
                return {value(9): value(depth + 1) for _ in range(chance.randrange(5))}
            return [value(depth + 1) for _ in range(chance.randrange(5))]

        def count(of):
            if isinstance(of, str):
                return 0
            return 1 + max(0, len(of) - 1) + sum(map(count, of.values() if isinstance(of, dict) else of))
        for _ in range(500):
            made = value()
            self.assertEqual(structure.num_pieces(json.dumps(made, ensure_ascii=False).encode(), b"[{,"), count(made))


class RpcErrorsTest(unittest.TestCase):
    """Reasons are those of coordinators, from coordinator/nodes/refusal_reasons.h."""

    def refusal(self, code, details, **info):
        return from_rpc(rpc_error(grpc.StatusCode[code], details, **info))

    def too_long(self, **metadata):
        return self.refusal("INVALID_ARGUMENT", "no room", reason="CONTEXT_LENGTH_EXCEEDED", **metadata)

    def test_a_prompt_that_is_too_long_is_told_so_in_openais_words(self):
        for name, at_least in ("num_tokens", ""), ("least_num_tokens", "at least "):
            refusal = self.too_long(context_length="1024", **{name: "1500"})
            self.assertEqual((refusal.status, refusal.param), (400, "prompt"))
            self.assertEqual(refusal.code, "context_length_exceeded")
            self.assertTrue(refusal.message.startswith(
                "This model's maximum context length is 1024 tokens. However, your prompt resulted in "
                f"{at_least}1500 tokens. "), refusal.message)

    def test_a_reason_whose_numbers_are_not_there_is_told_in_the_coordinators_words(self):
        for metadata in {}, {"context_length": "1024"}, {"context_length": "x", "num_tokens": "1500"}:
            refusal = self.too_long(**metadata)
            self.assertEqual((refusal.status, refusal.message), (400, "no room"))

    def test_memory_that_is_taken_now_is_not_the_callers_mistake(self):
        refusal = self.refusal("FAILED_PRECONDITION", "send less, or try where they have more",
                               reason="OUT_OF_KV_MEMORY")
        self.assertEqual((refusal.status, refusal.retry_after), (503, 1.0))
        self.assertEqual(refusal.message, "send less, or try where they have more")

    def test_what_else_is_not_served_here_says_whose_it_is(self):
        for reason, metadata, status, param in (
                ("NOT_SERVED", {"field": "acceptance_rule"}, 400, "outrider"),
                ("MESSAGE_TOO_LARGE", {}, 400, "outrider"),
                ("COORDINATOR_FLAGS", {}, 500, None),
                ("MODEL_NOT_SERVED", {}, 409, None)):
            with self.subTest(reason):
                refusal = self.refusal("FAILED_PRECONDITION", "other words", reason=reason, **metadata)
                self.assertEqual((refusal.status, refusal.param), (status, param))
                self.assertEqual("other words" in refusal.message, reason == "NOT_SERVED")

    def test_words_alone_tell_nothing_apart(self):
        for words in ("the prompt has 1500 tokens; the model's context of 1024", "have memory for 512",
                      "this coordinator's --reply-format"):
            refusal = self.refusal("FAILED_PRECONDITION", words)
            self.assertEqual((refusal.status, refusal.message, refusal.code), (400, words, "invalid_value"))

    def test_no_reader_is_told_to_resume(self):
        refusal = self.refusal("RESOURCE_EXHAUSTED", "the verifier has no room for this session now; resume later "
                                                     "with the same request, the reported seed and model")
        self.assertEqual(refusal.status, 429)
        self.assertNotIn("resume", refusal.message)

    def test_a_request_that_a_coordinator_does_not_receive_is_too_large_and_not_one_too_many(self):
        refusal = self.refusal("RESOURCE_EXHAUSTED", "SERVER: Received message larger than max (9000000 vs. 8388608)")
        self.assertEqual((refusal.status, refusal.code), (413, "request_too_large"))
        self.assertNotIn("SERVER", refusal.message)

    def test_a_value_that_cannot_be_has_one_code_whoever_finds_it(self):
        found = self.refusal("INVALID_ARGUMENT", "no number in [0, 10]", reason="INVALID_VALUE", field="temperature")
        with self.assertRaises(ApiError) as own:
            requests.parse(requests.CompletionRequest, json.dumps({**COMPLETION, "temperature": 3}).encode())
        self.assertEqual((found.code, found.param), (own.exception.code, own.exception.param))

    def test_a_field_that_is_wrong_is_named_as_the_api_has_it(self):
        for field, param in (("prompt", "prompt"), ("stop_strings", "stop"), ("schedule", "outrider"),
                             ("logit_bias", "logit_bias"), ("delivered", None), ("", None)):
            refusal = self.refusal("INVALID_ARGUMENT", "wrong", reason="INVALID_VALUE", field=field)
            self.assertEqual((refusal.status, refusal.param), (400, param))

    def test_what_took_all_of_its_time_is_not_sent_again(self):
        refusal = self.refusal("DEADLINE_EXCEEDED", "Deadline Exceeded")
        self.assertEqual((refusal.status, refusal.response().headers["x-should-retry"]), (504, "false"))


if __name__ == "__main__":
    unittest.main()
