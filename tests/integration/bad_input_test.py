# SPDX-License-Identifier: Apache-2.0
"""Bad files, flags and requests: one clear line, the right exit status, and nobody else is hurt."""
import json
import pathlib
import re
import shutil
import socket
import struct
import unittest

from programs import BIN, DRAFT, ProgramTest, wait_until

FAILED, BAD_FLAGS = 1, 2


class BadModelTest(ProgramTest):
    """A node refuses a model directory that it cannot serve, and says which file is wrong.

    Both roles load it by the same code: that each calls it is seen once.
    """

    def assert_refused(self, *words, model=None, flags=(), roles=("drafter",)):
        for role in roles:
            with self.subTest(role=role):
                start = self.start_verifier if role == "verifier" else self.start_drafter
                program = start(*flags, model=model or self.model)
                self.assert_refuses(program, FAILED, *words)
                self.assertEqual(program.out(), "")

    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"
        shutil.copytree(DRAFT, self.model)

    def spoil(self, name, change):
        path = self.model / name
        path.write_bytes(change(path.read_bytes()))

    def spoil_header(self, change):
        """Changes the JSON of the checkpoint's header."""
        def rewritten(data):
            length, = struct.unpack("<Q", data[:8])
            header = json.loads(data[8:8 + length])
            change(header)
            text = json.dumps(header).encode()
            return struct.pack("<Q", len(text)) + text + data[8 + length:]
        self.spoil("model.safetensors", rewritten)

    def test_names_a_directory_that_is_not_there(self):
        missing = self.folder / "missing"
        self.assert_refused(str(missing), "no such directory", "config.json", model=missing,
                            roles=("verifier", "drafter"))

    def test_refuses_weights_that_are_not_those_expected_and_says_which_they_are(self):
        self.assert_refused(f"--model {self.model}: its weights are ", f"but --expect-weights {'5' * 64}",
                            flags=["--expect-weights", "5" * 64], roles=("verifier", "drafter"))

    def test_names_a_missing_file(self):
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            with self.subTest(name=name):
                (self.model / name).unlink()
                self.assert_refused(str(self.model), name)
                shutil.copy(DRAFT / name, self.model)

    def test_names_json_that_is_damaged(self):
        for name in ("config.json", "tokenizer.json"):
            for damage in (lambda data: data[:100], lambda data: b"hello", lambda data: b"",
                           lambda data: b"\xff\xfe" + data, lambda data: b"[" * 100_000):
                self.spoil(name, damage)
                self.assert_refused(f"{self.model / name}: ")
                shutil.copy(DRAFT / name, self.model)

    def test_names_a_setting_that_it_does_not_know(self):
        self.spoil("config.json", lambda data: data.replace(b'"llama"', b'"mamba"'))
        self.assert_refused("config.json", 'model_type "mamba"', "not supported")

    def test_refuses_a_checkpoint_that_was_cut_off(self):
        self.spoil("model.safetensors", lambda data: data[:1_000_000])
        self.assert_refused("model.safetensors", "cut off, copy it again")

    def test_refuses_a_header_longer_than_the_file(self):
        self.spoil("model.safetensors", lambda data: struct.pack("<Q", 2**63 - 1) + data[8:])
        self.assert_refused("model.safetensors", "header length 9223372036854775807")

    def test_refuses_tensors_that_overlap(self):
        def overlap(header):
            first, second = (n for n in header if n.endswith(("0.mlp.up_proj.weight", "0.mlp.gate_proj.weight")))
            header[second]["data_offsets"] = header[first]["data_offsets"]
        self.spoil_header(overlap)
        self.assert_refused("model.safetensors", "inside another one")

    def test_refuses_numbers_of_another_kind(self):
        def as_integers(header):
            for name, tensor in header.items():
                if name != "__metadata__":
                    tensor["dtype"] = "I16"
        self.spoil_header(as_integers)
        self.assert_refused("model.safetensors", "I16", "not supported")

    def test_refuses_shapes_other_than_those_of_config_json(self):
        self.spoil("config.json", lambda data: data.replace(b"256", b"128"))
        self.assert_refused("model.safetensors", "config.json asks for")

    def test_names_the_library_that_reads_weights_where_only_the_program_was_copied(self):
        alone = self.folder / "bin" / "outrider-drafter"
        alone.parent.mkdir()
        shutil.copy2(BIN / "outrider-drafter", alone)
        self.assert_refuses(self.start_node(alone, self.model, None), FAILED,
                            "liboutrider_torch_model.so", "beside the program's folder")
        # A timing model needs none.
        self.start(alone, "--simulate", "--simulate-pass-ms", 1, "--listen", "127.0.0.1:0").address()

    def test_refuses_a_device_that_is_not_there(self):
        self.assert_refused('"tpu"', "cpu, cuda", flags=["--device", "tpu"])
        if not list(pathlib.Path("/dev").glob("nvidia[0-9]*")):
            self.assert_refused("device cuda", flags=["--device", "cuda"])


class BadFlagsTest(ProgramTest):
    def test_flags_that_cannot_be_are_named_and_have_their_own_exit_status(self):
        node, generate = ("--model", DRAFT), ("generate", "x")
        for name, flags, words in (
                ("outrider-verifier", (), ["--model is required", "outrider-verifier --help"]),
                ("outrider-verifier", (*node, "--frobnicate"), ["--frobnicate"]),
                ("outrider-verifier", (*node, "--dtype", "int4"), ["--dtype", "int4", "bfloat16"]),
                ("outrider-verifier", (*node, "--kernels", "sse9", "--check-config"), ["--kernels", "sse9", "avx512"]),
                ("outrider-verifier", (*node, "--json"), ["--json requires --measure"]),
                ("outrider-coordinator", ("--threads", "0"), ["--threads", "between 1 and 256"]),
                ("outrider-coordinator", ("--threads", "many"), ["--threads", "many"]),
                ("outrider-drafter", (*node, "--max-draft-tokens", "-1"), ["--max-draft-tokens", "-1"]),
                ("outrider-drafter", (*node, "--max-draft-tokens", "1025"), ["--max-draft-tokens", "1024"]),
                ("outrider-drafter", (*node, "--strategy", "luck"), ["--strategy", "luck", "ngram"]),
                ("outrider-coordinator", (), ["--verifier is required"]),
                ("outrider-coordinator", ("--verifier", "127.0.0.1:1", "-k", "-1"), ["--num-speculative-tokens", "-1"]),
                ("outrider-coordinator", ("--verifier", "127.0.0.1:1", "-k", "9999"), ["--num-speculative-tokens", "9999"]),
                ("outrider", (), ["needs a command", "generate"]),
                ("outrider", ("frobnicate",), ["frobnicate", "generate"]),
                ("outrider", ("bench", "frobnicate"), ["frobnicate", "sweep", "outrider bench --help"]),
                ("outrider", (*generate, "--frobnicate"), ["--frobnicate", "outrider generate --help"]),
                ("outrider", (*generate, "-k", "-1"), ["--num-speculative-tokens", "-1"]),
                ("outrider", (*generate, "--temperature", "nan"), ["--temperature", "nan"]),
                ("outrider", (*generate, "--temperature", "-1"), ["--temperature", "between 0 and 10"]),
                ("outrider", (*generate, "--top-p", "0"), ["--top-p"]),
                ("outrider", (*generate, "--min-draft-probability", "1"), ["--min-draft-probability", "below 1"]),
                ("outrider", (*generate, "--repetition-penalty", "0"), ["--repetition-penalty", "0.01"]),
                ("outrider", (*generate, "--logit-bias", "7"), ["--logit-bias", "17=-2.5"]),
                ("outrider", (*generate, "--logprobs", "3"), ["--logprobs", "--json"]),
                ("outrider", (*generate, "--schedule", "2"), ["--schedule: needs one of ahead, auto, ", 'not "2"']),
                ("outrider", ("generate", "-x"), ["-x", "a prompt that begins with a dash stands after --"]),
                ("outrider", ("generate",), ["give one prompt"]),
                ("outrider", ("generate", "--prompt-file", "/no/such/file"), ["--prompt-file", "/no/such/file"]),
                ("outrider", ("generate", "--prompt-file", "/"), ["--prompt-file", "cannot read"]),
                ("outrider", ("generate", "--prompt-tokens", "1 two"), ["--prompt-tokens", "two"])):
            with self.subTest(name=name, flags=flags):
                self.assert_refuses(self.start(name, *flags), BAD_FLAGS, *words)

    def test_addresses_that_cannot_be_are_named(self):
        for listen, words in (("127.0.0.1:70000", ["HOST:PORT", "70000"]), ("127.0.0.1", ["HOST:PORT"]),
                              (":7001", ["HOST:PORT"]), ("localhost:http", ["HOST:PORT"]),
                              ("0.0.0.0:7001", ["not on loopback", "--insecure"])):
            with self.subTest(listen=listen):
                self.assert_refuses(self.start_drafter("--strategy", "ngram", listen=listen),
                                    BAD_FLAGS, "--listen", *words)
                for flag in ("--verifier", "--drafter"):
                    flags = {"--verifier": "127.0.0.1:1", flag: listen}
                    coordinator = self.start("outrider-coordinator", *(w for f in flags.items() for w in f))
                    self.assert_refuses(coordinator, BAD_FLAGS, flag, *words)

    def test_a_port_in_use_is_an_error_whoever_uses_it(self):
        with socket.create_server(("127.0.0.1", 0)) as plain:
            node = self.start_drafter("--strategy", "ngram")
            for address in (f"127.0.0.1:{plain.getsockname()[1]}", node.address()):
                late = self.start_drafter("--strategy", "ngram", listen=address)
                self.assert_refuses(late, FAILED, "cannot listen on", address, "port 0")
                coordinator = self.start("outrider-coordinator", "--verifier", address, "--listen", address)
                self.assert_refuses(coordinator, FAILED, "cannot listen on", address)
            self.assertEqual(node.end(), 0)


class BadRequestTest(ProgramTest):
    """One bad request after the other, to one coordinator that goes on serving."""

    def test_requests_that_cannot_be_are_refused_and_hurt_nothing(self):
        coordinator = self.start_coordinator(self.start_verifier().address(), self.start_drafter().address())
        address = coordinator.address()
        self.wait_for_nodes(address, "verifier", "drafter")
        long_prompt = self.folder / "long"
        long_prompt.write_text("x = 1\n" * 2000)
        for flags, words in (
                (("x", "-k", "17"), ["num_speculative_tokens", "16", "17"]),
                (("--prompt-tokens", "4096"), ["token id 4096", "4096)"]),
                (("--prompt-tokens", "5", "--seed", "1", "--resume-tokens", "6", "--resume-model", "a:b:c"),
                 ["FAILED_PRECONDITION", "no verifier here has the model", "not a"]),
                (("--prompt-file", long_prompt), ["context of 1024", "prompt"]),
                (("x", "--draft-support-size", "4000"), ["draft_options.support_size", "1024"]),
                (("x", "--logit-bias", "4096=1"), ["logit_bias", "4096)"]),
                (("x", "--logit-bias", "5=1", "--logit-bias", "5=2"), ["token 5 twice"]),
                (("x", *["--stop=."] * 17), ["stop strings", "17"])):
            with self.subTest(flags=flags):
                code = [] if words[0].isupper() else ["INVALID_ARGUMENT"]
                self.assert_refuses(self.generate(address, *flags), FAILED, *code, *words)
        # The tokenizer begins a text with a token of its own.
        for prompt in ("x", ""):
            self.assertEqual(self.generate(address, "--max-tokens", "8", prompt).wait(), 0)

    def test_bytes_that_are_no_text_are_refused_by_the_client(self):
        prompt = self.folder / "bytes"
        prompt.write_bytes(b"ab\xff\x00\xc3(")
        self.assert_refuses(self.start("outrider", "generate", "--prompt-file", prompt),
                            BAD_FLAGS, "the prompt is not UTF-8", "byte 2")
        self.assert_refuses(self.start("outrider", "generate", "x", "--stop", b"\xc3("),
                            BAD_FLAGS, "--stop is not UTF-8")

    def test_a_coordinator_that_is_not_there_is_named(self):
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))  # taken, and nobody listens
            address = f"127.0.0.1:{reserved.getsockname()[1]}"
            for command in (("generate", "x"), ("describe",)):
                program = self.start("outrider", *command, "--coordinator", address)
                self.assert_refuses(program, FAILED, address, "outrider-coordinator")

    def test_what_listens_there_may_be_no_coordinator(self):
        address = self.start_drafter("--strategy", "ngram").address()
        self.assert_refuses(self.generate(address, "x"), FAILED, address, "no coordinator")


class BadBenchTest(ProgramTest):
    """`outrider bench`, which refuses before anything is measured."""

    def setUp(self):
        super().setUp()
        self.out = self.folder / "results"

    def bench(self, *arguments, command="run"):
        return self.start("outrider", "bench", command, "--out", self.out, *arguments)

    def start_simulated(self, *flags):
        """A coordinator's address, with two simulated nodes."""
        node = ("--simulate", "--listen", "127.0.0.1:0", *flags)
        verifier = self.start("outrider-verifier", *node)
        drafter = self.start("outrider-drafter", *node)
        address = self.start("outrider-coordinator", "--listen", "127.0.0.1:0", "--verifier",
                             verifier.address(), "--drafter", drafter.address()).address()
        self.wait_for_nodes(address, "verifier", "drafter")
        return address

    def write_prompts(self, text=None):
        path = self.folder / "prompts.jsonl"
        path.write_text(text or "".join(f'{{"prompt": [{i}, 1]}}\n' for i in range(20)))
        return path

    def test_values_that_cannot_be_are_named(self):
        for command, flags, words in (
                ("run", ("-k", "four"), ["--k", '"four"']),
                ("run", ("-k", "-1"), ["--k", '"-1"', "0 to 1024"]),
                ("sweep", ("--k", "0,2.5"), ["--k", "whole numbers", "2.5"]),
                ("sweep", ("--k", "3,,4"), ["--k", "or auto", 'not ""']),
                ("sweep", ("--k", "1,1"), ["--k", "twice"]),
                ("run", ("--rtt=-5",), ["--rtt", '"-5"', "0 to 10000"]),
                ("sweep", ("--rtt", "0,-5"), ["--rtt", '"-5"']),
                ("run", ("--coordinator", "nowhere"), ["HOST:PORT", "nowhere"])):
            with self.subTest(flags=flags):
                self.assert_refuses(self.bench(*flags, command=command), BAD_FLAGS, *words)
                self.assertFalse(self.out.exists())

    def test_an_address_that_does_not_answer_is_named(self):
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))  # taken, and nobody listens
            address = f"127.0.0.1:{reserved.getsockname()[1]}"
            self.assert_refuses(self.bench("--coordinator", address), FAILED, address, "no coordinator")
        self.assertFalse(self.out.exists())

    def test_more_draft_tokens_than_the_nodes_take_are_refused(self):
        address = self.start_simulated("--max-draft-tokens", "4")
        self.assert_refuses(self.bench("--coordinator", address, "-k", "5", "--prompts", self.write_prompts()),
                            BAD_FLAGS, "--k 5", "takes: 4", "--max-draft-tokens")
        self.assertFalse(self.out.exists())

    def test_prompts_that_are_no_jsonl_are_refused_by_line(self):
        for text, words in (("def f():\n", ["line 1", "JSONL"]), ('{"prompt": "a"}\n["b"]\n', ["line 2", "JSONL"]),
                            ('{"text": "a"}\n', ["line 1", '"prompt"']), ("\n", ["has no prompt"])):
            with self.subTest(text=text):
                path = self.write_prompts(text)
                self.assert_refuses(self.bench("--prompts", path), BAD_FLAGS, "--prompts", str(path), *words)
        missing = self.folder / "missing"
        self.assert_refuses(self.bench("--prompts", missing), BAD_FLAGS, "--prompts", str(missing))

    def test_a_folder_that_cannot_be_written_is_named(self):
        # Modes do not stop root; a file in the place of a folder does.
        self.out = self.write_prompts() / "results"
        self.assert_refuses(self.bench("--simulate", "--simulate-verify-ms", "1"), BAD_FLAGS,
                            "--out", str(self.out), "Not a directory")

    def test_results_of_another_configuration_are_not_resumed(self):
        flags = ("--coordinator", self.start_simulated(), "--prompts", self.write_prompts(),
                 "-k", "2", "--seconds", "0.05")
        self.assertEqual(self.bench(*flags).wait(), 0)
        before = (self.out / "results.jsonl").read_bytes()
        self.assert_refuses(self.bench(*flags), BAD_FLAGS, "--out", str(self.out), "--resume")
        for other in (("--seed", "7"), ("--repeat", "2")):
            self.assert_refuses(self.bench(*flags, "--resume", *other), BAD_FLAGS,
                                "--resume", "line 1", "another configuration")
        self.assertEqual((self.out / "results.jsonl").read_bytes(), before)


class MismatchTest(ProgramTest):
    """Models that do not fit together."""

    def setUp(self):
        super().setUp()
        self.other = self.folder / "other-family"
        shutil.copytree(DRAFT, self.other)
        path = self.other / "tokenizer.json"
        tokenizer = json.loads(path.read_text("utf-8"))
        vocabulary = tokenizer["model"]["vocab"]
        last, first = sorted(vocabulary, key=vocabulary.get)[-1:-3:-1]
        vocabulary[last], vocabulary[first] = vocabulary[first], vocabulary[last]
        path.write_text(json.dumps(tokenizer), "utf-8")
        self.verifier = self.start_verifier().address()

    def test_a_drafter_with_another_tokenizer_is_refused_and_decoding_is_plain(self):
        drafter = self.start_drafter(model=self.other).address()
        coordinator = self.start_coordinator(self.verifier, drafter)
        table = self.wait_for_nodes(coordinator.address(), "verifier", "refused drafter:")
        self.assertIn("the drafter's tokenizer (other-family", table)
        self.assertIn("the drafter's tokenizer (other-family", coordinator.err())
        program = self.generate(coordinator.address(), "--max-tokens", "8", "-k", "4", "x")
        self.assertEqual(program.wait(), 0, program.err())
        self.assertIn("nothing drafted", program.err())

    def test_a_drafter_in_a_verifiers_place_is_named_and_the_other_way_round(self):
        drafter = self.start_drafter().address()
        swapped = self.start_coordinator(drafter, self.verifier)
        wait_until("it says what is wrong", lambda: "are --verifier and --drafter mixed up?" in swapped.err())
        self.assert_refuses(self.start_coordinator(drafter, drafter, "--require-drafter"),
                            FAILED, "--require-drafter", "another service")
        self.assert_refuses(self.start_coordinator(self.verifier, self.verifier, "--require-drafter"),
                            FAILED, "--require-drafter", "another service")

    def test_the_weights_that_the_example_of_a_release_names_are_those_of_the_demo_pair(self):
        example = pathlib.Path(DRAFT).parents[1] / "deploy/examples/fetched-models/kustomization.yaml"
        pinned = dict(re.findall(r" - (TARGET|DRAFT)_WEIGHTS=(\w+)", example.read_text("utf-8")))
        self.start_verifier("--expect-weights", pinned["TARGET"]).address()
        self.start_drafter("--expect-weights", pinned["DRAFT"]).address()

    def test_with_require_drafter_the_coordinator_ends_instead(self):
        drafter = self.start_drafter(model=self.other).address()
        coordinator = self.start_coordinator(self.verifier, drafter, "--require-drafter")
        self.assert_refuses(coordinator, FAILED, "--require-drafter", "tokenizer", "same family")

    def test_a_tokenizer_other_than_the_verifiers_is_told_by_log_and_describe(self):
        coordinator = self.start_coordinator(self.verifier, tokenizer=self.other)
        table = self.wait_for_nodes(coordinator.address(), "refused verifier:")
        self.assertIn("--tokenizer", table)
        self.assertIn("--tokenizer", coordinator.err())
        self.assert_refuses(self.generate(coordinator.address(), "x"), FAILED, "UNAVAILABLE", "verifier")

    def test_a_missing_tokenizer_ends_the_coordinator(self):
        self.assert_refuses(self.start_coordinator(self.verifier, tokenizer=self.folder / "none"),
                            FAILED, "none: no such directory")

    def test_without_a_tokenizer_text_is_refused_and_ids_are_served(self):
        address = self.start("outrider-coordinator", "--verifier", self.verifier,
                             "--listen", "127.0.0.1:0").address()
        self.wait_for_nodes(address, "verifier")
        self.assert_refuses(self.generate(address, "x"), FAILED, "--tokenizer")
        self.assertEqual(self.generate(address, "--prompt-tokens", "5 6", "--max-tokens", "3").wait(), 0)


if __name__ == "__main__":
    unittest.main()
