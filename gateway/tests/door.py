# SPDX-License-Identifier: Apache-2.0
"""Gateways before real coordinators, for tests that ask them over HTTP."""
import json
import pathlib
import shutil
import sys
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "tests/integration")]
import make_stubs  # noqa: E402

make_stubs.main()

import openai  # noqa: E402
from certificates import Authority  # noqa: E402, F401  (tests import these from here)
from programs import BIN, TARGET, Program, ProgramTest, wait_until  # noqa: E402

# The tokenizer's own first token is in the text, as in published templates.
CHAT_TEMPLATE = ("{{ bos_token }}{% for m in messages %}{{ m.content }}\n{% endfor %}"
                 "{% if add_generation_prompt %}def {% endif %}")
BOS = json.loads((TARGET / "tokenizer.json").read_text())["added_tokens"][0]["content"]
PROMPT = 'class Queue:\n    """A first-in, first-out queue."""\n\n    def __init__(self):\n'


class DoorTest(ProgramTest):
    """One trio and a second coordinator for all cases; a gateway for each."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.programs = []
        nodes = ("--threads", 1, "--model")
        cls.verifier_program = cls.launch("outrider-verifier", *nodes, TARGET)
        cls.verifier = cls.verifier_program.address()
        cls.drafter = cls.launch("outrider-drafter", *nodes, TARGET.parent / "demo-draft").address()
        cls.coordinator = cls.launch_coordinator().address()

    @classmethod
    def tearDownClass(cls):
        for program in cls.programs:
            program.close()

    @classmethod
    def launch(cls, name, *flags):
        cls.programs.append(Program(BIN / name, "--listen", "127.0.0.1:0", *flags))
        return cls.programs[-1]

    @classmethod
    def launch_coordinator(cls, *flags):
        return cls.launch("outrider-coordinator", "--verifier", cls.verifier, "--drafter", cls.drafter,
                          "--tokenizer", TARGET, *flags)

    def setUp(self):
        super().setUp()
        # The demo pair has no chat template: a copy of its tokenizer gets one.
        self.model = self.folder / "model"
        self.model.mkdir()
        shutil.copy(TARGET / "tokenizer.json", self.model)
        (self.model / "chat_template.jinja").write_text(CHAT_TEMPLATE)
        (self.model / "tokenizer_config.json").write_text(json.dumps({"bos_token": BOS}))

    def start_gateway(self, *flags):
        program = Program(sys.executable, "-B", "-m", "outrider_gateway", *flags,
                          inside=("env", f"PYTHONPATH={HERE.parent}"))
        self.addCleanup(program.close)
        return program

    def gateway(self, *flags, coordinators=None, model=None):
        endpoints = [word for one in coordinators or [self.coordinator] for word in ("--coordinator", one)]
        program = self.start_gateway("--listen", "127.0.0.1:0", "--model", model or self.model, *endpoints, *flags)
        self.url = f"http://{program.address()}"
        wait_until("the gateway is healthy", self.is_healthy)
        return program

    def is_healthy(self):
        return self.status("/health") == 200

    def status(self, path, url=None):
        """The status of a GET on a new connection; nothing where none is taken."""
        try:
            return urllib.request.urlopen((url or self.url) + path, timeout=5).status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def client(self, key="none"):
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=60)

    def spoken(self, *flags, prompt=PROMPT):
        """What `outrider generate` says."""
        program = self.generate(self.coordinator, *flags, prompt)
        self.assertEqual(program.wait(), 0, program.err())
        return program.out()
