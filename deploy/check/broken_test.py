#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each mistake of broken.py and broken_details.py is found, and named in words; each rule finds one of them."""
import ast
import pathlib
import re
import sys
import types
import unittest

import manifests
import meaning
import quantities
import rules
from broken import BROKEN, FETCH, Objects, rendered
from broken_details import DETAILS

sys.path.insert(0, str(meaning.ROOT / "gateway"))
import make_stubs  # noqa: E402

make_stubs.main()  # outrider-gateway is among the programs whose flags are checked

MISTAKES = BROKEN + DETAILS
RULES = {module for module in vars(rules).values() if isinstance(module, types.ModuleType)} - {manifests} | {quantities}


def messages():
    """(place, pattern) of each text that a rule may complain with."""
    for module in RULES:
        path = pathlib.Path(module.__file__)
        for node in ast.walk(ast.parse(path.read_text())):
            text = node.value if isinstance(node, (ast.Yield, ast.Return)) else None
            if isinstance(text, ast.JoinedStr):
                parts = [one.value if isinstance(one, ast.Constant) else None for one in text.values]
            elif isinstance(text, ast.Constant) and isinstance(text.value, str):
                parts = [text.value]
            else:
                continue
            yield f"{path.name}:{node.lineno}", "".join(".*" if part is None else re.escape(part) for part in parts)


class BrokenTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        good = rendered()
        cls.found = {}
        for what, overlay, change, _ in MISTAKES:
            objects = Objects(good[overlay])
            change(objects)
            cls.found[what] = rules.problems_of(objects.things)

    def test_every_mistake_is_found_and_named(self):
        count = 0
        for what, _, _, words in MISTAKES:
            with self.subTest(what):
                problems = self.found[what]
                self.assertTrue(any(all(word in problem for word in words) for problem in problems),
                                f"{words} in none of {problems}")
                count += 1
        print(f"{count} of {len(MISTAKES)} broken manifests found", file=sys.stderr)

    def test_every_rule_finds_a_mistake(self):
        problems = {problem for some in self.found.values() for problem in some}
        for place, pattern in messages():
            with self.subTest(place):
                self.assertTrue(any(re.search(pattern, problem) for problem in problems), f"no mistake is told as {pattern}")

    def test_weights_old_and_new_of_a_coordinator_are_no_mistake(self):
        objects = Objects(manifests.render(manifests.DEPLOY / "examples" / FETCH))
        objects.settings("coordinator")["TARGET_WEIGHTS"] = "b" * 64
        self.assertEqual(rules.problems_of(objects.things), [])

    def test_each_is_a_mistake_of_its_own(self):
        names = [what for what, *_ in MISTAKES]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreaterEqual(len(names), 62)


if __name__ == "__main__":
    manifests.exit_without_kubectl("the broken manifests")
    unittest.main()
