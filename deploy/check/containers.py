#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the images and really runs the Deployments of local-cpu, in plain text and by TLS, by podman.

  containers.py [--from-source | [--no-build] [--cuda]] [--folder DIR] [--require]

The pods come from the rendered manifests, with their security context, init
container, volumes, flags and limits. Text is generated through them; the
drafter's pod, then the verifier's, is replaced in the middle of a stream; each role
is rolled out under load; the load test measures, with a smaller grid. SIGTERM ends a
program that loads. Podman knows neither Services nor gRPC probes nor NetworkPolicies:
names of Services become names on its network, which several pods may have, $(NAME) in
args is filled in here, secrets are folders, and the probes are asked by this program.
--from-source compiles inside the image, in place of taking build/release/bin.
--cuda builds node-cuda too, with the kernels of build/release/lib (`make kernels`, which
takes the CUDA Toolkit, as no image has it: so not with --from-source), and sees that
its programs load them; it needs no GPU and uses none.
"""
import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import yaml

import manifests
import meaning
import probes
from cluster import PROMPT, STREAM, CheckFailed, Cluster, expect, say, wait_until
from playing import ROLES, named, service_names, to_play_once
from podman import BASE_IMAGE, NETWORK, CommandError, Engine, why_not
from rolling import check_rolling_updates

sys.path.insert(0, str(meaning.ROOT / "tests/integration"))

from certificates import Authority  # noqa: E402

IMAGES = ("coordinator", "gateway", "node-cpu", "demo-models")
LOAD_TESTS = {"load-test": "overlays/load-test", "load-test-of-services": "check/load-test-of-services"}
NOT_RUN = 77  # as ctest has it


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
    say("all four: user 65532, no capabilities, no new privileges, seccomp, read-only root")


def check_gateway(cluster, plain):
    """The same text over HTTP, and the probes while a request keeps it from ending."""
    asked = {"prompt": PROMPT, "temperature": 0, "ignore_eos": True}
    text = cluster.complete(max_tokens=400, **asked)["choices"][0]["text"]
    # The command line writes the end of a line after the text.
    expect(text.rstrip("\n") == plain.rstrip("\n"), "the gateway's text is not that of `outrider generate`")
    expect('outrider_gateway_requests_total{route="/v1/completions",status="200"}' in
           (cluster.page("gateway", "/metrics") or ""),
           "the gateway's request is not in its metrics")
    say("the gateway serves the same text over HTTP, and counts it")


def check_gateway_drains(cluster):
    """SIGTERM with a request in flight: alive, not ready, the request is answered, exit status 0."""
    verifier, gateway = cluster.pid("verifier"), cluster.pid("gateway")
    cluster.engine.freeze(verifier)
    address = cluster.address("gateway")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reply = pool.submit(cluster.complete, prompt=PROMPT, max_tokens=8, temperature=0)
        wait_until("the request runs", lambda: "outrider_gateway_requests_running 1.0" in
                   (cluster.page("gateway", "/metrics") or ""))
        cluster.engine.terminate(gateway)
        answers = wait_until("it is no longer ready", lambda: (
            now := probes.answers(address, cluster.containers["gateway"])) and not now["readinessProbe"] and now)
        cluster.engine.thaw(verifier)
        expect(answers["livenessProbe"], f"while it drains the probes say {answers}: it would be killed")
        expect(reply.result(60)["usage"]["completion_tokens"] == 8, "a draining gateway lost a request")
    state = wait_until("the gateway has ended", lambda: (
        now := cluster.engine.container(cluster.name("gateway"))["State"]) and not now["Running"] and now)
    expect(state["ExitCode"] == 0, f"the gateway ended with {state['ExitCode']}")
    say("the gateway drained on SIGTERM: alive and not ready, the request was answered, exit status 0")


def check_drafter_replaced(cluster, plain):
    drafter = cluster.pid("drafter")
    stream, verifier = cluster.stream_that_stands_still()
    cluster.engine.kill(drafter)
    cluster.engine.thaw(verifier)
    expect(stream.wait(120) == 0, f"the client saw an error ({stream.wait(120)}): {stream.err()}")
    expect(stream.out() == plain, "the output differs from plain decoding")
    cluster.remove("drafter")
    cluster.start("drafter")
    wait_until("drafting goes on", lambda: "outrider_spec_engaged{" in (page := cluster.page("coordinator", "/metrics"))
               and page.split("outrider_spec_engaged{")[1].split("\n")[0].endswith(" 1"))
    say("the drafter's pod was replaced in a stream: no client error, same output, drafting again")


def check_verifier_replaced(cluster, plain):
    stream, verifier = cluster.stream_that_stands_still()
    cluster.engine.kill(verifier)  # no drain: gone in the middle, and there is no other
    cluster.remove("verifier")
    cluster.start("verifier")
    expect(stream.wait(120) == 0, f"the client saw an error ({stream.wait(120)}): {stream.err()}")
    expect(stream.out() == plain, "the output differs from plain decoding")
    wait_until("the coordinator serves again", lambda: cluster.engine.run(
        *cluster.generate_words("-k", "4", *STREAM), check=False).stdout == plain)
    say("the only verifier's pod was killed in a stream and replaced: the stream held, no client error, same output")


def blocks_sigterm(pid):
    """Whether it may be told to end: this is what a program does first."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["SigBlk"], 16) >> (signal.SIGTERM - 1) & 1


def check_signals(engine):
    """As its container's first process, which no default action ends, a verifier ends at once by SIGTERM while nobody
    waits for signals (it measures; in the same way it loads), and by a second one while it drains."""
    name = f"{NETWORK}-signals"
    where = ("--network", "none", "--user", "0", "--volume", f"{meaning.ROOT}/models:/models:ro")
    for flags, num_signals in ((["--measure"], 1), ([], 2)):
        engine.run("podman", "rm", "--force", name, check=False)  # what an interrupted run left
        with contextlib.ExitStack() as stack:
            stack.callback(engine.run, "podman", "rm", "--force", name, check=False)
            engine.run("podman", "run", "--detach", "--name", name, *where, "localhost/outrider-node-cpu:latest",
                       "outrider-verifier", "--model", "/models/demo-target", *flags)
            pid = engine.container(name)["State"]["Pid"]
            wait_until("it takes signals", lambda pid=pid, flags=flags:
                       blocks_sigterm(pid) if flags else "listening on" in engine.logs(name))
            for _ in range(num_signals):
                engine.terminate(pid)
                time.sleep(0.5)  # a drain of nobody's sessions takes longer
            time.sleep(1.5)
            state = engine.container(name)["State"]
            expect(not state["Running"] and state["ExitCode"] == 128 + signal.SIGTERM,
                   f"after {num_signals} SIGTERM the verifier {' '.join(flags)} runs ({state['Running']}) or ended with {state['ExitCode']}")
    say("as its container's first process a verifier that loads ends at SIGTERM, and one that drains at a second one")


def check_drain(cluster, plain):
    """SIGTERM, as a rollout sends it: the stream ends well before the pod does."""
    stream, verifier = cluster.stream_that_stands_still()
    address = cluster.address("verifier")
    # Not by podman, which takes the pod's network away at the same time; a kubelet does not.
    cluster.engine.terminate(verifier)
    cluster.engine.thaw(verifier)
    answers = wait_until("it is no longer ready", lambda: (
        now := probes.answers(address, cluster.containers["verifier"])) and not now["readinessProbe"] and now)
    expect(answers["livenessProbe"], f"while it drains the probes say {answers}: it would be killed")
    expect(stream.wait(120) == 0 and stream.out() == plain, f"a draining verifier lost a stream: {stream.err()}")
    state = wait_until("the verifier has ended", lambda: (
        now := cluster.engine.container(cluster.name("verifier"))["State"]) and not now["Running"] and now)
    expect(state["ExitCode"] == 0, f"the verifier ended with {state['ExitCode']}")
    say("the verifier drained on SIGTERM: alive and not ready, the stream was served to its end, exit status 0")


def check_load_test(engine, name, overlay):
    """The Job's pod: its bench ends well, so every request was answered; its results can be fetched then."""
    job = named(manifests.render(manifests.DEPLOY / overlay), "Job/outrider-load-test")
    path = engine.folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(to_play_once(job, name)))
    engine.remove_pod(name, seconds=0)  # what an interrupted run left
    with contextlib.ExitStack() as stack:
        stack.callback(engine.remove_pod, name, seconds=0)
        engine.play(path)
        state = wait_until("the load test has ended", lambda: (
            now := engine.container(f"{name}-bench")["State"]) and not now["Running"] and now, patience=180)
        words = engine.logs(f"{name}-bench")
        # This is what `kubectl cp` does: tar, in the container that still runs.
        fetched = engine.run("podman", "exec", f"{name}-results", "tar", "-cvf", "/dev/null", "/results").stdout
    expect(state["ExitCode"] == 0, f"the load test ended with {state['ExitCode']}: {words}")
    for file in ("results.jsonl", "report.html"):
        expect(f"/results/{file}" in fetched.split(), f"{file} is not among the results: {fetched}")
    say(f"{name} has measured: {words.strip().splitlines()[-1]}")


def make_secrets(engine, things):
    """What cert-manager would put into the roles' secrets, as folders that only their user may read."""
    folder = engine.folder / "authority"
    folder.mkdir(exist_ok=True)
    authority = Authority(folder)
    for role in ROLES:
        certificate, key = authority.sign(role, hosts=service_names(things, role))
        secret = engine.folder / f"outrider-{role}-tls"
        secret.mkdir(exist_ok=True)
        for name, source in (("ca.crt", authority.path), ("tls.crt", certificate), ("tls.key", key)):
            (secret / name).write_bytes(source.read_bytes())
            os.chown(secret / name, 0, meaning.USER)
            os.chmod(secret / name, 0o440)


def check_tls(cluster, plain):
    words = cluster.generate_words("-k", "4", *STREAM)
    certificate = ["--tls-ca=/tls/ca.crt", "--tls-cert=/tls/tls.crt", "--tls-key=/tls/tls.key"]
    run = wait_until("text comes by TLS", lambda: (
        now := cluster.engine.run(*words, *certificate, check=False)).returncode == 0 and now)
    expect(run.stdout == plain, "the output by TLS differs from that in plain text")
    for flags in ([], certificate[:1]):
        expect(cluster.engine.run(*words, *flags, check=False).returncode != 0,
               f"a client with {flags or 'nothing'} was served")
    check_gateway(cluster, plain)
    say("mutual TLS: the same text for a client with a certificate, nothing for one without")


@contextlib.contextmanager
def running(engine, overlay):
    """The pods of an overlay; what an interrupted run left is taken down before."""
    cluster = Cluster(engine, manifests.render(manifests.DEPLOY / overlay))
    cluster.take_down()
    try:
        engine.run("podman", "network", "create", NETWORK)
        for role in ROLES:
            cluster.start(role)
        say(f"{overlay}: {', '.join(ROLES)} run, and their probes say so")
        yield cluster
    finally:
        cluster.take_down()
    say(f"{overlay}: taken down")


def check_cuda_image(engine):
    """Its programs load the kernels for GPUs, which find no driver here."""
    where = ("--network", "none", "--user", "0", "--volume", f"{meaning.ROOT}/models:/models:ro")
    for program in ("outrider-verifier", "outrider-drafter"):
        run = engine.run("podman", "run", "--rm", *where, "localhost/outrider-node-cuda:latest",
                         program, "--model", "/models/demo-target", "--device", "cuda", check=False)
        expect(run.returncode != 0 and "no usable NVIDIA driver" in run.stderr,
               f"{program} --device cuda in node-cuda ended with {run.returncode}: {run.stderr[-500:]}")
    say("node-cuda: both programs load the kernels for GPUs, and say that there is no driver here")


def build(engine, from_source, images):
    say("base image (debootstrap, unless it is there)")
    engine.make_base()
    say(f"images {', '.join(images)}, {'compiled inside' if from_source else 'from build/release/bin'}")
    how = [] if from_source else ["--prebuilt", meaning.binaries_folder()]
    engine.run(meaning.ROOT / "deploy/images/build.sh", "--base", BASE_IMAGE, *how, *images, timeout=7200)


def check_all(engine):
    check_signals(engine)
    with running(engine, "overlays/local-cpu") as cluster:
        check_security(cluster)
        plain = check_generation(cluster)
        check_gateway(cluster, plain)
        check_drafter_replaced(cluster, plain)
        check_verifier_replaced(cluster, plain)
        for name, overlay in LOAD_TESTS.items():
            check_load_test(engine, name, overlay)
        check_rolling_updates(cluster, plain)
        check_gateway_drains(cluster)
        check_drain(cluster, plain)
    make_secrets(engine, manifests.render(manifests.DEPLOY / "check/local-tls"))
    with running(engine, "check/local-tls") as cluster:
        check_tls(cluster, plain)
    say("done. Not checked here, as podman has none: Services, NetworkPolicies, a kubelet's probing")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from-source", action="store_true", help="compile inside the image")
    parser.add_argument("--no-build", action="store_true", help="take the images of the last run")
    parser.add_argument("--cuda", action="store_true", help="build node-cuda too, and start its programs")
    parser.add_argument("--folder", default="/var/cache/outrider-check", help="keeps the images between runs; may be deleted")
    parser.add_argument("--require", action="store_true", help="fail where it cannot run")
    flags = parser.parse_args()
    if flags.cuda and flags.from_source:
        parser.error("--cuda does not go with --from-source: no stage of the Dockerfile has nvcc, so nothing compiles the kernels")
    if reason := why_not():
        print(f"NOT RUN: images were not built and pods not started: {reason}", file=sys.stderr)
        return 1 if flags.require else NOT_RUN
    engine = Engine(flags.folder)
    try:
        if not flags.no_build:
            build(engine, flags.from_source, IMAGES + ("node-cuda",) * flags.cuda)
        if flags.cuda:
            check_cuda_image(engine)
        check_all(engine)
    except (CheckFailed, CommandError, subprocess.TimeoutExpired) as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
