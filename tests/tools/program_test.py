# SPDX-License-Identifier: Apache-2.0
"""What tools start ends with them: also what ignores SIGTERM, and where somebody cannot wait."""
import os
import pathlib
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ["OUTRIDER_SOURCE_DIR"]) / "tools"))
from program import Program, stop_all, wait_until  # noqa: E402

OBEDIENT = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: exit({status}))"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
REST = "; print('ready', flush=True); time.sleep(600)"


class StopAllTest(unittest.TestCase):
    def start(self, *sources):
        programs = [Program(sys.executable, "-c", source + REST, own_session=True) for source in sources]
        for program in programs:
            self.addCleanup(program.close)
            wait_until("it is ready", lambda program=program: "ready" in program.out())
        return programs

    def test_each_is_told_at_once_and_what_ignores_it_is_killed(self):
        programs = self.start(OBEDIENT.format(status=0), DEAF, DEAF, OBEDIENT.format(status=3))
        self.assertEqual(stop_all(programs, patience=1), [0, None, None, 3])
        self.assertFalse(any(program.runs() for program in programs))

    def test_a_second_ctrl_c_leaves_nothing_behind(self):
        programs = self.start(OBEDIENT.format(status=0), DEAF, DEAF)

        def interrupt():
            wait_until("the first has ended", lambda: not programs[0].runs())
            time.sleep(0.2)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        threading.Thread(target=interrupt).start()
        with self.assertRaises(KeyboardInterrupt):
            stop_all(programs, patience=600)
        self.assertFalse(any(program.runs() for program in programs))


if __name__ == "__main__":
    unittest.main()
