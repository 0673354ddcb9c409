# SPDX-License-Identifier: Apache-2.0
"""The real programs when a GPU is lost; it is emulated, by the library that they open for it."""
import json
import shutil
import unittest

from programs import BIN, MODELS, ProgramTest, wait_until

FAILED = 1
MODEL = MODELS.parent / "tests/golden/testdata/models/qwen2_sliding_bf16_sharded"
EMULATED = BIN.parent / "emulated"
REQUEST = ("-k", "0", "--prompt-tokens", "3 4 5", "--temperature", "0", "--ignore-eos", "--max-tokens", "60", "--json")


# A token for each of so many characters.
TOKENIZER = {"model": {"type": "BPE", "vocab": {chr(33 + i): i for i in range(67)}, "merges": []},
             "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
             "decoder": {"type": "ByteLevel"}}


class LostDeviceTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model = shutil.copytree(MODEL, self.folder / "model")
        (self.model / "tokenizer.json").write_text(json.dumps(TOKENIZER))

    def start_on_gpu(self, **environment):
        words = (f"{key}={value}" for key, value in {"LD_LIBRARY_PATH": EMULATED, **environment}.items())
        return self.start("outrider-verifier", "--device", "cuda", "--model", self.model, "--kv-cache-memory", "1MiB",
                          "--listen", f"{self.HOST}:0", inside=("env", *words))

    def test_its_node_ends_and_its_streams_go_on_elsewhere(self):
        lost = self.start_on_gpu(OUTRIDER_EMULATED_LAUNCHES_BEFORE_LOSS=400)
        other = self.start_on_gpu()
        coordinator = self.start("outrider-coordinator", "--verifier", lost.address(), "--verifier", other.address(),
                                 "--listen", f"{self.HOST}:0")
        address = coordinator.address()
        wait_until("both verifiers are ready", lambda: self.describe(address).count("cuda_emulated") == 2)
        texts = []
        while lost.runs() and len(texts) < 30:  # each begins at either of them
            stream = self.generate(address, *REQUEST)
            self.assertEqual(stream.wait(), 0, stream.err())
            texts.append(json.loads(stream.out())["token_ids"])
        self.assertEqual(lost.wait(), FAILED, lost.err())
        self.assertRegex(lost.err(), r"(?m)^\S+ E .*an illegal memory access was encountered")
        stream = self.generate(address, *REQUEST)
        self.assertEqual(stream.wait(), 0, stream.err())
        text = json.loads(stream.out())["token_ids"]
        self.assertEqual(len(text), 60)
        self.assertEqual(texts, [text] * len(texts))


if __name__ == "__main__":
    unittest.main()
