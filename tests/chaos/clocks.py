# SPDX-License-Identifier: Apache-2.0
"""The clock that may be set, of each program alone: libfaketime's, which is loaded into the program."""
from __future__ import annotations

import datetime
import pathlib
import re
import tempfile

from cluster import BIN, Surroundings

FAKETIME = next(pathlib.Path("/usr").glob("lib/*/faketime/libfaketimeMT.so.1"), None)
WAITS = BIN.parent / "lib/liboutrider_clock_waits.so"
AHEAD = datetime.timedelta(minutes=50)  # what was logged so far from now was logged by a clock that had been set


def lacks_clocks():
    """Why clocks of their own cannot be had here, if so."""
    if FAKETIME is None:
        return "needs libfaketime: apt-get install faketime"
    return None if WAITS.exists() else f"needs {WAITS.name}, which is not built"


class Clocks(Surroundings):
    """Each program's is right until it is set. The steady clock cannot be set, and is nobody's but the machine's."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="outrider-chaos-")

    def inside(self, name):
        self._file(name).write_text("+0\n", encoding="ascii")
        return ("env", f"LD_PRELOAD={FAKETIME}:{WAITS}", f"FAKETIME_TIMESTAMP_FILE={self._file(name)}", "FAKETIME_NO_CACHE=1",
                "FAKETIME_DONT_FAKE_MONOTONIC=1")

    def set(self, members, seconds):
        """Sets their clocks so far from the right time."""
        for member in members:
            # Read at any moment, it is the old file or the new one.
            new = self._file("new")
            new.write_text(f"{seconds:+d}\n", encoding="ascii")
            new.rename(self._file(member.name))

    @staticmethod
    def is_seen_ahead(member):
        """Whether it has logged something by a clock that was ahead."""
        latest = max(re.findall(r"^(\d{4}-\S+)Z ", member.log(), re.MULTILINE))
        return datetime.datetime.fromisoformat(latest) > datetime.datetime.utcnow() + AHEAD

    def close(self):
        self._folder.cleanup()

    def _file(self, name):
        return pathlib.Path(self._folder.name) / name.replace(" ", "-")
