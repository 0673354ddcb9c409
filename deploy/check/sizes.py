# SPDX-License-Identifier: Apache-2.0
"""Whether quantities, names, images and autoscalers are such as Kubernetes takes, and our programs can do with."""
import functools
import math
import re

import quantities
from manifests import name_of
from meaning import ROOT, arguments, containers_of, environment, flag, flags, labels_of, of_kind, pod_of, workloads
from scheduling import scaler_of
from security import NODES

IMAGES = {  # ours, and the programs in each
    "outrider-coordinator": {"outrider", "outrider-coordinator"},
    "outrider-node-cpu": {"outrider", "outrider-coordinator", "outrider-drafter", "outrider-verifier"},
    "outrider-node-cuda": {"outrider", "outrider-coordinator", "outrider-drafter", "outrider-verifier"},
    "outrider-gateway": {"outrider-gateway"},
    "outrider-demo-models": set(),
}
PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?")
DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
# What more pods make less: who waits, who is served, and the memory that these take.
LOADS = {"outrider_requests_waiting", "outrider_requests_running", "outrider_gateway_requests_running",
         "outrider_sessions", "outrider_kv_cache_usage_ratio"}
USERS = "outrider_sessions"
DEMO = "demo-target"
LEAST_CLAIM = 1 << 30  # 200Mi is no 200Gi
LONGEST_WINDOW = 3600  # that an autoscaler may have
SOURCES = {"coordinator": ["coordinator", "core/rpc", "core/telemetry"], "drafter": ["core/node", "core/rpc", "core/telemetry", "drafter"],
           "verifier": ["core/node", "core/rpc", "core/telemetry", "verifier"],
           "gateway": ["gateway/outrider_gateway"]}


def check_sizes(things):
    for thing in workloads(things):
        for rule in (check_resources, check_images, check_port_names, check_words):
            yield from (f"{name_of(thing)}: {problem}" for problem in rule(thing, things))
    for claim in of_kind(things, "PersistentVolumeClaim"):
        size = claim["spec"]["resources"]["requests"]["storage"]
        if problem := quantities.problem_of("storage", size):
            yield f"{name_of(claim)}: storage: {problem}"
        elif quantities.value_of(size) < LEAST_CLAIM:
            yield f"{name_of(claim)}: storage: {size} hold no model"
    yield from check_names(things)
    yield from check_scalers(things)
    yield from check_settings(things)


def check_resources(thing, things):
    for container in containers_of(thing):
        resources = container.get("resources", {})
        words = arguments(container, things)
        cache, memory = flag(words, "kv-cache-memory", "auto"), resources.get("limits", {}).get("memory")
        # The cache of a GPU is in its own memory. To our programs G, GB and GiB are the same.
        cached = quantities.value_of(re.sub("([KMGT])(iB|B)?$", r"\1i", cache)) or 0
        if flag(words, "device", "cpu") == "cpu" and memory and cached >= (quantities.value_of(memory) or 0) > 0:
            yield f"container {container['name']}: --kv-cache-memory {cache} does not fit into its limit of memory, {memory}"
        threads, cores = flag(words, "threads", ""), quantities.value_of(resources.get("limits", {}).get("cpu"))
        if threads.isdigit() and cores is not None and int(threads) > math.ceil(cores):
            yield f"container {container['name']}: --threads {threads} share {cores:g} cores: each pass is stopped in its midst"
        for side in ("requests", "limits"):
            for name, text in resources.get(side, {}).items():
                if problem := quantities.problem_of(name, text):
                    yield f"container {container['name']}: {side}.{name}: {problem}"
        for name, text in resources.get("requests", {}).items():
            limit = resources.get("limits", {}).get(name)
            wanted, most = quantities.value_of(text), quantities.value_of(limit)
            if wanted is not None and most is not None and wanted > most:
                yield f"container {container['name']} requests {text} of {name}, above its limit {limit}"
    for volume in pod_of(thing).get("volumes", []):
        size = (volume.get("emptyDir") or {}).get("sizeLimit")
        if size is not None and (problem := quantities.problem_of("memory", size)):
            yield f"volume {volume['name']}: sizeLimit: {problem}"


@functools.cache
def project_version():
    """What build.sh tags the last build of this version by, besides its commit."""
    return re.search(r"^project\(outrider VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


def check_images(thing, things):
    for container in containers_of(thing):
        where, _, tag = container["image"].partition("@")[0].rpartition(":")
        if "@" in container["image"]:
            where, tag = where or tag, "by digest"
        if not where or "/" in tag:
            where, tag = container["image"], ""
        is_local = where.startswith("localhost/")
        if not is_local and not re.search(r"\d|^by digest$", tag):
            yield f"container {container['name']}: image {container['image']} names no version: what runs may change by itself"
        if not is_local and where.rsplit("/", 1)[-1] in IMAGES and tag == project_version():
            yield f"container {container['name']}: the tag {tag} of its image moves with each build: a commit's does not"
        if is_local and container.get("imagePullPolicy") not in ("IfNotPresent", "Never"):
            yield f"container {container['name']}: image {container['image']} can be pulled from nowhere"
        if not is_local and container.get("imagePullPolicy") == "Never":
            yield f"container {container['name']}: image {container['image']} is never pulled: no machine has it by itself"
        image, words = where.rsplit("/", 1)[-1], arguments(container, things)
        if image.startswith("outrider-") and image not in IMAGES:
            yield f"container {container['name']}: nobody builds the image {image}"
        elif image in IMAGES and words and words[0].startswith("outrider") and words[0] not in IMAGES[image]:
            yield f"container {container['name']}: the image {image} has no {words[0]}"


def check_port_names(thing, things):
    del things
    names = [port.get("name", "") for container in containers_of(thing) for port in container.get("ports", [])]
    for name in names:
        if not PORT_NAME.fullmatch(name):
            yield f"port {name!r}: a name has at most 15 of a-z, 0-9 and -"
        if names.count(name) > 1:
            yield f"two ports are called {name}"
    for container in containers_of(thing):
        if not DNS_LABEL.fullmatch(container["name"]):
            yield f"container {container['name']!r}: no name of a container"
    for volume in pod_of(thing).get("volumes", []):
        if not DNS_LABEL.fullmatch(volume["name"]):
            yield f"volume {volume['name']!r}: no name of a volume"
    for key, value in labels_of(thing).items():
        if not LABEL_VALUE.fullmatch(value):
            yield f"{value!r} of its pods' {key} is no value of a label"


def check_words(thing, things):
    """Words that nobody replaces."""
    for container in containers_of(thing):
        words = arguments(container, things)
        if words[:2] == ["sh", "-c"]:
            continue
        for word in words:
            if "${" in word or re.search(r"\$[A-Z_]+", word):
                yield f"container {container['name']}: {word}: Kubernetes replaces $(NAME) alone"


def check_names(things):
    for thing in things:
        name = thing["metadata"]["name"]
        limit = 63 if thing["kind"] in ("Service", "Namespace", "Job") else 253
        if len(name) > limit or not all(DNS_LABEL.fullmatch(part) for part in name.split(".")):
            yield f"{name_of(thing)}: no name of a {thing['kind']}"
        for key, value in thing["metadata"].get("labels", {}).items():
            if not LABEL_VALUE.fullmatch(value):
                yield f"{name_of(thing)}: {value!r} of {key} is no value of a label"
    for service in of_kind(things, "Service"):
        for port in service["spec"]["ports"]:
            if not DNS_LABEL.fullmatch(port.get("name", "")):
                yield f"{name_of(service)}: port {port.get('name', '')!r}: no name of a port"
    for policy in of_kind(things, "NetworkPolicy"):
        rules = policy["spec"].get("ingress", []) + policy["spec"].get("egress", [])
        for port in [port for rule in rules for port in rule.get("ports", [])]:
            if isinstance(port.get("port"), str) and not PORT_NAME.fullmatch(port["port"]):
                yield f"{name_of(policy)}: port {port['port']!r}: a name has at most 15 of a-z, 0-9 and -"


def exported(role):
    """The metrics that a role's program has, by its sources."""
    names = set()
    for folder in SOURCES.get(role, []):
        for path in [*(ROOT / folder).rglob("*.cc"), *(ROOT / folder).rglob("*.py")]:
            words = re.findall(r'"([a-z][a-z0-9_]+)"', path.read_text())
            names.update(f"outrider_{word.removeprefix('outrider_')}" for word in words)
    return names


def labels_exported():
    """The labels of our metrics, by their sources (and, of the coordinator's, fields of its log)."""
    names = {"role", "model_name", "le"}  # role and model: those of a whole program
    for path in (path for folder in {one for some in SOURCES.values() for one in some} for path in (ROOT / folder).rglob("*metrics.*")):
        if path.suffix == ".cc":
            names.update(re.findall(r'\{"([a-z_]+)", ', path.read_text()))
        elif path.suffix == ".py":
            lists = re.findall(r'\[("[a-z_]+"(?:, "[a-z_]+")*)\]', path.read_text())
            names.update(name for one in lists for name in re.findall(r"[a-z_]+", one))
    return names


def check_scalers(things):
    scalers = of_kind(things, "HorizontalPodAutoscaler")
    for scaler in scalers:
        spec, target = scaler["spec"], scaler["spec"]["scaleTargetRef"]
        least, most = spec.get("minReplicas", 1), spec["maxReplicas"]
        if not 1 <= least <= most:
            yield f"{name_of(scaler)}: at least {least} pods and at most {most}"
        if (target.get("kind"), target.get("apiVersion")) != ("Deployment", "apps/v1"):
            yield f"{name_of(scaler)}: it scales a {target.get('kind')} of {target.get('apiVersion')}, not a Deployment of apps/v1"
        if [one["spec"]["scaleTargetRef"]["name"] for one in scalers].count(target["name"]) > 1:
            yield f"{name_of(scaler)}: two autoscalers scale {target['name']}"
        deployment = next((one for one in of_kind(things, "Deployment") if one["metadata"]["name"] == target["name"]), None)
        if deployment is None:
            yield f"{name_of(scaler)}: it scales {target['name']}, a Deployment that is not there"
        role = labels_of(deployment).get("app.kubernetes.io/component") if deployment else None
        if not spec.get("metrics"):
            yield f"{name_of(scaler)}: it has no metrics, and so scales on the use of a CPU"
        for direction, rule in spec.get("behavior", {}).items():
            if rule.get("stabilizationWindowSeconds", 0) > LONGEST_WINDOW:
                yield f"{name_of(scaler)}: {direction}.stabilizationWindowSeconds is above {LONGEST_WINDOW}, and refused"
        yield from (f"{name_of(scaler)}: {problem}" for problem in check_scale_down(spec, deployment))
        names = [metric.get("pods", {}).get("metric", {}).get("name") for metric in spec.get("metrics", [])]
        if role in NODES and names and USERS not in names:
            yield f"{name_of(scaler)}: not by {USERS}: users who share a pass are slow, and none of them waits"
        for name, metric in zip(names, spec.get("metrics", []), strict=True):
            goal = metric.get("pods", {}).get("target", {})
            if name is None:
                yield f"{name_of(scaler)}: it scales on {metric.get('type')}, not on the load of its pods"
            elif role and name not in exported(role):
                yield f"{name_of(scaler)}: {target['name']} does not export {name}"
            elif name not in LOADS:
                yield f"{name_of(scaler)}: {name} is no load: it does not say how many pods are needed"
            if name and (goal.get("type") != "AverageValue" or not quantities.value_of(goal.get("averageValue"))):
                yield f"{name_of(scaler)}: its goal is no averageValue above 0"
    for deployment in of_kind(things, "Deployment"):
        if scaler_of(deployment, things) and "replicas" in deployment["spec"]:
            yield f"{name_of(deployment)}: it has replicas beside an autoscaler: each apply sets them back"


def check_scale_down(spec, deployment):
    """Whether the drain of one pod is over before the next one goes."""
    policies = spec.get("behavior", {}).get("scaleDown", {}).get("policies", [])
    if not policies or any((one["type"], one["value"]) != ("Pods", 1) for one in policies):
        yield "scaleDown may take away several pods at once"
    drain = pod_of(deployment).get("terminationGracePeriodSeconds", 30) if deployment else 0
    if any(one["periodSeconds"] < drain for one in policies):
        yield f"scaleDown takes away the next pod before the drain of one, of at most {drain} s, is over"


def check_settings(things):
    """Settings that have to agree between roles, and those that nobody reads."""
    by_role = {}
    for thing in of_kind(things, "Deployment"):
        container = pod_of(thing)["containers"][0]
        by_role.setdefault(labels_of(thing).get("app.kubernetes.io/component"), []).append(arguments(container, things))
        used = " ".join(container.get("command", []) + container.get("args", []))
        scripts = " ".join(" ".join(one.get("command", []) + one.get("args", [])) for one in containers_of(thing))
        for name in environment(container, things):
            if f"$({name})" not in used and f"${{{name}}}" not in scripts and f"$({name})" not in scripts:
                yield f"{name_of(thing)}: no flag reads {name} of its ConfigMap"
    for coordinator in by_role.get("coordinator", []):
        drafts = quantities.value_of(flag(coordinator, "num-speculative-tokens")) or 0
        schedule = flag(coordinator, "schedule", "sequential")
        has_gpus = all(flag(node, "device", "cpu").startswith("cuda") for node in by_role.get("drafter", []))
        if schedule != "sequential" and not has_gpus:
            yield f"--schedule {schedule}, but the drafter has no GPU of its own to draft ahead on"
        for role in ("verifier", "drafter"):
            for node in by_role.get(role, []):
                if drafts > (quantities.value_of(flag(node, "max-draft-tokens", 16)) or 0):
                    yield f"--num-speculative-tokens {drafts:g} is more than the {role}'s --max-draft-tokens"
        for node in by_role.get("verifier", []):
            if flag(coordinator, "tokenizer") not in (None, flag(node, "model")):
                yield f"the coordinator's --tokenizer {flag(coordinator, 'tokenizer')} is not of the verifier's --model"
            for gateway in by_role.get("gateway", []):
                if flag(gateway, "model") != flag(node, "model"):
                    yield f"the gateway's --model {flag(gateway, 'model')} is not the verifier's"
                name, folder = flag(gateway, "model-name", ""), flag(gateway, "model", "").rpartition("/")[2]
                if name == DEMO and not folder.startswith(DEMO):
                    yield f"the gateway's --model-name {name}, but its model is {folder}: MODEL_NAME is still that of the demo pair"
            expected = [set(flags(words, "expect-weights")) - {""} for words in (coordinator, node)]
            if all(expected) and not set.intersection(*expected):
                yield "--expect-weights: the coordinator would refuse the weights that the verifier expects"
