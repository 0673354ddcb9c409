#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No comment or docstring has a sentence that opens as a part of another one and stays a fragment; the rule fires."""
import pathlib
import tempfile
import unittest

import comment_rules

ROOT = pathlib.Path(__file__).resolve().parents[2]


class RepositoryTest(unittest.TestCase):
    def test_breaks_no_rule(self):
        self.assertEqual("\n".join(map(str, comment_rules.check_tree(ROOT))), "")


class PlantedCommentsTest(unittest.TestCase):
    """Each case is a file; each of its violations is a line and what the sentence says."""

    def found(self, text, path="a.h"):
        return [(v.line, v.text[1:].removesuffix("` is no whole sentence")) for v in comment_rules.check_file(path, text)]

    def test_a_sentence_that_opens_with_a_bare_preposition_is_found(self):
        for fragment in ("To the last Describe.", "For tests only.", "Without a network: it is not met.", "Of a sample"):
            self.assertEqual(self.found(f"int a;\n  // {fragment}\n"), [(2, fragment)])

    def test_what_follows_a_comma_says_who_does_what_or_not(self):
        for fragment in ("Of a session that holds, between two attempts.", "By each call, which has its part.",
                         "Without a network: as in tests, where none is met.", "In [0, 1], and of no other range.",
                         "For people, or as one JSON object.",
                         "With names: they are resolved, again and again.",
                         "In the child, and in it alone; system calls may be made.", "For people: the rows, all columns.",
                         "At V = 128256, K = 5, whatever the tables give.", "From trials alone, as K changes, too."):
            self.assertEqual(self.found(f"// {fragment}\n"), [(1, fragment)])
        for sentence in ("On the device, where it is possible, rows stay.", "With names, they are resolved, again and again.",
                         "Among the candidates, in the order of ids, the block finds the last; then it ends.",
                         "For what follows, the calling code runs as a thread.", "For as long as it exists, what holds it waits."):
            self.assertEqual(self.found(f"// {sentence}\n"), [], sentence)

    def test_in_every_kind_of_file_and_comment(self):
        for path, mark in (("a.cc", "//"), ("a.h", "///"), ("a.cu", "//"), ("a.proto", "//"), ("a.py", "#"),
                           ("a.sh", "#"), ("CMakeLists.txt", "#"), ("a.cmake", "#")):
            self.assertEqual(self.found(f"{mark} By position.\n", path), [(1, "By position.")], path)

    def test_in_docstrings_of_modules_classes_and_functions(self):
        text = ('# A comment.\n"""To the last.\n\nIn\nms.\n"""\nclass A:\n    r"""Of one key."""\n'
                '    async def f():\n        """Returns it. For\n        tests."""\n        return """Of a text."""\n')
        self.assertEqual(self.found(text, "a.py"), [(2, "To the last."), (4, "In ms."), (8, "Of one key."), (10, "For tests.")])

    def test_the_first_sentence_may_go_on_in_the_next_line(self):
        self.assertEqual(self.found("// On the device of\n// another. Else, none.\n"), [(1, "On the device of another.")])
        self.assertEqual(self.found("// In a resumed stream\n// of tokens, penalties see all.\n"), [])

    def test_every_sentence_counts_and_is_named_by_its_own_line(self):
        self.assertEqual(self.found("// Of a sample. All are 0, where it is empty.\n"), [(1, "Of a sample.")])
        self.assertEqual(self.found("// The spread of a sample. In ms.\n"), [(1, "In ms.")])
        self.assertEqual(self.found("int a;\n// The spread\n// of a sample. In\n// ms. Without gRPC.\n"),
                         [(3, "In ms."), (4, "Without gRPC.")])

    def test_a_preposition_may_open_a_sentence_whose_main_clause_has_a_verb(self):
        for sentence in ("In a container the path may be one that it cannot see.", "After a co_await it may run elsewhere.",
                         "At least one token is always appended: a pass needs an input.",
                         "After what was lost it is asked again."):
            self.assertEqual(self.found(f"// A row. {sentence}\n"), [], sentence)
        for fragment in ("Of the token that is judged.", "By what is known of it.", "Among equals the latest, which is the nearest.",
                         "For main, before it starts threads."):
            self.assertEqual(self.found(f"// A row. {fragment}\n"), [(1, fragment)])

    def test_a_conjunction_or_what_adds_to_something_opens_a_fragment_too(self):
        for fragment in ("Though the request names K.", "However steep it seems to be.", "While others are heard.",
                         "Unless the host asks for the whole row.", "Also where nobody else owns it.", "And nothing else.",
                         "And those that are quiet, more often.", "So that no coin comes again."):
            self.assertEqual(self.found(f"// A row. {fragment}\n"), [(1, fragment)])
        for sentence in ("While it lives, the process does end.", "Although it waits, the others are served.",
                         "And it ends.", "So it ends.", "Also those have none."):
            self.assertEqual(self.found(f"// A row. {sentence}\n"), [], sentence)

    def test_a_part_without_a_verb_is_no_clause(self):
        for fragment in ("In [low, high].", "In [0, 10], 0 included.", "Of the message `at`, a number.", "Of a token, a round each.",
                         "In place of those tokens, one of each branch.",
                         "Of `gives`, the first.", "To Describe, the rows.",
                         "Of those a row each, to keep, or to be taken.", "With a cache, chunks that prompts need, and a hold.",
                         "Of compute_time, the part of one."):
            self.assertEqual(self.found(f"// {fragment}\n"), [(1, fragment)])
        for sentence in ("In turn four drafts take 10 ms, and a verification takes 30.", "With a drafter a round drafts.",
                         "In a share of those others, the target's tokens come next.", "At work it drafts.",
                         "Of four sessions, what their rows have is enough."):
            self.assertEqual(self.found(f"// {sentence}\n"), [], sentence)

    def test_a_conjunction_has_a_verb_of_its_own(self):
        for fragment in ("As the client names it, or anew.", "Until nothing is left to do.", "Before it has run a step.",
                         "Since the pool has asked it, and for good."):
            self.assertEqual(self.found(f"// {fragment}\n"), [(1, fragment)])
        for sentence in ("As soon as drafts are on their way, it asks for more.", "Until it is over, no step is launched.",
                         "Until it is written the call goes on.", "Before the pass it holds a row."):
            self.assertEqual(self.found(f"// {sentence}\n"), [], sentence)

    def test_that_or_and_nor_may_open_a_sentence_and_no_clause_without_one(self):
        for fragment in ("That a round may have; another node may take fewer.", "That of the round that runs.",
                         "That, but for every third.", "That what is made ahead comes later.", "Nor for the next pass.",
                         "Or a row of it."):
            self.assertEqual(self.found(f"// {fragment}\n"), [(1, fragment)])
        for sentence in ("That order spreads the sessions.", "That pays where it has a core.", "Nor does it wait.",
                         "Or the draw is from the whole row.", "That is a staircase.", "Nordic rows."):
            self.assertEqual(self.found(f"// {sentence}\n"), [], sentence)

    def test_a_paragraph_opens_anew(self):
        self.assertEqual(self.found("// A row.\n//\n// With its tail.\n"), [(3, "With its tail.")])

    def test_whole_sentences_and_longer_words_pass(self):
        for comment in ("With a drafter, a round drafts.", "Forgets the session.", "Ontology.", "Tops of rows.",
                        "What the node answered.", "in ms", "To: the reader"):
            self.assertEqual(self.found(f"// {comment}\n"), [], comment)

    def test_a_comment_beside_code_may_be_brief(self):
        self.assertEqual(self.found("double a = 0;  // In ms.\n"), [])

    def test_a_violation_reads_as_file_line_rule(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a.h").write_text("\n// Over the support.\n")
            (root / "a.md").write_text("# Over the support\n")
            self.assertEqual([str(v) for v in comment_rules.check_tree(root)],
                             ["a.h:2: [comment] `Over the support.` is no whole sentence"])


if __name__ == "__main__":
    unittest.main()
