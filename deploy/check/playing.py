# SPDX-License-Identifier: Apache-2.0
"""Rendered Deployments and Jobs, in the form that podman plays."""
import copy
import re

import manifests
import meaning

ROLES = ("verifier", "drafter", "coordinator", "gateway")


def pod_name(role):
    return f"outrider-{role}-pod-0"


def named(things, name):
    return next(thing for thing in things if manifests.name_of(thing) == name)


def to_pods(word):
    """A word with names of pods for those of Services."""
    for role in ROLES:
        word = re.sub(rf"\boutrider-{role}s?:(?=\d)", f"{pod_name(role)}:", word)
    return word


def to_play(things, role, secrets):
    """One role's Deployment, in the form that podman understands; secrets are folders."""
    thing = copy.deepcopy(named(things, f"Deployment/outrider-{role}"))
    for container in meaning.pod_of(thing)["containers"]:
        words = meaning.arguments(container, things)[len(container["command"]):]
        container["args"] = [to_pods(word) for word in words]
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
    small = {"--rtt": "0,5", "--k": "0,4", "--concurrency": "2", "--repeat": "1"}
    for container in spec["initContainers"] + spec["containers"]:
        container["command"] = [to_pods(word) for word in container["command"]]
    bench, = [one for one in spec["containers"] if one["name"] == "bench"]
    for i, word in enumerate(bench["args"]):
        flag, _, value = to_pods(word).partition("=")
        if flag != "--rtt" or value != "0":
            value = small.get(flag, value)
        bench["args"][i] = f"{flag}={value}" if value else flag
    bench["args"].append("--seconds=1")
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": {
        "name": name, "annotations": {"io.podman.annotations.init.container.type": "always"}}}
