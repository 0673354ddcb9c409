# SPDX-License-Identifier: Apache-2.0
"""The rule on comments and docstrings, as a function from a file's text to violations.

A comment is whole sentences, each of them. One that opens with a bare preposition ("To
the last Describe."), with a conjunction ("Though the request names K."), with "And" or
"Also", or with a "That" which begins a clause ("That a round may have."), leaves the
newcomer to guess who does what. Such a sentence is whole where its main clause holds a
verb, either in its first part ("In a container the path may be another.") or in one after
a comma ("In a resumed stream, penalties see ..."), but for parts that open with another
preposition or with a word that makes them subordinate ("Of a session that holds, between
two attempts."). What follows a colon or a semicolon is another sentence ("In [0, 10]; 0 is
greedy."). This rule has no grammar: it knows the verbs that are listed here, and takes
each word that opens a subordinate clause to need one of them. Where it finds a whole
sentence all the same, that one's verb belongs to the list.
"""
import ast
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
SUBORDINATORS = ("after although as because before if lest once since so than that though unless until when where whereas "
                 "whether which while who whom whose").split()
JOINERS = "all also and both but else not or then".split()
NO_CLAUSE = {*SUBORDINATORS, *map(str.lower, PREPOSITIONS)}
PART, STOP, WORD = re.compile(r",\s"), re.compile(r"[;:]\s"), re.compile(r"\w+")
CODE = re.compile(r"`[^`]*`")
# Any sentence may have one of these, and nothing else looks like them.
VERBS = set("am are can cannot could did do does had has have is may might must shall should was were will would".split())
# These are verbs more often than not, with their s; nouns as common (call, draft, end, pass, row) are left out.
STEMS = """accept add allow appear apply arrive ask await become begin belong break bring build cancel carry catch choose
    come compare compile compute connect contain continue correct decide depend describe die differ exist fail fall fill
    find follow forget get give go grow happen hold ignore join keep know lack leave let lie listen lose make matter mean
    meet mind multiply notice obey pay print put refuse remain remember repeat replace require say see seem send serve
    speak stand stay suffice take tell throw tread try want win write yield""".split()
# Those of these forms alone: others are nouns or participles.
OTHER_FORMS = """became began broke came counts fits gave grew knew looks matches misses needs promises ran reads releases
    returns runs sets shows spreads starts stops took waits went works wrote""".split()
# What ends in s after one of these is a verb: "it drafts"; and so after one word more: "a round drafts".
PRONOUNS = "each everybody he it nobody nothing one somebody this".split()
SINGULAR = "a an another each every one this".split()
# Each of these takes a verb for its own clause.
CLAUSES = {*SUBORDINATORS, *"how however what whatever whichever whoever why".split()} - {"as", "so", "than"}
CONJUNCTIONS = "Although Because However Though Unless While".split()
CONJUNCTION = re.compile(rf"(?:As|Since|Until|{'|'.join(CONJUNCTIONS)})\s|Before (?:it|they)\s")
OPENING = re.compile(rf"(?:{'|'.join([*PREPOSITIONS, *CONJUNCTIONS])}|Also|And|But|Nor|Or)\s")
# "That" before one of these means no thing that was named: it begins a clause, or stands for a word to be guessed.
THAT = re.compile(r"So that\s|That(?:,|\s(?:an?|the|each|every|its|no|of|others|their|what)\s)")
SENTENCE = re.compile(r"\S.*?[.!?](?=\s|$)|\S.*")
SLASHES, HASH = re.compile(r"\s*///?(?:\s+(.*)|$)"), re.compile(r"\s*#(?:\s+(.*)|$)")
QUOTES = re.compile(r"""^\s*[rRuU]?["']+|["']+\s*$""")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
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


def docstrings(text):
    """Each paragraph of Python's docstrings: its first line's number, and its lines."""
    source = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, DOCUMENTED) or ast.get_docstring(node) is None:
            continue
        first, last = node.body[0].value.lineno, node.body[0].value.end_lineno
        lines = [QUOTES.sub("", line).strip() for line in source[first - 1:last]]
        for is_text, run in itertools.groupby(enumerate(lines, start=first), key=lambda numbered: bool(numbered[1])):
            if is_text:
                numbers, paragraph = zip(*run)
                yield numbers[0], paragraph


def sentences(start, lines):
    """Each sentence of such a run, with the number of the line that it begins in."""
    ends = list(itertools.accumulate(len(line) + 1 for line in lines))
    for match in SENTENCE.finditer(" ".join(lines)):
        yield start + bisect.bisect_right(ends, match.start()), match[0]


def third_person(stem):
    if stem.endswith("y") and stem[-2] not in "aeou":
        return stem[:-1] + "ies"
    return stem + ("es" if stem.endswith(("ch", "o", "s", "x")) else "s")


FINITE = {*STEMS, *map(third_person, STEMS), *OTHER_FORMS}
INFINITIVE, NO_VERB = {*VERBS, "not", "to"}, {"a", "an", "no", "the"}


def is_verb(word, before, two_before):
    """Whether `word` is a clause's own verb, and no infinitive, where it comes after these two."""
    if word in ("do", "have") or word in FINITE:
        return before not in INFINITIVE | NO_VERB
    ends_in_s = len(word) > 2 and re.search("[^su]s$", word) and word not in ("as", "its", "this", *NO_CLAUSE)
    return word in VERBS or bool(ends_in_s and (
        before in PRONOUNS or (two_before in SINGULAR and before != "few" and before not in NO_CLAUSE)))


def has_main_verb(words, num_clauses=0):
    """Whether more of them are verbs than open subordinate clauses, or one comes before these."""
    is_opening = [word in CLAUSES for word in words]
    verbs = [is_verb(*last_three) for last_three in zip(words, ["", *words], ["", "", *words])]
    first = is_opening.index(True) if True in is_opening else len(words)
    return (not num_clauses and any(verbs[:first])) or sum(verbs) > sum(is_opening) + num_clauses


def is_main_clause(part):
    words = list(itertools.dropwhile(JOINERS.__contains__, WORD.findall(part)))
    return bool(words) and words[0] not in NO_CLAUSE and has_main_verb(words)


def is_fragment(sentence):
    """Whether it opens as a part of another one, and nothing after that says who does what."""
    if THAT.match(sentence):
        return True
    if not OPENING.match(sentence):
        return False
    first, *others = PART.split(STOP.split(CODE.sub("CODE", sentence))[0])
    if has_main_verb(WORD.findall(first)[1:], num_clauses=bool(CONJUNCTION.match(sentence))):
        return False
    return not any(map(is_main_clause, others))


def check_file(path, text):
    suffix = pathlib.Path(path).suffix
    runs = itertools.chain(own_line_comments(text, MARKS[suffix]), docstrings(text) if suffix == ".py" else ())
    for start, lines in runs:
        for line, sentence in sentences(start, lines):
            if is_fragment(sentence):
                yield Violation(path, line, "comment", f"`{sentence}` is no whole sentence")


def check_tree(root):
    """All violations in the tree below `root`."""
    return [violation for path in include_rules.source_paths(root, tuple(MARKS))
            for violation in check_file(path, (root / path).read_text("utf-8"))]
