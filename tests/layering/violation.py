# SPDX-License-Identifier: Apache-2.0
from typing import NamedTuple


class Violation(NamedTuple):
    """A broken rule, where, and why; prints as compilers print."""
    path: str
    line: int
    rule: str
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.text}"
