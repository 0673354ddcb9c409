# SPDX-License-Identifier: Apache-2.0
"""The rule on comments, as a function from a file's text to violations.

A comment is whole sentences. One that opens with a bare preposition ("To the last
Describe.") leaves the newcomer to guess who does what. One that goes on after a comma
may say it ("In a resumed stream, penalties see ...") or not ("Of a session that holds,
between two attempts."): not where each part after it opens with another preposition or
with a word that makes it a subordinate clause, which is where this rule, without a
grammar, draws its line.
"""
import pathlib
import re

import include_rules
from violation import Violation

PREPOSITIONS = ("About Above Across After Against Along Among Around As At Before Behind Below Beneath Beside Besides "
                "Between Beyond By Despite Down During Except For From In Inside Into Like Near Of Off On Onto Out Outside "
                "Over Past Per Since Through Throughout To Toward Towards Under Unlike Until Up Upon Via With Within "
                "Without").split()
# What follows one of these is no main clause.
SUBORDINATORS = ("after although as because before if lest since so than that though unless until when where whereas "
                 "whether which while who whom whose").split()
JOINERS = "all also and both but else not or".split()
NO_CLAUSE = {*SUBORDINATORS, *map(str.lower, PREPOSITIONS)}
PART, WORD = re.compile(r"[,;:]\s"), re.compile(r"[A-Za-z]+")
OPENING = re.compile(rf"(?:{'|'.join(PREPOSITIONS)})\s")
SENTENCE = re.compile(r".*?[.!?](?=\s|$)|.+")
SLASHES, HASH = re.compile(r"\s*///?(?:\s+(.*)|$)"), re.compile(r"\s*#(?:\s+(.*)|$)")
MARKS = {**dict.fromkeys((".h", ".cc", ".cu", ".cuh", ".proto"), SLASHES),
         **dict.fromkeys((".py", ".sh", ".cmake", ".txt"), HASH)}


def own_line_comments(text, mark):
    """Each run of lines that are comments and nothing else: its first line's number, and its text."""
    start, lines = 0, []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        match = mark.match(line)
        if match and match[1]:
            start = start if lines else number
            lines.append(match[1].strip())
        elif lines:
            yield start, " ".join(lines)
            lines = []


def has_main_clause(part):
    words = [word.lower() for word in WORD.findall(part)]
    while words and words[0] in JOINERS:
        words.pop(0)
    return bool(words) and words[0] not in NO_CLAUSE


def is_fragment(sentence):
    """Whether it opens with a preposition, and nothing after that says who does what."""
    if not OPENING.match(sentence):
        return False
    return "," not in sentence or not any(map(has_main_clause, PART.split(sentence)[1:]))


def check_file(path, text):
    for line, comment in own_line_comments(text, MARKS[pathlib.Path(path).suffix]):
        first = SENTENCE.match(comment)[0]
        if is_fragment(first):
            yield Violation(path, line, "comment", f"`{first}` opens with a bare preposition")


def check_tree(root):
    """All violations in the tree below `root`."""
    return [violation for path in include_rules.source_paths(root, tuple(MARKS))
            for violation in check_file(path, (root / path).read_text("utf-8"))]
