# SPDX-License-Identifier: Apache-2.0
"""Podman and buildah as root, with a storage and a configuration of their own: nobody else's is touched."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import manifests
import meaning

sys.path.insert(0, str(meaning.ROOT / "tools"))

from program import Program  # noqa: E402

NEEDED = ("buildah", "podman", "runc", "debootstrap", "catatonit")
BASE_IMAGE = "localhost/debian:12-slim"
NETWORK = "outrider-check"

CONTAINERS_CONF = """[containers]
# The defaults exceed what a machine that is a container itself may set.
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
# crun refuses hybrid cgroups.
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
STORAGE_CONF = """[storage]
driver = "vfs"
runroot = "{folder}/run"
graphroot = "{folder}/storage"
"""


class CommandError(Exception):
    """A command failed; its last words."""


def why_not():
    """What keeps the container part from running here, or nothing."""
    if os.geteuid() != 0:
        return "it needs root"
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed"
    wanted = manifests.kubectl_wanted()
    return f"it needs {wanted}" if wanted else None


class Engine:
    """`folder` keeps images between runs."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "containers.conf").write_text(CONTAINERS_CONF)
        (self.folder / "storage.conf").write_text(STORAGE_CONF.format(folder=self.folder))
        self.environment = {**os.environ, "CONTAINERS_CONF": str(self.folder / "containers.conf"),
                            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
                            "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}

    def run(self, *words, check=True, timeout=1800):
        run = subprocess.run([str(word) for word in words], env=self.environment, text=True,
                             stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
        if check and run.returncode != 0:
            last = "\n".join((run.stdout + run.stderr).splitlines()[-15:])
            raise CommandError(f"{' '.join(map(str, words[:4]))} ...: exit status {run.returncode}\n{last}")
        return run

    def start(self, *words):
        """A command that runs on."""
        return Program(*words, environment=self.environment)

    def have_image(self, name):
        return self.run("podman", "image", "exists", name, check=False).returncode == 0

    def make_base(self):
        """Debian 12 from a mirror, as no registry may be in reach."""
        if self.have_image(BASE_IMAGE):
            return
        root = self.folder / "rootfs"
        shutil.rmtree(root, ignore_errors=True)
        self.run("debootstrap", "--variant=minbase", "bookworm", root)
        container = self.run("buildah", "from", "scratch").stdout.strip()
        self.run("buildah", "copy", "-q", container, root, "/")
        self.run("buildah", "commit", "-q", container, BASE_IMAGE)
        self.run("buildah", "rm", container)
        shutil.rmtree(root)

    def play(self, path, names=()):
        """The names find it, beside its own; several pods may have one."""
        network = ",".join([NETWORK + ":" * bool(names) + ",".join(f"alias={name}" for name in names)])
        self.run("podman", "kube", "play", "--network", network, path)

    def remove_pod(self, name, seconds=None):
        """Stops by SIGTERM, at most this long, and removes."""
        grace = [] if seconds is None else ["--time", seconds]
        self.run("podman", "pod", "stop", *grace, name, check=False)
        self.run("podman", "pod", "rm", "--force", name, check=False)

    def container(self, name):
        """What podman knows of it."""
        return json.loads(self.run("podman", "inspect", "--type", "container", name).stdout)[0]

    def logs(self, name):
        run = self.run("podman", "logs", name, check=False)
        return run.stdout + run.stderr

    # These take a pid, and so act at once: podman itself takes seconds.
    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)

    def terminate(self, pid):
        os.kill(pid, signal.SIGTERM)

    def freeze(self, pid):
        os.kill(pid, signal.SIGSTOP)

    def thaw(self, pid):
        os.kill(pid, signal.SIGCONT)
