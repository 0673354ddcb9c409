# SPDX-License-Identifier: Apache-2.0
"""SIGTERM while the gateway loads, when no server waits for it."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import stand_ins  # noqa: F401  (makes the stubs)

GATEWAY = pathlib.Path(__file__).resolve().parents[1]
# It stands in place of the first module that takes time to load.
HANGS = "import time\nprint('loads', flush=True)\ntime.sleep(60)\n"
# So it is, for signals of the default action, in the first process of a PID namespace. A namespace itself takes
# privileges that containers do not have.
RAISES_NOTHING = "import signal\nsignal.raise_signal = lambda number: None\n"


class WhileItLoadsTest(unittest.TestCase):
    def status_by_sigterm(self, module):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "argparse.py").write_text(module)
            with subprocess.Popen([sys.executable, "-B", "-m", "outrider_gateway"], stdout=subprocess.PIPE,
                                  env={**os.environ, "PYTHONPATH": f"{folder}:{GATEWAY}"}) as program:
                try:
                    self.assertEqual(program.stdout.readline(), b"loads\n")
                    program.terminate()
                    return program.wait(20)
                finally:
                    program.kill()

    def test_sigterm_ends_it(self):
        self.assertEqual(self.status_by_sigterm(HANGS), -signal.SIGTERM)

    def test_sigterm_ends_it_as_its_containers_first_process(self):
        self.assertEqual(self.status_by_sigterm(RAISES_NOTHING + HANGS), 128 + signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
