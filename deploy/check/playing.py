# SPDX-License-Identifier: Apache-2.0
"""Rendered Deployments and Jobs, in the form that podman plays."""
import copy

import manifests
import meaning

ROLES = ("verifier", "drafter", "coordinator", "gateway")


def pod_name(role, generation=""):
    return f"outrider-{role}{generation}-pod-0"


def named(things, name):
    return next(thing for thing in things if manifests.name_of(thing) == name)


def service_names(things, role):
    """Names of the Services that select a role's pods."""
    labels = meaning.labels_of(named(things, f"Deployment/outrider-{role}"))
    return [service["metadata"]["name"] for service in meaning.of_kind(things, "Service")
            if meaning.matches(service["spec"]["selector"], labels)]


def to_play(things, role, secrets, generation=""):
    """One role's Deployment, in the form that podman understands; secrets are folders."""
    thing = copy.deepcopy(named(things, f"Deployment/outrider-{role}"))
    thing["metadata"]["name"] += generation
    for container in meaning.pod_of(thing)["containers"]:
        container["args"] = meaning.arguments(container, things)[len(container["command"]):]
        del container["envFrom"]
        del container["ports"]  # podman would take them on the host
    for volume in meaning.pod_of(thing)["volumes"]:
        if "secret" in volume:
            secret = volume.pop("secret")["secretName"]
            volume["hostPath"] = {"path": str(secrets / secret), "type": "Directory"}
    # An end has to be seen here; a kubelet would start the container again.
    meaning.pod_of(thing)["restartPolicy"] = "Never"
    # Podman 4.3 trips over removing an init container that has just ended.
    thing["metadata"]["annotations"] = {
        "io.podman.annotations.init.container.type": "always"}
    return thing


def to_play_once(job, name):
    """A Job's pod, as podman knows no Jobs; its bench has a smaller grid."""
    spec = copy.deepcopy(meaning.pod_of(job))
    small = {"--rtt": "0,5", "--k": "0,4", "--schedule": "auto", "--concurrency": "2", "--repeat": "1"}
    bench, = [one for one in spec["containers"] if one["name"] == "bench"]
    for i, word in enumerate(bench["args"]):
        flag, _, value = word.partition("=")
        if flag != "--rtt" or value != "0":
            value = small.get(flag, value)
        bench["args"][i] = f"{flag}={value}" if value else flag
    bench["args"].append("--seconds=1")
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": {
        "name": name, "annotations": {"io.podman.annotations.init.container.type": "always"}}}
