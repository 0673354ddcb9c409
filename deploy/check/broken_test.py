#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each mistake of broken.py is found, and named in words; the same objects without it are clean."""
import sys
import unittest

import manifests
import meaning
from broken import BROKEN, FETCH, Objects, rendered
from rules import problems_of

sys.path.insert(0, str(meaning.ROOT / "gateway"))
import make_stubs  # noqa: E402

make_stubs.main()  # outrider-gateway is among the programs whose flags are checked


class BrokenTest(unittest.TestCase):
    def test_every_mistake_is_found_and_named(self):
        good, found = rendered(), 0
        for what, overlay, change, words in BROKEN:
            with self.subTest(what):
                objects = Objects(good[overlay])
                change(objects)
                problems = problems_of(objects.things)
                self.assertTrue(any(all(word in problem for word in words) for problem in problems),
                                f"{words} in none of {problems}")
                found += 1
        print(f"{found} of {len(BROKEN)} broken manifests found", file=sys.stderr)

    def test_weights_old_and_new_of_a_coordinator_are_no_mistake(self):
        objects = Objects(manifests.render(manifests.DEPLOY / "examples" / FETCH))
        objects.settings("coordinator")["TARGET_WEIGHTS"] = "b" * 64
        self.assertEqual(problems_of(objects.things), [])

    def test_each_is_a_mistake_of_its_own(self):
        names = [what for what, *_ in BROKEN]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreaterEqual(len(names), 62)


if __name__ == "__main__":
    if not manifests.have_kubectl():
        print("NOT RUN: the broken manifests need kubectl 1.21 or later, which renders the overlays", file=sys.stderr)
        sys.exit(77)  # what ctest knows as skipped
    unittest.main()
