#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documents name what is there; the rule is seen to fire."""
import pathlib
import tempfile
import unittest

import doc_rules

ROOT = pathlib.Path(__file__).resolve().parents[2]


class RepositoryTest(unittest.TestCase):
    def test_breaks_no_rule(self):
        self.assertEqual("\n".join(map(str, doc_rules.check_tree(ROOT))), "")


class PlantedDocumentTest(unittest.TestCase):
    """Each case is a document in a small tree; what it names and is not there is found by its line."""

    def found(self, text, path="docs/a.md"):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, content in (("core/base/clock.h", "class FastClock;\n"), ("tools/run.sh", ""), (path, text)):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content, "utf-8")
            return [(v.line, v.text.split("`")[1]) for v in doc_rules.check_tree(root)]

    def test_what_is_there_passes(self):
        self.assertEqual(self.found("`core/base/clock.h`, `clock.h`, `core/base`, `FastClock::Now()`, `tools/run.sh 600`"), [])

    def test_a_path_that_is_not_there_is_found(self):
        self.assertEqual(self.found("\n`core/base/watch.h` and `core/time`"), [(2, "core/base/watch.h"), (2, "core/time")])

    def test_a_file_that_is_nowhere_is_found(self):
        self.assertEqual(self.found("`clock.cc`"), [(1, "clock.cc")])

    def test_a_type_that_nobody_speaks_of_is_found(self):
        self.assertEqual(self.found("the `SlowClock`, and `SlowClock::Now`"), [(1, "SlowClock"), (1, "SlowClock")])

    def test_a_source_names_no_document_that_is_not_there(self):
        self.assertEqual(self.found("// docs/a.md\n// See b.md.\n", "core/base/watch.h"),
                         [(1, "docs/a.md"), (2, "b.md")])

    def test_other_words_and_folders_are_free(self):
        self.assertEqual(self.found("`build/release/x.h`, `Clock`, `--flag`, `HOST:PORT`, core/none.h"), [])

    def test_records_of_decisions_speak_of_their_time(self):
        self.assertEqual(self.found("`SlowClock`", "docs/adr/0001.md"), [])


if __name__ == "__main__":
    unittest.main()
