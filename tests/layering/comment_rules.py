# SPDX-License-Identifier: Apache-2.0
"""The rule on comments, as a function from a file's text to violations.

A comment is whole sentences, each of them. One that opens with a bare preposition ("To
the last Describe."), or with "Or", "Nor" or a "That" which begins a clause ("That a
round may have."), leaves the newcomer to guess who does what. Such a sentence is whole
where one of the commonest verbs stands in its main clause ("In a container the path may
be another."), or where a part after a comma says it ("In a resumed stream, penalties see
..."): not where each of these opens with another preposition or with a word that makes it
a subordinate clause ("Of a session that holds, between two attempts."), which is where
this rule, without a grammar, draws its line.
"""
import bisect
import itertools
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
# Any sentence may have one of these, and nothing else looks like them.
VERBS = set("am are can cannot could did do does had has have is may might must shall should was were will would".split())
CLAUSES = {*SUBORDINATORS, "how", "what", "why"}
OPENING = re.compile(rf"(?:{'|'.join(PREPOSITIONS)}|Nor|Or)\s")
# "That" before one of these means no thing that was named: it begins a clause, or stands for a word to be guessed.
THAT = re.compile(r"That(?:,|\s(?:an?|the|each|every|its|no|of|others|their|what)\s)")
SENTENCE = re.compile(r"\S.*?[.!?](?=\s|$)|\S.*")
SLASHES, HASH = re.compile(r"\s*///?(?:\s+(.*)|$)"), re.compile(r"\s*#(?:\s+(.*)|$)")
MARKS = {**dict.fromkeys((".h", ".cc", ".cu", ".cuh", ".proto"), SLASHES),
         **dict.fromkeys((".py", ".sh", ".cmake", ".txt"), HASH)}


def own_line_comments(text, mark):
    """Each run of lines that are comments and nothing else: its first line's number, and its lines."""
    start, lines = 0, []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        match = mark.match(line)
        if match and match[1]:
            start = start if lines else number
            lines.append(match[1].strip())
        elif lines:
            yield start, lines
            lines = []


def sentences(start, lines):
    """Each sentence of such a run, with the number of the line that it begins in."""
    ends = list(itertools.accumulate(len(line) + 1 for line in lines))
    for match in SENTENCE.finditer(" ".join(lines)):
        yield start + bisect.bisect_right(ends, match.start()), match[0]


def has_main_clause(part):
    words = [word.lower() for word in WORD.findall(part)]
    while words and words[0] in JOINERS:
        words.pop(0)
    return bool(words) and words[0] not in NO_CLAUSE


def has_common_verb(clause):
    """Whether one of VERBS is in it that no word before makes a subordinate clause's."""
    words = [word.lower() for word in WORD.findall(clause)][1:]
    first = next((i for i, word in enumerate(words) if word in CLAUSES), len(words))
    num_verbs = sum(word in VERBS for word in words)
    return bool(VERBS.intersection(words[:first])) or num_verbs > sum(word in CLAUSES for word in words)


def is_fragment(sentence):
    """Whether it opens as a part of another one, and nothing after that says who does what."""
    if THAT.match(sentence):
        return True
    if not OPENING.match(sentence):
        return False
    first, *others = PART.split(sentence)
    return not has_common_verb(first) and ("," not in sentence or not any(map(has_main_clause, others)))


def check_file(path, text):
    for run in own_line_comments(text, MARKS[pathlib.Path(path).suffix]):
        for line, sentence in sentences(*run):
            if is_fragment(sentence):
                yield Violation(path, line, "comment", f"`{sentence}` is no whole sentence")


def check_tree(root):
    """All violations in the tree below `root`."""
    return [violation for path in include_rules.source_paths(root, tuple(MARKS))
            for violation in check_file(path, (root / path).read_text("utf-8"))]
