# SPDX-License-Identifier: Apache-2.0
"""A model's tokenizer at the door: texts and tokens, and its fingerprint."""
import json
import pathlib
import tempfile
import threading
import time
import unittest
from unittest import mock

import tokenizers
from stand_ins import MODEL, TOKENIZERS

from outrider_gateway.fingerprint import fingerprint_of
from outrider_gateway.tokens import Tokens, TooManyTokensError

# These are what outrider-verifier reports of the same files.
FINGERPRINTS = {
    "demo-target": "97140718f4c8d305193059e006e873931231a1bc50760261fffaa4fd033b24bf",
    "gpt2": "2b8bf5c9744edde8497c0360d3717679e0c79f3d5ceae169e0a8c0fa500c21fc",
    "gpt2-added": "1c8487cf6fb2e14775e1143b65bb3f5363657ce8256cfa46639a23aa8c352821",
    "llama2": "6a7146d36889a8823957040e892791984f5873de8caac3f3f23b45b63cfdeafd",
    "llama3": "3562c7792885454d94b317f593dc79ea17cf458f1477805be5df3e877dcedeac",
    "metaspace-always": "c10229d6393c3da7ec4919b993eb9d06aa162a54fc81cacf63e845fed661b12a",
    "metaspace-never": "6835cc79cc06dbd5edc2eb87ef9677f363ae434b29cb6b784e52a8b3caac17c6",
    "mistral-first": "861180562eadc8e0c8599da38c0b663fa53c7444d817cbb8bf1347c4e981943a",
    "qwen2": "8802ccc21c5810786091b6aa8512d4e3f016fe9f62574afba6f8cb7091ecd3ce",
}


def directory_of(name):
    return MODEL if name == MODEL.name else TOKENIZERS / name


class TokensTest(unittest.TestCase):
    def test_pieces_are_the_bytes_of_the_text(self):
        tokens = Tokens.load(MODEL)
        text = 'def grüße(x):\n    return "→ 再来" + x\n'
        ids = tokens.encode(text)
        self.assertEqual(b"".join(map(tokens.piece, ids)).decode(), text)
        self.assertEqual(tokens.decode(ids), text)
        self.assertTrue(all(tokens.name(i) for i in ids))

    def test_half_a_character_is_named_by_its_bytes(self):
        tokens = Tokens.load(MODEL)
        halves = [i for i in tokens.encode("再") if tokens.name(i).startswith("bytes:")]
        self.assertTrue(halves)

    def test_what_is_a_blank_to_sentencepiece_is_a_character_to_others(self):
        for name, shown in ("gpt2", "<\uff5cbegin\u2581of\uff5c>"), ("llama2", "<\uff5cbegin of\uff5c>"):
            library = tokenizers.Tokenizer.from_file(str(directory_of(name) / "tokenizer.json"))
            library.add_special_tokens(["<\uff5cbegin\u2581of\uff5c>"])
            tokens = Tokens(library)
            token, = tokens.encode("<\uff5cbegin\u2581of\uff5c>")
            self.assertEqual((tokens.name(token), tokens.piece(token)), (shown, shown.encode()))
            self.assertEqual(tokens.decode([token]), shown)

    def test_added_tokens_are_spelled_as_in_their_file(self):
        for name in FINGERPRINTS:
            with self.subTest(name):
                file = json.loads((directory_of(name) / "tokenizer.json").read_text("utf-8"))
                cases = json.loads((TOKENIZERS / name / "cases.json").read_text("utf-8"))
                tokens = Tokens.load(directory_of(name))
                special = set()
                for added in file["added_tokens"]:
                    if added["content"] != "é":  # which spells a byte of a byte-level vocabulary
                        self.assertEqual(tokens.name(added["id"]), added["content"])
                        self.assertEqual(tokens.piece(added["id"]), added["content"].encode())
                    special |= {added["id"]} if added["special"] else set()
                for case in cases["encode"]:
                    shown = [token for token in case["ids"] if token not in special]
                    self.assertEqual(tokens.decode(shown), case["decoded"])

    def test_texts_are_encoded_while_other_threads_work(self):
        tokens = Tokens.load(MODEL)
        text = pathlib.Path(__file__).read_text("utf-8") * 40

        def longest_gap():
            """It is between two turns of this thread, as a part of the time that another one encodes."""
            thread = threading.Thread(target=tokens.encode, args=(text,))
            begun = last = time.monotonic()
            thread.start()
            longest = 0.0
            while thread.is_alive():
                now = time.monotonic()
                longest, last = max(longest, now - last), now
            ended = time.monotonic()
            return max(longest, ended - last) / (ended - begun)
        # Another process may take a core for a while, but not each time.
        self.assertLess(min(longest_gap() for _ in range(5)), 0.25)

    def test_texts_are_decoded_by_the_librarys_way_that_lets_other_threads_work(self):
        library = mock.Mock(wraps=tokenizers.Tokenizer.from_file(str(MODEL / "tokenizer.json")))
        tokens = Tokens(library)
        text = "def add(a, b): return a + b"
        self.assertEqual(tokens.decode(tokens.encode(text)), text)
        library.decode_batch.assert_called_once()
        library.decode.assert_not_called()

    def test_a_text_without_any_room_is_not_taken_apart_to_its_end(self):
        tokens = Tokens.load(MODEL)
        encoded = []

        def encode(text):
            encoded.append(len(text))
            return encode_before(text)
        encode_before = tokens.encode
        with mock.patch.object(tokens, "encode", encode):
            for text in ("x" * 4_000_000, "x y\n" * 1_000_000):
                encoded.clear()
                with self.assertRaises(TooManyTokensError):
                    tokens.encode_within(text, 1024)
                self.assertLess(sum(encoded), 100_000)
            # Many characters may be few tokens.
            text = " " * 60_000
            self.assertEqual(tokens.encode_within(text, 50_000), encode_before(text))
            self.assertEqual(encoded[-1], len(text))

    def test_what_a_file_asks_for_other_texts_is_not_done_to_these(self):
        file = json.loads((MODEL / "tokenizer.json").read_text())
        file["truncation"] = {"max_length": 3, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
        file["padding"] = {"strategy": {"Fixed": 99}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                           "pad_type_id": 0, "pad_token": "x"}
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "tokenizer.json").write_text(json.dumps(file))
            changed = Tokens.load(pathlib.Path(folder))
        text = "def add(a, b): return a + b"
        self.assertEqual(changed.encode(text), Tokens.load(MODEL).encode(text))

    def test_fingerprints_are_those_that_nodes_report(self):
        for name, fingerprint in FINGERPRINTS.items():
            with self.subTest(name):
                self.assertEqual(Tokens.load(directory_of(name)).fingerprint, fingerprint)

    def test_every_change_of_a_tokenizer_changes_its_fingerprint(self):
        file = json.loads((directory_of("llama2") / "tokenizer.json").read_text())
        seen = {fingerprint_of(file)}
        for change in (lambda f: f["added_tokens"][3].update(special=True), lambda f: f["model"]["merges"].pop(),
                       lambda f: f["normalizer"]["normalizers"].pop(), lambda f: f["decoder"]["decoders"].pop(),
                       lambda f: f["model"].update(byte_fallback=False),
                       lambda f: f.update(pre_tokenizer={"type": "ByteLevel"})):
            changed = json.loads(json.dumps(file))
            change(changed)
            self.assertNotIn(fingerprint_of(changed), seen)
            seen.add(fingerprint_of(changed))

    def test_a_tokenizer_that_nodes_do_not_read_has_no_fingerprint(self):
        file = json.loads((MODEL / "tokenizer.json").read_text())
        for change in ({"model": {"type": "WordPiece", "vocab": {"a": 0}}}, {"pre_tokenizer": {"type": "Whitespace"}},
                       {"normalizer": {"type": "NFKC"}}, {"decoder": None}, {"decoder": {}}):
            self.assertIsNone(fingerprint_of({**file, **change}))


if __name__ == "__main__":
    unittest.main()
