#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the images and really runs the Deployments of the overlay local-cpu, by podman.

  containers.py [--from-source | --no-build] [--folder DIR] [--require]

The pods come from the rendered manifests, with their security context, init
container, volumes, flags and limits. Text is generated through them; the
drafter's pod, then the verifier's, is replaced in the middle of a stream; the
load test measures, with a smaller grid. Podman knows neither Services nor gRPC
probes nor NetworkPolicies: names of Services become names of pods, $(NAME) in
args is filled in here, and the probes are asked by this program.
--from-source compiles inside the image, in place of taking build/release/bin.
"""
import argparse
import contextlib
import copy
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

import yaml

import manifests
import meaning
import probes
from podman import BASE_IMAGE, NETWORK, CommandError, Engine, why_not

LOAD_TESTS = {"load-test": "overlays/load-test", "load-test-of-services": "check/load-test-of-services"}
IMAGES = ("coordinator", "node-cpu", "demo-models")
ROLES = ("verifier", "drafter", "coordinator")
PROMPT = "def merge(left, right):"
STREAM = ["--temperature", "0", "--ignore-eos", "--max-tokens", "400", PROMPT]


def say(what):
    print(f"[{time.monotonic() - START:5.0f} s] {what}", flush=True)


START = time.monotonic()
NOT_RUN = 77  # as ctest has it


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


def pod_name(role):
    return f"outrider-{role}-pod-0"


def named(things, name):
    return next(thing for thing in things if manifests.name_of(thing) == name)


def to_pods(word):
    """A word with names of pods for those of Services."""
    for role in ROLES:
        word = re.sub(rf"\boutrider-{role}:(?=\d)", f"{pod_name(role)}:", word)
    return word


def to_play(things, role):
    """One role's Deployment, in the form that podman understands."""
    thing = copy.deepcopy(named(things, f"Deployment/outrider-{role}"))
    for container in meaning.pod_of(thing)["containers"]:
        words = meaning.arguments(container, things)[len(container["command"]):]
        container["args"] = [to_pods(word) for word in words]
        del container["envFrom"]
        del container["ports"]  # podman would take them on the host
    # An end has to be seen here; a kubelet would start the container again.
    meaning.pod_of(thing)["restartPolicy"] = "Never"
    # Podman 4.3 trips over removing an init container that has just ended.
    thing["metadata"]["annotations"] = {
        "io.podman.annotations.init.container.type": "always"}
    return thing


def to_play_once(job, name):
    """A Job's pod, as podman knows no Jobs; its bench has a smaller grid."""
    spec = copy.deepcopy(meaning.pod_of(job))
    small = {"--rtt": "0,5", "--k": "0,4", "--concurrency": "2", "--repeat": "1"}
    for container in spec["initContainers"] + spec["containers"]:
        container["command"] = [to_pods(word) for word in container["command"]]
    bench, = spec["containers"]
    for i, word in enumerate(bench["args"]):
        flag, _, value = to_pods(word).partition("=")
        if flag != "--rtt" or value != "0":
            value = small.get(flag, value)
        bench["args"][i] = f"{flag}={value}" if value else flag
    bench["args"].append("--seconds=1")
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": {
        "name": name, "annotations": {"io.podman.annotations.init.container.type": "always"}}}


class Cluster:
    """The three pods."""

    def __init__(self, engine, things):
        self.engine = engine
        self.files = {}
        self.containers = {role: meaning.pod_of(named(things, f"Deployment/outrider-{role}"))["containers"][0]
                           for role in ROLES}
        for role in ROLES:
            self.files[role] = engine.folder / f"{role}.yaml"
            self.files[role].write_text(yaml.safe_dump(to_play(things, role)))

    def start(self, role):
        self.engine.play(self.files[role])
        self.wait_until_healthy(role)

    def wait_until_healthy(self, role):
        def healthy():
            state = self.engine.container(self.name(role))["State"]
            expect(state["Running"], f"{role} has ended: {self.engine.logs(self.name(role))}")
            return self.page(role, "/health")
        wait_until(f"{role} is healthy", healthy)
        expect(all(self.probes(role).values()), f"{role} is healthy, but its probes say {self.probes(role)}")

    def name(self, role):
        return f"{pod_name(role)}-{role}"

    def address(self, role):
        pod = self.engine.run("podman", "pod", "inspect", pod_name(role), "--format", "{{.InfraContainerID}}")
        return self.engine.container(pod.stdout.strip())["NetworkSettings"]["Networks"][NETWORK]["IPAddress"]

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
        for name in (*LOAD_TESTS, *map(pod_name, reversed(ROLES))):
            self.engine.remove_pod(name, seconds=10)
        self.engine.run("podman", "network", "rm", "--force", NETWORK, check=False)


def check_generation(cluster):
    run = cluster.engine.run(*cluster.generate_words("-k", "0", *STREAM))
    drafted = cluster.engine.run(*cluster.generate_words("-k", "4", *STREAM))
    expect(drafted.stdout == run.stdout, "greedy output differs between K = 4 and K = 0")
    say(f"generated through the containers: {drafted.stderr.strip().splitlines()[0]}")
    return run.stdout


def check_security(cluster):
    """The profile of the manifests is in force, not merely asked for."""
    for role in ROLES:
        status = pathlib.Path(f"/proc/{cluster.pid(role)}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        expect(fields["Uid"].split()[0] == "65532", f"{role} runs as user {fields['Uid'].split()[0]}")
        expect(int(fields["CapEff"], 16) == 0, f"{role} has capabilities {fields['CapEff']}")
        expect(fields["NoNewPrivs"] == "1", f"{role} may gain privileges")
        expect(fields["Seccomp"] == "2", f"{role} has no seccomp filter")
        write = cluster.engine.run("podman", "exec", cluster.name(role), "touch", "/x", check=False)
        expect("Read-only file system" in write.stderr, f"{role} may write to its root: {write.stderr}")
    say("all three: user 65532, no capabilities, no new privileges, seccomp, read-only root")


def check_drafter_replaced(cluster, plain):
    drafter = cluster.pid("drafter")
    stream, verifier = cluster.stream_that_stands_still()
    cluster.engine.kill(drafter)
    cluster.engine.thaw(verifier)
    expect(stream.wait() == 0, f"the client saw an error ({stream.wait()}): {stream.err()}")
    expect(stream.out() == plain, "the output differs from plain decoding")
    cluster.engine.remove_pod(pod_name("drafter"), seconds=0)
    cluster.start("drafter")
    wait_until("drafting goes on", lambda: "outrider_spec_engaged{" in (page := cluster.page("coordinator", "/metrics"))
               and page.split("outrider_spec_engaged{")[1].split("\n")[0].endswith(" 1"))
    say("the drafter's pod was replaced in a stream: no client error, same output, drafting again")


def check_verifier_replaced(cluster, plain):
    stream, verifier = cluster.stream_that_stands_still()
    cluster.engine.kill(verifier)  # no drain: gone in the middle
    code, out, err = stream.wait(), stream.out(), stream.err()
    if code == 0:
        expect(out == plain, "the output differs from plain decoding")
        how = "the stream went on elsewhere"
    else:
        expect("UNAVAILABLE: the verifier does not answer" in err and "resume" in err,
               f"the client was not told clearly: {err}")
        expect(plain.startswith(out), "what was delivered is no prefix of plain decoding")
        how = "the client was told, in words, to resume"
    cluster.engine.remove_pod(pod_name("verifier"), seconds=0)
    cluster.start("verifier")
    wait_until("the coordinator serves again", lambda: cluster.engine.run(
        *cluster.generate_words("-k", "4", *STREAM), check=False).stdout == plain)
    say(f"the verifier's pod was killed in a stream: {how}; served again by its successor")


def check_drain(cluster, plain):
    """SIGTERM, as a rollout sends it: the stream ends well before the pod does."""
    stream, verifier = cluster.stream_that_stands_still()
    address = cluster.address("verifier")
    # Not by podman, which takes the pod's network away at the same time; a kubelet does not.
    cluster.engine.terminate(verifier)
    cluster.engine.thaw(verifier)
    answers = probes.answers(address, cluster.containers["verifier"])
    expect(answers["livenessProbe"] and not answers["readinessProbe"], f"while it drains the probes say {answers}")
    expect(stream.wait() == 0 and stream.out() == plain, f"a draining verifier lost a stream: {stream.err()}")
    state = wait_until("the verifier has ended", lambda: (
        now := cluster.engine.container(cluster.name("verifier"))["State"]) and not now["Running"] and now)
    expect(state["ExitCode"] == 0, f"the verifier ended with {state['ExitCode']}")
    say("the verifier drained on SIGTERM: alive and not ready, the stream was served to its end, exit status 0")


def check_load_test(cluster, name, overlay):
    """The Job's pod: its bench ends well, and every request was answered."""
    job = named(manifests.render(overlay), "Job/outrider-load-test")
    path = cluster.engine.folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(to_play_once(job, name)))
    cluster.engine.play(path)
    state = wait_until("the load test has ended", lambda: (
        now := cluster.engine.container(f"{name}-bench")["State"]) and not now["Running"] and now, patience=180)
    words = cluster.engine.logs(f"{name}-bench")
    expect(state["ExitCode"] == 0, f"the load test ended with {state['ExitCode']}: {words}")
    best = [line for line in words.splitlines() if line.strip()]
    say(f"{name} has measured: {best[-1].strip()}")
    cluster.engine.remove_pod(name, seconds=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from-source", action="store_true", help="compile inside the image")
    parser.add_argument("--no-build", action="store_true", help="take the images of the last run")
    parser.add_argument("--folder", default="/var/tmp/outrider-check", help="keeps the images")
    parser.add_argument("--require", action="store_true", help="fail where it cannot run")
    flags = parser.parse_args()
    if reason := why_not():
        print(f"NOT RUN: images were not built and pods not started: {reason}", file=sys.stderr)
        return 1 if flags.require else NOT_RUN

    engine = Engine(flags.folder)
    things = manifests.render(manifests.DEPLOY / "overlays/local-cpu")
    try:
        say("base image (debootstrap, unless it is there)")
        engine.make_base()
        how = [] if flags.from_source else ["--prebuilt", meaning.binaries_folder()]
        say("images that are there" if flags.no_build else
            f"images {', '.join(IMAGES)}, {'compiled inside' if flags.from_source else 'from build/release/bin'}")
        if not flags.no_build:
            engine.run(meaning.ROOT / "deploy/images/build.sh", "--base", BASE_IMAGE, *how, *IMAGES,
                       timeout=7200)
        cluster = Cluster(engine, things)
        with contextlib.ExitStack() as stack:
            cluster.take_down()  # what an interrupted run left
            stack.callback(cluster.take_down)
            engine.run("podman", "network", "create", NETWORK)
            for role in ROLES:
                cluster.start(role)
                say(f"{role} runs")
            check_security(cluster)
            plain = check_generation(cluster)
            check_drafter_replaced(cluster, plain)
            check_verifier_replaced(cluster, plain)
            for name, overlay in LOAD_TESTS.items():
                check_load_test(cluster, name, manifests.DEPLOY / overlay)
            check_drain(cluster, plain)
        say("taken down. Not checked here, as podman has none: Services, NetworkPolicies, a kubelet's probing")
    except (CheckFailed, CommandError, subprocess.TimeoutExpired) as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
