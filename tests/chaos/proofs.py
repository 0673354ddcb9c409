# SPDX-License-Identifier: Apache-2.0
"""Rows of the matrix that tests prove: these are run by ctest, in the folder of the programs' build."""
from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import subprocess
import tempfile
import time
import xml.etree.ElementTree

from cluster import BIN

BUILD = BIN.parent


@dataclasses.dataclass
class Proof:
    """What was found of a row that tests prove."""
    row: object
    num_tests: int = 0  # of GoogleTest, which ctest runs suite by suite
    suites: list = dataclasses.field(default_factory=list)
    failures: list = dataclasses.field(default_factory=list)  # suites that failed, and tests that are not there
    seconds: float = 0
    origin: dict = dataclasses.field(default_factory=dict)


def prove(row):
    begin = time.monotonic()
    proof = Proof(row)
    with tempfile.TemporaryDirectory(prefix="outrider-chaos-") as folder:
        results = pathlib.Path(folder) / "junit.xml"
        said = subprocess.run(
            ["ctest", "--test-dir", BUILD, "-R", "|".join(_whole(pattern) for pattern in row.tests), "-j", str(os.cpu_count()),
             "--output-junit", results, "--test-output-size-passed", str(1 << 20)], capture_output=True, text=True, check=False)
        suites = _suites(results)
    for pattern in row.tests:
        if not any(re.match(_whole(pattern), name) for name in suites):
            proof.failures.append(f"{pattern} is not built in {BUILD}: cmake --build --preset release")
    for name, (is_passed, num_tests) in suites.items():
        proof.suites.append(name)
        proof.num_tests += num_tests
        if not is_passed:
            proof.failures.append(f"{name} failed")
    if said.returncode != 0 and not proof.failures:
        proof.failures.append(f"ctest ended with {said.returncode}: {said.stderr[-500:]}")
    proof.seconds = time.monotonic() - begin
    return proof


def _whole(pattern):
    return f"^{pattern}$"


def _suites(path):
    """Tells of each suite that ctest has run whether it passed, and how many tests it has said that it ran."""
    if not path.exists():
        return {}
    found = {}
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        said = re.search(r"\[==========\] (\d+) tests? from \d+ test suites? ran", case.findtext("system-out") or "")
        found[case.get("name")] = (case.get("status") == "run", int(said[1]) if said else 0)
    return found
