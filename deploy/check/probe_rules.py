# SPDX-License-Identifier: Apache-2.0
"""Whether a kubelet asks each program what it serves, and draws the right conclusion."""
from manifests import name_of
from meaning import arguments, flag, of_kind, pod_of, port_of

# What may be asked, by gRPC service and by HTTP path: liveness holds while a program drains, readiness does not;
# a start is over once either holds, but a coordinator that waits for verifiers has started.
RIGHT = {"startupProbe": ({"", "liveness"}, {"/live"}), "livenessProbe": ({"liveness"}, {"/live"}),
         "readinessProbe": ({"", "readiness"}, {"/health"})}
LONGEST_LOAD = {"outrider-verifier": 600, "outrider-drafter": 600}  # seconds that a large model takes
LONGEST_START = 60  # of other programs
SHORTEST_PATIENCE = 30


def check_probes(things):
    for thing in of_kind(things, "Deployment"):
        for container in pod_of(thing)["containers"]:
            words = arguments(container, things)
            for kind in RIGHT:
                if kind not in container:
                    yield f"{name_of(thing)}: container {container['name']} has no {kind}"
                    continue
                for problem in check_probe(kind, container[kind], words):
                    yield f"{name_of(thing)}: {kind} {problem}"


def check_probe(kind, probe, words):
    serving = {"grpc": port_of(flag(words, "listen")), "httpGet": port_of(flag(words, "metrics-listen"))}
    services, paths = RIGHT[kind]
    if kind == "startupProbe" and flag(words, "verifier"):
        services = {"liveness"}
    if not {"grpc", "httpGet"} & set(probe):
        yield "asks neither the gRPC server nor HTTP"
    for how in ("grpc", "httpGet"):
        if how in probe and probe[how]["port"] != serving[how]:
            yield f"asks port {probe[how]['port']}, but the program serves {serving[how]}"
    if "grpc" in probe:
        if flag(words, "tls-cert") is not None:
            yield "is gRPC, which the kubelet speaks without TLS only"
        if kind == "livenessProbe" and flag(words, "verifier"):
            yield "is gRPC, which a coordinator that drains does not listen for"
        service = probe["grpc"].get("service", "")
        if service not in services:
            yield f"asks for the service {service!r}, not {' or '.join(map(repr, sorted(services)))}"
    if "httpGet" in probe and probe["httpGet"].get("path") not in paths:
        yield f"asks for {probe['httpGet'].get('path')}, not {' or '.join(paths)}"
    if "httpGet" in probe and probe["httpGet"].get("scheme", "HTTP") != "HTTP":
        yield "is HTTPS, but metrics and health are plain HTTP"
    patience = probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3) + probe.get("initialDelaySeconds", 0)
    if (delay := probe.get("initialDelaySeconds", 0)) > SHORTEST_PATIENCE:
        yield f"begins after {delay} s: what a start takes is the startupProbe's"
    if kind != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        yield "has a successThreshold other than 1, which is refused"
    if probe.get("timeoutSeconds", 1) > probe.get("periodSeconds", 10):
        yield "waits longer for an answer than until it asks again"
    for name in ("periodSeconds", "timeoutSeconds", "failureThreshold"):
        if probe.get(name, 1) < 1:
            yield f"has {name} {probe[name]}, which is refused"
    needed = LONGEST_LOAD.get(words[0], LONGEST_START)
    if kind == "startupProbe" and patience < needed:
        yield f"gives up after {patience} s, but a start may take {needed} s"
    if kind == "livenessProbe" and patience < SHORTEST_PATIENCE:
        yield f"kills after {patience} s"
