# SPDX-License-Identifier: Apache-2.0
"""The parameters that a model's generation_config.json gives to requests which leave them out."""
import contextlib
import io
import json
import logging
import pathlib
import shutil
import tempfile
import unittest
from unittest import mock

from stand_ins import MODEL, Reader, Stub, gateway, http_request, word

from outrider_gateway import app, generation_config, main
from outrider_gateway.generation_config import SamplingDefaults

FILE = {"temperature": 0.6, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "repetition_penalty": 1.05}


class GenerationConfigTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def load(self, written):
        (self.folder / "generation_config.json").write_text(
            written if isinstance(written, str) else json.dumps(written))
        return generation_config.load(self.folder)

    async def sent(self, defaults, **asked):
        """What a coordinator is asked."""
        stub = Stub(word())
        application = app.create_app(gateway(stub, sampling=defaults), with_metrics=False)
        status, _, _ = await Reader(application, http_request({"model": "m", "prompt": "p", **asked})).ask()
        self.assertEqual(status, 200)
        return stub.requests[0]

    def of(self, request):
        return {name: round(getattr(request, name), 6) for name in FILE if request.HasField(name)}

    async def test_what_a_request_leaves_out_is_the_models(self):
        defaults = self.load(FILE | {"do_sample": False, "eos_token_id": [1, 2], "max_new_tokens": 5})
        sent = await self.sent(defaults)
        self.assertEqual(self.of(sent), FILE)
        self.assertEqual(sent.max_tokens, 16)
        self.assertEqual(self.of(await self.sent(defaults, temperature=None)), FILE)

    async def test_what_a_request_says_is_its_own(self):
        asked = {"temperature": 0, "top_p": 1, "top_k": 0, "min_p": 0, "repetition_penalty": 1}
        self.assertEqual(self.of(await self.sent(self.load(FILE), **asked)), asked)

    async def test_no_other_parameter_is_made_up(self):
        for written in {}, {"temperature": None}, {"top_k": -1}:
            self.assertEqual(set(self.of(await self.sent(self.load(written)))), {"top_k"} & set(written))
        self.assertEqual(self.of(await self.sent(SamplingDefaults())), {})

    def test_a_directory_without_the_file_has_no_defaults(self):
        self.assertEqual(generation_config.load(self.folder), SamplingDefaults())

    def test_a_value_that_cannot_be_is_named(self):
        for written, words in (({"temperature": 3}, "temperature: Input should be less than or equal to 2"),
                               ({"temperature": "hot"}, "temperature: Input should be a valid number"),
                               ({"top_p": 0}, "top_p"), ({"top_k": 1.5}, "top_k"), ({"min_p": True}, "min_p"),
                               ({"repetition_penalty": 0}, "repetition_penalty"), ("[]", "object"), ("{", "JSON")):
            with self.subTest(written), self.assertRaises(ValueError) as error:
                self.load(written)
            self.assertIn(words, str(error.exception))
            self.assertIn("--no-generation-config", str(error.exception))

    def start(self, *flags):
        """(status, what is said and logged) of a check of these flags."""
        said = io.StringIO()
        argv = ["outrider-gateway", "--coordinator", "127.0.0.1:1", "--model", str(self.folder), "--check-config"]
        with mock.patch("sys.argv", [*argv, *flags]), mock.patch.object(main.log, "set_up"), \
                contextlib.redirect_stderr(said), self.assertLogs(level=logging.INFO) as logs:
            logging.info("there is one line at least")
            return main.main(), said.getvalue() + "\n".join(logs.output)

    def test_the_log_says_at_the_start_what_was_taken_and_a_flag_leaves_it(self):
        shutil.copy(MODEL / "tokenizer.json", self.folder)
        self.load({"temperature": 0.6, "top_k": 20})
        words = "temperature=0.6 top_k=20, by generation_config.json"
        for flags, is_taken in ((), True), (("--no-generation-config",), False):
            status, said = self.start(*flags)
            self.assertEqual((status, words in said), (0, is_taken), said)

    def test_a_file_that_cannot_be_keeps_the_gateway_from_starting_unless_it_is_left_alone(self):
        shutil.copy(MODEL / "tokenizer.json", self.folder)
        (self.folder / "generation_config.json").write_text('{"top_p": 2}')
        status, said = self.start()
        self.assertEqual(status, 2)
        self.assertIn("generation_config.json: top_p: Input should be less than or equal to 1", said)
        self.assertEqual(self.start("--no-generation-config")[0], 0)


if __name__ == "__main__":
    unittest.main()
