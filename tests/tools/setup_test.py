# SPDX-License-Identifier: Apache-2.0
"""What tools/setup.sh takes and refuses, in a tree where it can install nothing; which tests are skipped there; and what
`make help` lists."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES_ARE_THERE = "#!/bin/sh\necho 'install ok installed'\n"


class SetupTest(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp(prefix="outrider-setup-"))
        self.addCleanup(shutil.rmtree, self.tree)
        for folder in ("tools", "gateway", "bin"):
            (self.tree / folder).mkdir()
        for name in ("setup.sh", "run-python-test.sh"):
            shutil.copy(ROOT / "tools" / name, self.tree / "tools")
        for name in ("requirements-test.txt", "requirements-schemas.txt"):
            (self.tree / "tools" / name).write_text("")
        # More than a pipe holds, so that who writes it notices that nobody reads.
        (self.tree / "gateway/constraints.txt").write_text("# a line\n" * 20000)
        # No environment can be made here: a file has its name.
        (self.tree / ".venv-test").write_text("")
        self.give("dpkg-query", PACKAGES_ARE_THERE)
        for name in ("apt-get", "sudo"):
            self.give(name, "#!/bin/sh\nexit 1\n")

    def give(self, name, text):
        program = self.tree / "bin" / name
        program.write_text(text)
        program.chmod(0o755)

    def run_setup(self, *words, **options):
        environment = {"PATH": f"{self.tree}/bin:{os.environ['PATH']}", "CMAKE_PREFIX_PATH": "/given"}
        return subprocess.run([self.tree / "tools/setup.sh", *words], env=environment, capture_output=True, text=True,
                              check=False, timeout=60, **options)

    def test_a_word_that_is_no_option_is_refused_with_the_usage(self):
        # Else it would say that packages are missing.
        self.give("dpkg-query", "#!/bin/sh\nexit 1\n")
        for words in (["foo"], ["--test"], [""], ["--tests", "--lint"]):
            done = self.run_setup(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertRegex(done.stderr, r"usage: tools/setup\.sh \[--tests")

    def test_help_is_no_set_up(self):
        self.give("dpkg-query", "#!/bin/sh\nexit 1\n")
        for word in ("--help", "-h"):
            done = self.run_setup(word)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            for option in ("--tests", "--gateway", "--lint", "--deploy"):
                self.assertIn(f"\n  {option} ", done.stdout)

    def test_what_is_documented_is_taken(self):
        for words in ([], ["--tests"], ["--deploy"]):
            self.assertEqual(self.run_setup(*words).returncode, 0, words)
        # Here pip can install nothing, and .ci/run must not go on without Python's tests.
        refused = self.run_setup("--lint")
        self.assertEqual(refused.returncode, 1, refused)
        self.assertIn("will be skipped", refused.stderr)

    def test_nothing_is_said_of_pipes_where_their_signal_is_ignored(self):
        # Python itself ignores it, and so do its children that keep its signals.
        done = self.run_setup("--tests", restore_signals=False)
        self.assertIn(".venv-test", done.stdout)
        self.assertNotIn("Broken pipe", done.stderr)

    def test_tests_are_skipped_where_an_environment_was_made_and_pip_could_not_fill_it(self):
        """So it is without network."""
        environment, test = self.tree / ".venv-test", self.tree / "a_test.py"
        environment.unlink()
        (environment / "bin").mkdir(parents=True)
        (environment / "bin/python").symlink_to(sys.executable)
        test.write_text("print('it runs')")

        def run():
            return subprocess.run([self.tree / "tools/run-python-test.sh", test], capture_output=True, text=True, check=False)
        skipped = run()
        self.assertEqual((skipped.returncode, skipped.stdout), (77, ""))
        self.assertIn("NOT RUN", skipped.stderr)
        (environment / ".outrider-test").write_text("")
        self.assertEqual((run().returncode, run().stdout), (0, "it runs\n"))


class MakeHelpTest(unittest.TestCase):
    def test_it_has_a_line_for_each_target(self):
        lines = subprocess.check_output(["make", "--no-print-directory", "help"], cwd=ROOT, text=True).splitlines()
        targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split()
        self.assertEqual({line.split()[0] for line in lines if len(line.split()) > 1}, set(targets))


if __name__ == "__main__":
    unittest.main()
