# SPDX-License-Identifier: Apache-2.0
"""Programs that log to a full disk, and coordinators that know their nodes by a name, which can be taken away."""
from __future__ import annotations

import pathlib
import subprocess
import tempfile

from cluster import Surroundings

NAME = "nodes.test"
LOGS_NOWHERE = ("sh", "-c", 'exec "$0" "$@" 2>/dev/full')
# A mount namespace of its own has files of its own.
OWN_FILES = ("unshare", "-m", "sh", "-c",
             'mount --bind "$0/hosts" /etc/hosts && mount --bind "$0/resolv.conf" /etc/resolv.conf && exec "$@"')


def lacks_namespaces():
    """Why a mount namespace cannot be had here, if so."""
    try:
        subprocess.run(["unshare", "-m", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return "needs an /etc/hosts of its own: root, and mount namespaces (in a container CAP_SYS_ADMIN)"
    return None


class NamesOnFullDisks(Surroundings):
    """A file has the name; the name service that is asked after it refuses."""
    coordinator_flags = ("--insecure", "--resolve-seconds", 1)

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="outrider-chaos-")
        self._hosts = pathlib.Path(self._folder.name) / "hosts"
        self.give()
        (self._hosts.parent / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n", encoding="ascii")

    def inside(self, name):
        own_files = (*OWN_FILES, self._folder.name) if name.startswith("coordinator") else ()
        return (*own_files, *LOGS_NOWHERE)

    def way(self, address):
        return f"{NAME}:{address.rpartition(':')[2]}"

    # The file is mounted, and so is written in place.
    def give(self):
        self._hosts.write_text(f"127.0.0.1 {NAME}\n", encoding="ascii")

    def take_away(self):
        self._hosts.write_text("", encoding="ascii")

    @staticmethod
    def is_known_to(member):
        """Whether the name can be resolved where that program is."""
        return subprocess.run(["nsenter", "--mount", "--target", str(member.pid), "getent", "ahosts", NAME],
                              capture_output=True, check=False).returncode == 0

    def close(self):
        self._folder.cleanup()
