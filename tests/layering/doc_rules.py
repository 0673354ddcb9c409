# SPDX-License-Identifier: Apache-2.0
"""The rule on documents, as a function from a tree to violations.

What a document names in backticks is there: a file or folder by its path, a source
file by its name, a type by its name. A document that a source names is there too. So
whoever reads along finds what is spoken of.
"""
import pathlib
import re

import include_rules
from violation import Violation

CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+")
FILE = re.compile(r"(?<![\w./-])\w+\.(?:h|cc|cu)\b")
DOCUMENT = re.compile(r"[\w./-]*\b[\w-]+\.md\b")
TYPE = re.compile(r"\b(?:[A-Z][a-z0-9]+){2,}\b")
# Reports are made by programs; records of decisions speak of their time.
LEFT_OUT = ("docs/measured/", "docs/adr/", "THIRD_PARTY.md")
SPEAKING = (*include_rules.SUFFIXES, ".proto", ".py", ".yaml")


def missing(code, paths, names, types):
    """What `code`, which a document has in backticks, names and is not there."""
    for path in PATH.findall(code):
        if path.split("/")[0] in paths and path.rstrip(".") not in paths:
            yield path
    yield from (name for name in FILE.findall(code) if name not in names)
    yield from (name for name in TYPE.findall(code) if name not in types)


def check_tree(root):
    """All violations in the documents below `root`."""
    files = include_rules.source_paths(root, "")  # all of them
    paths = {str(folder) for path in files for folder in (pathlib.PurePath(path), *pathlib.PurePath(path).parents)}
    sources = [path for path in files if path.endswith(SPEAKING)]
    types = {word for path in sources for word in TYPE.findall((root / path).read_text("utf-8"))}
    names = {pathlib.PurePath(path).name for path in sources}
    documents = {pathlib.PurePath(path).name for path in files if path.endswith(".md")}

    def not_there(path, line):
        if path.endswith(".md"):
            for code in CODE.findall(line):
                yield from missing(code, paths, names, types)
        elif path.endswith(include_rules.SUFFIXES):
            yield from (name for name in DOCUMENT.findall(line) if pathlib.PurePath(name).name not in documents)

    return [Violation(path, number, "document", f"`{name}` is not there")
            for path in files if path.endswith((".md", *include_rules.SUFFIXES)) and not path.startswith(LEFT_OUT)
            for number, line in enumerate((root / path).read_text("utf-8").splitlines(), start=1)
            for name in not_there(path, line)]
