#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""components/model-fetch: a model arrives whole or not at all, whatever the source does."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "components/model-fetch/fetch.sh"
FILES = {"config.json": b"{}", "weights/model.safetensors": b"w" * 1000}


class FetchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("files", "models", "source", "bin"):
            (self.root / name).mkdir()
        # The one of the Job's image, busybox's, refuses lines that are no sums.
        strict = self.root / "bin/sha256sum"
        strict.write_text(f'#!/bin/sh\nexec {shutil.which("sha256sum")} --strict "$@"\n')
        strict.chmod(0o755)
        for name, data in FILES.items():
            path = self.root / "source" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        (self.root / "files/models").write_text(f"big-1 {self.root}/source\n")
        self.list_files(FILES)

    def list_files(self, files):
        lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items()]
        (self.root / "files/big-1.sha256").write_text("".join(lines))

    def fetch(self, command='cp "$SOURCE/$FILE" "$FILE"'):
        environment = {**os.environ, "FILES": str(self.root / "files"), "MODELS": str(self.root / "models"),
                       "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}
        environment.update({"FETCH": command} if command else {})
        return subprocess.run(["sh", SCRIPT], env=environment, capture_output=True, text=True)

    def model(self):
        folder = self.root / "models/big-1"
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def test_a_model_is_there_once_all_its_files_are(self):
        run = self.fetch()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(self.model(), FILES)
        self.assertEqual(os.listdir(self.root / "models"), ["big-1"])

    def test_curl_is_the_command_where_none_is_given(self):
        (self.root / "files/models").write_text(f"big-1 file://{self.root}/source\n")
        run = self.fetch(command=None)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(self.model(), FILES)

    def test_a_model_that_is_there_is_not_fetched_again(self):
        self.fetch()
        run = self.fetch("false")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("big-1 is there, and whole", run.stdout)

    def test_a_model_that_was_changed_is_told_of(self):
        self.fetch()
        (self.root / "models/big-1/config.json").write_text("{} ")
        self.assertNotEqual(self.fetch().returncode, 0)

    def test_a_file_of_another_checksum_is_not_taken(self):
        self.list_files({**FILES, "config.json": b"[]"})
        run = self.fetch()
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("config.json", run.stderr)
        self.assertFalse((self.root / "models/big-1").exists())

    def test_the_next_try_goes_on_where_the_last_one_ended(self):
        late = self.root / "source/weights/model.safetensors"
        late.rename(self.root / "late")
        self.assertNotEqual(self.fetch().returncode, 0)
        self.assertFalse((self.root / "models/big-1").exists())
        (self.root / "late").rename(late)
        run = self.fetch()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("config.json", run.stdout)
        self.assertEqual(self.model(), FILES)

    def test_last_lines_without_an_end_count(self):
        for name in ("models", "big-1.sha256"):
            path = self.root / "files" / name
            path.write_text(path.read_text().rstrip("\n"))
        run = self.fetch()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(self.model(), FILES)

    def test_lines_without_words_count_for_nothing(self):
        for name in ("models", "big-1.sha256"):
            path = self.root / "files" / name
            path.write_text("\n" + path.read_text().replace("\n", "\n \t\n\n"))
        for words in ("big-1 is complete", "big-1 is there, and whole"):
            run = self.fetch()
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assertIn(words, run.stdout)
        self.assertEqual(self.model(), FILES)

    def test_a_file_that_changed_before_the_last_one_came_is_told_of(self):
        run = self.fetch('cp "$SOURCE/$FILE" "$FILE"; echo >> config.json; [ "$FILE" = config.json ] && cp "$SOURCE/$FILE" "$FILE"; true')
        self.assertNotEqual(run.returncode, 0)
        self.assertFalse((self.root / "models/big-1").exists())

    def test_no_file_leaves_its_model(self):
        for name in ("../outside", "/outside", "a/../../outside"):
            self.list_files({name: b"x"})
            run = self.fetch("echo x >\"$FILE\"")
            self.assertNotEqual(run.returncode, 0)
            self.assertIn("no path inside a model", run.stderr)
        self.assertFalse((self.root / "models/outside").exists())


if __name__ == "__main__":
    unittest.main()
