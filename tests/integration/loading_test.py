# SPDX-License-Identifier: Apache-2.0
"""What a node does with its memory while it loads a model, and what it says before it does."""
import json
import math
import pathlib
import re
import shutil
import socket
import struct
import unittest

from programs import TARGET, ProgramTest

MIB = 1 << 20


def shapes_of(config):
    """The tensors of a Llama, by their names."""
    hidden, inner, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    of_a_layer = {"input_layernorm": [hidden], "post_attention_layernorm": [hidden],
                  "self_attn.q_proj": [queries, hidden], "self_attn.k_proj": [keys, hidden],
                  "self_attn.v_proj": [keys, hidden], "self_attn.o_proj": [hidden, queries],
                  "mlp.gate_proj": [inner, hidden], "mlp.up_proj": [inner, hidden], "mlp.down_proj": [hidden, inner]}
    return {"model.embed_tokens.weight": [config["vocab_size"], hidden], "model.norm.weight": [hidden],
            **{f"model.layers.{i}.{name}.weight": shape
               for i in range(config["num_hidden_layers"]) for name, shape in of_a_layer.items()}}


def write_model(folder, **changes):
    """The demo model with these changes to its shape. Its weights are zeros, which take no disk: how many bytes."""
    shutil.copytree(TARGET, folder, ignore=shutil.ignore_patterns("model.safetensors"))
    config = json.loads((TARGET / "config.json").read_text("utf-8")) | changes
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    header, end = {}, 0
    for name, shape in shapes_of(config).items():
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    return end


class MemoryTest(ProgramTest):
    def read(self, path, key):
        return int(re.search(rf"{key}:\s+(\d+) kB", pathlib.Path(path).read_text("utf-8"))[1]) << 10

    def test_weights_are_there_once_while_they_are_loaded_and_after(self):
        # No matrix of its layers is large enough to be mapped by itself.
        model = self.folder / "model"
        weights = write_model(model, hidden_size=1024, intermediate_size=4096, num_attention_heads=16,
                              num_hidden_layers=12)
        small = self.start_verifier()
        large = self.start_verifier(model=model)
        small.address()
        large.address()
        with self.subTest("beside what any model takes, and a layer"):
            for key in "VmHWM", "VmRSS":
                of_small, of_large = (self.read(f"/proc/{node.process.pid}/status", key) for node in (small, large))
                self.assertLess(of_large - of_small, 1.3 * weights, key)
        self.assertGreater(weights, 300 * MIB)

    def test_more_weights_than_memory_are_warned_of(self):
        available = self.read("/proc/meminfo", "MemAvailable")
        model = self.folder / "model"
        of_a_layer = 3 * 384 * (1 << 20) * 2
        weights = write_model(model, intermediate_size=1 << 20, num_hidden_layers=2 * available // of_a_layer + 1)
        # Each thread takes some of the address space.
        node = self.start("outrider-verifier", "--threads", 1, "--model", model, "--listen", "127.0.0.1:0",
                          inside=["prlimit", f"--as={2 << 30}"])
        self.assertEqual(node.wait(), 1, node.err())
        said = re.search(r" W the weights take (\S+) GiB in bfloat16, and (\S+) GiB of memory are available", node.err())
        self.assertTrue(said, node.err())
        self.assertAlmostEqual(float(said[1]), weights / (1 << 30), delta=1)
        self.assertLess(float(said[2]), float(said[1]))


class PortTest(ProgramTest):
    def test_a_port_in_use_is_told_before_weights_are_read(self):
        model = self.folder / "model"
        write_model(model)
        (model / "model.safetensors").unlink()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            self.assert_refuses(self.start_verifier(model=model, listen=address), 1, f"cannot listen on {address}")
            self.assert_refuses(self.start_drafter("--metrics-listen", address, model=model), 1,
                                f"cannot listen for HTTP on {address}")
            # Who measures listens nowhere.
            self.assert_refuses(self.start_verifier("--measure", model=model, listen=address), 1, "model.safetensors")


class MeasureTest(ProgramTest):
    def test_a_context_that_is_too_short_to_measure_is_told(self):
        for start, least in (self.start_verifier, 10), (self.start_drafter, 5):
            with self.subTest(least=least):
                model = self.folder / str(least)
                write_model(model, max_position_embeddings=4)
                self.assert_refuses(start("--measure", model=model), 1, f"at least {least} are needed")


if __name__ == "__main__":
    unittest.main()
