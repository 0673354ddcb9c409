# SPDX-License-Identifier: Apache-2.0
"""Which build this is."""
from __future__ import annotations

import importlib.resources

VERSION = "0.1.0"


def commit() -> str | None:
    """The commit of an image, by its first digits; nothing where `deploy/images/collect.sh` has not said it."""
    try:
        return importlib.resources.files(__package__).joinpath("commit.txt").read_text("utf-8").strip()
    except FileNotFoundError:
        return None


def words() -> str:
    return " ".join(["outrider-gateway", VERSION, commit() or ""]).rstrip()
