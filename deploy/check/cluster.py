# SPDX-License-Identifier: Apache-2.0
"""The pods of an overlay, played by podman."""
import json
import time
import urllib.error
import urllib.request

import yaml

import meaning
import probes
from playing import ROLES, named, pod_name, service_names, to_play
from podman import NETWORK

PROMPT = "def merge(left, right):"
STREAM = ["--temperature", "0", "--ignore-eos", "--max-tokens", "400", PROMPT]
SUCCESSOR = "-next"
START = time.monotonic()


def say(what):
    print(f"[{time.monotonic() - START:5.0f} s] {what}", flush=True)


class CheckFailed(Exception):
    """What was seen in place of what had to be."""


def expect(condition, what):
    if not condition:
        raise CheckFailed(what)


def wait_until(what, condition, patience=90):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.5)
    raise CheckFailed(f"waited {patience} s in vain: {what}")


class Cluster:
    """The pods of a rendered overlay, one for each role, and in a roll-out its successor.

    Names of Services are aliases of pods on podman's network; secrets are folders of `engine.folder`."""

    def __init__(self, engine, things):
        self.engine = engine
        self.things = things
        self.generations = {role: "" for role in ROLES}  # of the pod that is meant where a role is named
        self.containers = {role: meaning.pod_of(named(things, f"Deployment/outrider-{role}"))["containers"][0]
                           for role in ROLES}

    def start(self, role):
        path = self.engine.folder / f"{role}.yaml"
        path.write_text(yaml.safe_dump(to_play(self.things, role, self.engine.folder, self.generations[role])))
        self.engine.play(path, service_names(self.things, role))
        self.wait_until_healthy(role)

    def wait_until_healthy(self, role):
        def healthy():
            state = self.engine.container(self.name(role))["State"]
            expect(state["Running"], f"{role} has ended: {self.engine.logs(self.name(role))}")
            return self.page(role, "/health")
        wait_until(f"{role} is healthy", healthy)
        expect(all(self.probes(role).values()), f"{role} is healthy, but its probes say {self.probes(role)}")

    def pod(self, role):
        return pod_name(role, self.generations[role])

    def name(self, role):
        return f"{self.pod(role)}-{role}"

    def address(self, role):
        pod = self.engine.run("podman", "pod", "inspect", self.pod(role), "--format", "{{.InfraContainerID}}")
        return self.engine.container(pod.stdout.strip())["NetworkSettings"]["Networks"][NETWORK]["IPAddress"]

    def remove(self, role):
        self.engine.remove_pod(self.pod(role), seconds=0)

    def start_successor(self, role):
        """Starts one beside the pod that there is, as a Deployment with a surge does; gives what ends that one."""
        before, pid = self.pod(role), self.pid(role)
        container = self.name(role)
        self.generations[role] = "" if self.generations[role] else SUCCESSOR
        self.start(role)

        def end():
            # Not by podman, which takes the pod's network away at the same time; a kubelet does not.
            self.engine.terminate(pid)
            state = wait_until(f"the {role} before has ended", lambda: (
                now := self.engine.container(container)["State"]) and not now["Running"] and now)
            expect(state["ExitCode"] == 0, f"the {role} before ended with {state['ExitCode']}")
            self.engine.remove_pod(before, seconds=0)
        return end

    def probes(self, role):
        return probes.answers(self.address(role), self.containers[role])

    def page(self, role, path):
        """A page over HTTP, from this machine; nothing where it does not answer well."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://{self.address(role)}:9090{path}", timeout=5) as reply:
                return reply.read().decode()
        except (urllib.error.URLError, OSError):
            return None

    def complete(self, address=None, **asked):
        """A whole reply of the gateway's /v1/completions, or of a gateway at this address."""
        body = json.dumps({"model": "demo-target", **asked}).encode()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{address or self.address('gateway')}:8000/v1/completions", body, timeout=60) as reply:
            return json.load(reply)

    def generate_words(self, *flags):
        """`outrider generate` inside the coordinator's own container."""
        return ["podman", "exec", self.name("coordinator"), "outrider", "generate",
                "--coordinator", "127.0.0.1:7000", *flags]

    def pid(self, role):
        return self.engine.container(self.name(role))["State"]["Pid"]

    def stream_that_stands_still(self):
        """A stream in its middle, as its verifier is stopped: the stream, and the verifier's pid."""
        pid = self.pid("verifier")
        stream = self.engine.start(*self.generate_words("-k", "4", *STREAM))
        while stream.runs() and not stream.out():
            time.sleep(0.005)
        self.engine.freeze(pid)
        expect(stream.runs(), f"the stream was over too soon to be interrupted: {stream.err()}")
        return stream, pid

    def take_down(self):
        for role in reversed(ROLES):
            for generation in ("", SUCCESSOR):
                self.engine.remove_pod(pod_name(role, generation), seconds=10)
        self.engine.run("podman", "network", "rm", "--force", NETWORK, check=False)
