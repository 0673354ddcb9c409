# SPDX-License-Identifier: Apache-2.0
"""Whether pods find a place: GPUs, node labels, volumes, and pods that come and go in a roll-out or a drain."""
import re

import quantities
from manifests import name_of
from meaning import (address_flags, arguments, containers_of, flag, labels_of, matches, of_kind, pod_of,
                     seconds_of_pre_stop, workloads)

GPU_TAINT = "nvidia.com/gpu"
WHOLE_GPU = "nvidia.com/gpu"
MOST_PRIORITY = 10 ** 9
DNS_SECONDS = 60  # that the cluster's DNS and the machine's cache may keep an answer
BALANCER_SECONDS = 15  # that a load balancer outside takes to find a pod, or to forget one
SLICE = re.compile(r"nvidia\.com/mig-\d+g\.\d+gb")
# What nodes are labelled with by Kubernetes, NVIDIA's operator and the large clouds.
NODE_LABELS = re.compile(
    r"kubernetes\.io/(hostname|os|arch)|topology\.kubernetes\.io/(zone|region)|node\.kubernetes\.io/instance-type"
    r"|nvidia\.com/(gpu\.(product|memory|count|family|present|machine)|mig\.(strategy|capable|config)|cuda\.driver\.major)"
    r"|cloud\.google\.com/gke-(accelerator|nodepool)|eks\.amazonaws\.com/nodegroup|k8s\.amazonaws\.com/accelerator"
    r"|karpenter\.(sh|k8s\.aws)/[a-z-]+|kubernetes\.azure\.com/(agentpool|accelerator)")
PRODUCT = re.compile(r"(NVIDIA|Tesla|Quadro|GeForce)-[A-Za-z0-9-]+(-SHARED|-MIG-[a-z0-9.]+)?")


def check_scheduling(things):
    for thing in workloads(things):
        for rule in (check_gpus, check_node_labels, check_neighbours, check_rollout, check_pace):
            yield from (f"{name_of(thing)}: {problem}" for problem in rule(thing, things))
    yield from check_pools(things)
    yield from check_budgets(things)
    yield from check_claims(things)
    yield from check_priorities(things)


def gpus_of(container):
    """The GPUs and slices that it asks for, by resource."""
    resources = container.get("resources", {})
    return {name: count for side in ("requests", "limits") for name, count in resources.get(side, {}).items() if "/" in name}


def asks_for_gpu(thing):
    return any(gpus_of(container) for container in containers_of(thing))


def check_gpus(thing, things):
    tolerates = [one for one in pod_of(thing).get("tolerations", []) if one.get("key") == GPU_TAINT]
    for container in containers_of(thing):
        name, gpus = f"container {container['name']}", gpus_of(container)
        limits = container.get("resources", {}).get("limits", {})
        uses = flag(arguments(container, things), "device", "cpu").startswith("cuda")
        for resource, count in gpus.items():
            if resource != WHOLE_GPU and not SLICE.fullmatch(resource):
                yield f"{name}: nobody offers the resource {resource}"
            elif resource not in limits:
                yield f"{name}: {resource} is requested and has no limit, without which it is refused"
            elif not re.fullmatch(r"[1-9]\d*", str(count)):
                yield f"{name}: {resource}: {count} is no whole number of GPUs"
            elif int(count) > 1:
                yield f"{name}: {resource}: {count}: the program uses one"
        if len(gpus) > 1:
            yield f"{name} asks for {' and '.join(sorted(gpus))}: no machine gives it both"
        if uses and not gpus:
            yield f"{name} has --device=cuda, but no limit of {WHOLE_GPU}"
        if gpus and not uses:
            yield f"{name} asks for a GPU, but does not use it: no --device=cuda"
        if uses and "node-cuda" not in container["image"]:
            yield f"{name} has --device=cuda, but its image {container['image']} has no CUDA"
        if gpus and not any(endures(one) for one in tolerates):
            yield f"{name} asks for a GPU, but does not tolerate the taint {GPU_TAINT}:NoSchedule of GPU nodes"
    if tolerates and not asks_for_gpu(thing):
        yield f"it tolerates the taint {GPU_TAINT} of GPU nodes, but asks for no GPU"


def endures(toleration):
    """Whether it matches the taint that GPU nodes have: nvidia.com/gpu=present:NoSchedule, or with another value."""
    return toleration.get("effect", "NoSchedule") == "NoSchedule" and toleration.get("operator") == "Exists" \
        and "value" not in toleration


def node_terms(pod):
    """Each requirement on a node's labels: key, operator, values."""
    for key, value in pod.get("nodeSelector", {}).items():
        yield key, "In", [value]
    affinity = pod.get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    terms += [one["preference"] for one in affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])]
    for term in terms:
        for one in term.get("matchExpressions", []):
            yield one["key"], one["operator"], one.get("values", [])


def check_node_labels(thing, things):
    del things
    if name := pod_of(thing).get("nodeName"):
        yield f"nodeName {name}: its pods are bound to one machine, past the scheduler"
    for key, operator, values in node_terms(pod_of(thing)):
        if not NODE_LABELS.fullmatch(key):
            yield f"no node has the label {key}"
        if (operator in ("In", "NotIn")) != bool(values):
            yield f"{operator} of the label {key} has {'' if values else 'no '}values"
        for value in values:
            if key == "nvidia.com/gpu.product" and not PRODUCT.fullmatch(value):
                yield f"{value!r} is no value of nvidia.com/gpu.product, such as NVIDIA-L4"


def check_neighbours(thing, things):
    """What it wants to be near to, or far from."""
    affinity = pod_of(thing).get("affinity", {})
    terms = []
    for kind in ("podAffinity", "podAntiAffinity"):
        terms += affinity.get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])
        terms += [one["podAffinityTerm"] for one in
                  affinity.get(kind, {}).get("preferredDuringSchedulingIgnoredDuringExecution", [])]
    for term in terms:
        if not any(matches(term["labelSelector"], labels_of(other)) for other in workloads(things)):
            yield "an affinity's labelSelector matches no pod"
    spreads = pod_of(thing).get("topologySpreadConstraints", [])
    for spread in spreads:
        if not matches(spread["labelSelector"], labels_of(thing)):
            yield "a topologySpreadConstraint does not count its own pods"
    for one in terms + spreads:
        if not NODE_LABELS.fullmatch(one["topologyKey"]):
            yield f"no node has the label {one['topologyKey']}, its topologyKey"
    if thing["kind"] == "Deployment" and not spreads:
        yield "nothing spreads its pods over machines: no topologySpreadConstraints"


def scaler_of(thing, things):
    return next((one for one in of_kind(things, "HorizontalPodAutoscaler")
                 if one["spec"]["scaleTargetRef"]["name"] == thing["metadata"]["name"]), None)


def least_pods(thing, things):
    scaler = scaler_of(thing, things)
    return scaler["spec"].get("minReplicas", 1) if scaler else thing["spec"].get("replicas", 1)


def pods_in(value, total, rounded_up):
    """A number of pods, or a share of all."""
    if not isinstance(value, str):
        return value
    share = total * int(value.rstrip("%"))
    return -(-share // 100) if rounded_up else share // 100


def requested(thing, name, rolls):
    """What its pods ask a node for; while it rolls, those that come beside the others too."""
    def of(containers):
        return [quantities.value_of(one.get("resources", {}).get("requests", {}).get(name, 0)) for one in containers]
    pod = pod_of(thing)
    each = max([sum(of(pod["containers"])), *of(pod.get("initContainers", []))])  # init containers run before, one by one
    total = thing["spec"].get("replicas", 1)
    surge = thing["spec"].get("strategy", {}).get("rollingUpdate", {}).get("maxSurge", 0) if rolls else 0
    return each * (total + pods_in(surge, total, rounded_up=True))


def check_rollout(thing, things):
    """Either a pod more than it needs, for which there must be room, or one less at a time."""
    if thing["kind"] != "Deployment":
        return
    spec = thing["spec"]
    if spec.get("replicas") == 0:
        yield "replicas is 0: nothing serves"
    if spec.get("paused"):
        yield "it is paused: no change comes to its pods"
    if spec.get("revisionHistoryLimit") == 0:
        yield "revisionHistoryLimit is 0: there is no way back"
    strategy = spec.get("strategy", {})
    if strategy.get("type") == "Recreate":
        if not asks_for_gpu(thing):
            yield "a rollout takes away all pods at once: Recreate is for the last GPU"
        return
    rolling, total = strategy.get("rollingUpdate", {}), least_pods(thing, things)
    surge = pods_in(rolling.get("maxSurge", "25%"), total, rounded_up=True)
    gone = pods_in(rolling.get("maxUnavailable", "25%"), total, rounded_up=False)
    is_spare = labels_of(thing).get("app.kubernetes.io/component") == "drafter"  # text goes on without it
    if surge == 0 and gone == 0:
        yield "maxSurge and maxUnavailable are both 0: it can never be rolled out"
    elif gone > 0 and (surge > 0 or not (asks_for_gpu(thing) or is_spare)):
        yield "a rollout may take away pods before others are ready: maxUnavailable is not 0"
    elif gone >= max(total, 2):
        yield f"a rollout may take away all its {total} pods: maxUnavailable is {gone}"
    elif surge > 0 and total == 1 and asks_for_gpu(thing):
        yield "a rollout waits for ever where its one GPU is the last: maxSurge 0, or Recreate"


def check_pace(thing, things):
    """A roll-out is not given up while a model loads, nor faster than coordinators find the new pods."""
    if thing["kind"] != "Deployment":
        return
    probe = pod_of(thing)["containers"][0].get("startupProbe", {})
    start = probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3)
    deadline, ready = thing["spec"].get("progressDeadlineSeconds", 600), thing["spec"].get("minReadySeconds", 0)
    if deadline <= start + ready:
        yield f"progressDeadlineSeconds {deadline}: a roll-out counts as failed while its first pod may still start"
    if serves_http(thing) and ready < BALANCER_SECONDS:
        yield f"minReadySeconds {ready}: a pod goes before load balancers have found its successor"
    if serves_http(thing) and seconds_of_pre_stop(pod_of(thing)["containers"][0]) < BALANCER_SECONDS:
        yield "its preStop is over before load balancers have forgotten the pod, which then refuses their readers"
    services = {service["metadata"]["name"] for service in of_kind(things, "Service")
                if matches(service["spec"]["selector"], labels_of(thing))}
    for client in of_kind(things, "Deployment"):
        words = arguments(pod_of(client)["containers"][0], things)
        resolve = int(flag(words, "resolve-seconds", 30))
        if any(host in services for _, host, _ in address_flags(words)) and \
                ready < resolve + DNS_SECONDS:
            yield (f"minReadySeconds {ready}: a pod goes before {name_of(client)}, which asks DNS every {resolve} s,"
                   " has found its successor")


def serves_http(thing):
    """Whether readers outside, behind a load balancer, are among its clients."""
    return any(port["name"] == "http" for one in pod_of(thing)["containers"] for port in one.get("ports", []))


def check_pools(things):
    kinds = {}
    for thing in workloads(things):
        for container in containers_of(thing):
            for resource in gpus_of(container):
                kinds.setdefault(resource == WHOLE_GPU, []).append(thing)
    mixed = [thing for things_of_kind in kinds.values() for thing in things_of_kind] if len(kinds) > 1 else []
    for thing in mixed:
        if not any("gpu" in key or "mig" in key for key, _, _ in node_terms(pod_of(thing))):
            yield (f"{name_of(thing)}: others ask for {'slices' if thing in kinds[True] else 'whole GPUs'}: one GPU"
                   " is not both, and no node label says which pool is whose")


def check_budgets(things):
    budgets = of_kind(things, "PodDisruptionBudget")
    for thing in of_kind(things, "Deployment"):
        over = [one for one in budgets if matches(one["spec"]["selector"], labels_of(thing))]
        if len(over) > 1:
            yield f"{name_of(thing)}: {len(over)} PodDisruptionBudgets select its pods: each eviction is refused"
        total = least_pods(thing, things)
        for budget in over:
            spec = budget["spec"]
            if {"minAvailable", "maxUnavailable"} <= set(spec):
                yield f"{name_of(budget)}: minAvailable and maxUnavailable: both are refused"
            at_least = pods_in(spec.get("minAvailable", 0), total, rounded_up=True)
            gone = pods_in(spec.get("maxUnavailable", total), total, rounded_up=True)
            if at_least == 0 and gone >= max(total, 2) or not {"minAvailable", "maxUnavailable"} & set(spec):
                yield f"{name_of(budget)}: all {total} pods may be evicted at once"
            if spec.get("unhealthyPodEvictionPolicy") != "AlwaysAllow":
                yield f"{name_of(budget)}: pods that are not ready hold up a drain, as they may not be evicted"
            if at_least >= total or gone == 0:
                yield f"{name_of(budget)}: none of the {total} pods may ever be evicted: a node cannot be drained"


def check_claims(things):
    for claim in of_kind(things, "PersistentVolumeClaim"):
        name, modes = claim["metadata"]["name"], claim["spec"]["accessModes"]
        users = [thing for thing in workloads(things) for volume in pod_of(thing).get("volumes", [])
                 if volume.get("persistentVolumeClaim", {}).get("claimName") == name]
        many = len(users) > 1 or any(least_pods(thing, things) > 1 for thing in users)
        if many and not {"ReadWriteMany", "ReadOnlyMany"} & set(modes):
            yield f"{name_of(claim)}: {', '.join(modes)}, but pods of several nodes mount it: ReadWriteMany"
        if claim["spec"].get("volumeMode", "Filesystem") != "Filesystem":
            yield f"{name_of(claim)}: volumeMode {claim['spec']['volumeMode']}: it cannot be mounted as a folder"
        if "ReadOnlyMany" in modes and len(modes) == 1:
            yield f"{name_of(claim)}: ReadOnlyMany alone: nothing can fill it"


def check_priorities(things):
    known = {one["metadata"]["name"]: one for one in of_kind(things, "PriorityClass")}
    for thing in known.values():
        if thing["value"] > MOST_PRIORITY:
            yield f"{name_of(thing)}: its value is above {MOST_PRIORITY}, which is the system's own"
        if thing["value"] <= 0:
            yield f"{name_of(thing)}: its value is {thing['value']}: whatever has no priority is as important, or more"
        if thing.get("globalDefault"):
            yield f"{name_of(thing)}: globalDefault: other people's pods get it as well"
    for thing in workloads(things):
        name = pod_of(thing).get("priorityClassName")
        if name is not None and name not in known and not name.startswith("system-"):
            yield f"{name_of(thing)}: there is no PriorityClass {name}"
        if name is None and thing["kind"] == "Deployment":
            yield f"{name_of(thing)}: no priorityClassName: batch work is not evicted for it"
