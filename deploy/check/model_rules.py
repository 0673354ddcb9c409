# SPDX-License-Identifier: Apache-2.0
"""Whether the models that programs are told of come to where they look: fetched, whole, by a Job that may write and leave."""
import pathlib
import urllib.parse

import policies
from manifests import name_of
from meaning import arguments, containers_of, flag, flags, labels_of, of_kind, pod_of, workloads
from security import mount_of

MODEL_FLAGS = ("model", "tokenizer", "target-model", "draft-model")
LIST = "models"  # the file of names and sources, as fetch.sh reads it
PORTS = {"https": 443, "http": 80}


def check_models(things):
    for thing in workloads(things):
        yield from (f"{name_of(thing)}: {problem}" for problem in check_filled(thing, things))
    for job in of_kind(things, "Job"):
        if (listed := list_of(job, things)) is not None:
            yield from (f"{name_of(job)}: {problem}" for problem in check_fetch(job, listed, things))
            if job["spec"].get("suspend"):
                yield f"{name_of(job)}: it is suspended: nothing is fetched"


def paths_of(container, things):
    words = arguments(container, things)
    return [path for name in MODEL_FLAGS for path in flags(words, name) if path.startswith("/")]


def check_filled(thing, things):
    """A volume that begins empty with each pod is filled before the program starts."""
    pod = pod_of(thing)
    empty = {volume["name"] for volume in pod.get("volumes", []) if "emptyDir" in volume}
    written = {mount["name"] for container in pod.get("initContainers", []) for mount in container.get("volumeMounts", [])
               if not mount.get("readOnly")}
    for container in pod["containers"]:
        for path in paths_of(container, things):
            mount = mount_of(container, path)
            if mount and mount["name"] in empty - written:
                yield f"container {container['name']}: {path} lies in an emptyDir that nothing fills"


def list_of(job, things):
    """The files that say what a Job fetches, or nothing where it fetches none."""
    names = {volume["configMap"]["name"] for volume in pod_of(job).get("volumes", []) if "configMap" in volume}
    return next((one["data"] for one in of_kind(things, "ConfigMap")
                 if one["metadata"]["name"] in names and LIST in one.get("data", {})), None)


def check_fetch(job, files, things):
    sources = dict(line.split() for line in files[LIST].splitlines() if line.strip())
    for name, source in sources.items():
        if f"{name}.sha256" not in files:
            yield f"there are no sums of {name}: {name}.sha256"
        url = urllib.parse.urlsplit(source)
        port = url.port or PORTS.get(url.scheme)
        if port and not policies.any_rule(of_kind(things, "NetworkPolicy"), job, "Egress",
                                          lambda rule, port=port: policies.lets_port(rule, port, None)):
            yield f"no NetworkPolicy lets it leave for {source}, port {port}"
    claims = {volume["name"]: volume["persistentVolumeClaim"] for volume in pod_of(job)["volumes"]
              if "persistentVolumeClaim" in volume}
    mounts = [mount for container in containers_of(job) for mount in container.get("volumeMounts", [])]
    if not any(mount["name"] in claims and not mount.get("readOnly") and not claims[mount["name"]].get("readOnly")
               for mount in mounts):
        yield "it may not write to the claim that it fills"
    for thing in of_kind(things, "Deployment"):
        for container in containers_of(thing):
            for path in paths_of(container, things):
                if pathlib.PurePath(path).name not in sources:
                    yield f"{path} of {labels_of(thing).get('app.kubernetes.io/component')} is not among the models that it fetches"
            if (name := flag(arguments(container, things), "model-name")) in sources:
                yield f"--model-name {name} of {name_of(thing)} is a folder's, with its revision: clients lose it with the next weights"
