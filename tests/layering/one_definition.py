# SPDX-License-Identifier: Apache-2.0
"""C++'s one-definition rule over the tree: what is defined twice under one name.

Linkers keep one of two definitions and do not say so; a program that holds two classes of
one name is wrong in ways that only inlining hides. Compilers see it with -flto -Wodr alone,
which costs a second build of everything; the text says the same in a second.
"""
import re
from typing import NamedTuple

from violation import Violation

TOKEN = re.compile(r'''
    //[^\n]* | /\*.*?\*/ |                              # comments
    R"(?P<tag>[^()\s]{0,16})\(.*?\)(?P=tag)" |          # raw strings
    "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+' |         # strings and characters
    ^[ \t]*\#(?:\\\n|[^\n])* |                          # preprocessor lines
    \d(?:'?[\w.])* | \w+ | :: | \S''', re.VERBOSE | re.DOTALL | re.MULTILINE)
DROPPED = ("//", "/*", "#")
TYPE = {"class", "struct", "union", "enum"}
OPENING, CLOSING = ("(", "{"), (")", "}")
PARAMETERS, BODY = "(", "{"


class Definition(NamedTuple):
    name: str  # with its namespaces; of a function with its parameters, too
    path: str
    line: int


def tokens(text):
    """(word, line) of what is code."""
    line, at = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        word = match[0]
        if not word.lstrip().startswith(DROPPED):
            yield word, line


def definitions(path, text):
    """The types and functions that `text` defines for other translation units to see."""
    scopes = []  # what is open: a namespace by its name, PARAMETERS, or BODY for all else
    head, first_line = [], 0  # the words since the last declaration ended
    for word, line in tokens(text):
        was_body = BODY in scopes
        if word in OPENING:
            scopes.append(PARAMETERS if word == "(" else BODY if was_body else namespace_of(head))
        elif word in CLOSING and scopes:
            scopes.pop()
        if was_body or word == "}":
            if not {BODY, PARAMETERS} & set(scopes):
                head = []  # the body has ended, and with it the declaration
            continue
        if word == "{" and scopes[-1] == BODY and PARAMETERS not in scopes:
            if name := defined_name(head):
                yield Definition("::".join([*scopes[:-1], name]), path, first_line)
        if word in "{;" and PARAMETERS not in scopes:
            head = []
        elif word != "{":
            first_line = first_line if head else line
            head.append(word)


def namespace_of(head):
    """The namespace that opens, or BODY: what is in an unnamed one is its file's own."""
    if "namespace" not in head[:2]:
        return BODY
    return "".join(head[head.index("namespace") + 1:]) or BODY


def defined_name(head):
    """What `head` and the brace after it define, or None: nothing, or not for others to see."""
    head = without_template(head)
    if not head or "namespace" in head[:2] or "static" in head:
        return None
    if head[0] in TYPE:
        return type_name(head)
    opening = head.index("(") if "(" in head else 0
    if opening == 0 or "=" in head[:opening]:
        return None  # a variable: constants are their file's own
    return "".join(function_name(head[:opening]) + parameters(head[opening:]))


def without_template(head):
    """`head` after its template <...>."""
    if head[:1] != ["template"]:
        return head
    depth = 0
    for i, word in enumerate(head[1:], 1):
        depth += {"<": 1, ">": -1}.get(word, 0)
        if depth == 0:
            return head[i + 1:]
    return []


def type_name(head):
    """Finds `Name` in `enum class [[nodiscard]] Name final : Base`; a specialisation keeps its arguments."""
    words = [word for word in head if word not in TYPE and word != "final"]
    if ":" in words:
        words = words[:words.index(":")]
    return re.sub(r"\[\[.*?\]\]", "", "".join(words)) or None


def function_name(words):
    """The qualified name that ends a declaration: of `absl::Status A<T>::B`, `A<T>::B`."""
    start = len(words) - 1
    while start > 1 and words[start - 1] in ("::", "~"):
        start -= 1 if words[start - 1] == "~" else 2
        if words[start] == ">":
            start = opening_bracket(words, start) - 1
    return words[start:]


def opening_bracket(words, closing):
    """The index of the `<` of the template arguments that end at `closing`."""
    depth = 0
    for i in range(closing, 0, -1):
        depth += {">": 1, "<": -1}.get(words[i], 0)
        if depth == 0:
            return i
    return closing


def parameters(words):
    """`(const A& a) const` of `(const A& a) const : b_(a)`: what tells overloads apart."""
    depth = 0
    for i, word in enumerate(words):
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth == 0:
            end = i + 2 if words[i + 1:i + 2] == ["const"] else i + 1
            return [" ".join(words[:end])]
    return words


def check_files(files):
    """Violations in {path: text}, of which each type and function of ours may be in one only."""
    seen = {}
    for path, text in sorted(files.items()):
        for definition in definitions(path, text):
            if not definition.name.startswith("outrider::"):
                continue
            first = seen.setdefault(definition.name, definition)
            if first.path != path:
                yield Violation(path, definition.line, "one-definition",
                                f"`{definition.name}` is defined in {first.path}, too")
