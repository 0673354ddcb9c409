# SPDX-License-Identifier: Apache-2.0
"""Whether pods are confined, each is who it says, and certificates lie where the flags look for them."""
import pathlib

from manifests import name_of
from meaning import arguments, containers_of, flag, flags, labels_of, of_kind, pod_of, port_of, workloads

SECRET_FILES = {"tls-cert": "tls.crt", "tls-key": "tls.key", "tls-ca": "ca.crt"}
PATH_FLAGS = ("model", "tokenizer", "api-keys", "target-model", "draft-model", "prompts", "out", *SECRET_FILES)
SECRET_VOLUMES = {"tls": set(SECRET_FILES.values()), "keys": {"keys"}}  # and the files in each
SECRET_MODES = (0o400, 0o440)
SELINUX_TYPES = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}  # that Pod Security lets be
CLUSTER_SCOPED = {"Namespace", "PriorityClass"}
NODES = ("drafter", "verifier")


def check_everything_secure(things):
    for thing in workloads(things):
        for rule in (check_confinement, check_paths, check_tls):
            yield from (f"{name_of(thing)}: {problem}" for problem in rule(thing, things))
    yield from check_places(things)
    yield from check_services(things)


def role_of(thing):
    return labels_of(thing).get("app.kubernetes.io/component", "")


def check_confinement(thing, things):
    """What Pod Security "restricted" forbids, also where a container overrides its pod."""
    del things
    pod = pod_of(thing)
    for name in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"):
        if pod.get(name):
            yield f"{name}: its pods see what is not theirs"
    context = pod.get("securityContext", {})
    for name in ("runAsGroup", "fsGroup"):
        if not context.get(name):
            yield f"securityContext.{name} is {context.get(name)}: files of group root"
    if 0 in context.get("supplementalGroups", []):
        yield "securityContext.supplementalGroups has 0: files of group root"
    for name, profile in thing["spec"]["template"]["metadata"].get("annotations", {}).items():
        if name.startswith("container.apparmor.security.beta.kubernetes.io/") and profile == "unconfined":
            yield f"{name} is unconfined"
    if context.get("sysctls"):
        yield "it sets sysctls of its machine"
    if context.get("seLinuxOptions", {}).get("type", "") not in SELINUX_TYPES:
        yield f"the SELinux type {context['seLinuxOptions']['type']} is not a container's"
    for volume in pod.get("volumes", []):
        if "hostPath" in volume:
            yield f"volume {volume['name']} is a hostPath: a folder of the machine"
    for container in containers_of(thing):
        name, context = f"container {container['name']}", container.get("securityContext", {})
        if context.get("privileged"):
            yield f"{name} is privileged"
        if added := context.get("capabilities", {}).get("add"):
            yield f"{name} adds the capabilities {', '.join(added)}"
        if context.get("runAsUser", 1) == 0 or context.get("runAsGroup", 1) == 0 or context.get("runAsNonRoot") is False:
            yield f"{name} runs as root"
        if context.get("seccompProfile", {}).get("type", "RuntimeDefault") != "RuntimeDefault":
            yield f"{name} has a seccompProfile of its own, {context['seccompProfile']['type']}"
        if context.get("seLinuxOptions", {}).get("type", "") not in SELINUX_TYPES:
            yield f"{name} has the SELinux type {context['seLinuxOptions']['type']}"
        if context.get("procMount", "Default") != "Default":
            yield f"{name} sees an unmasked /proc"
        if any("hostPort" in port for port in container.get("ports", [])):
            yield f"{name} takes a hostPort"


def mount_of(container, path):
    """The mount that a path lies in: the longest that leads there."""
    leading = [mount for mount in container.get("volumeMounts", [])
               if pathlib.PurePath(path).is_relative_to(mount["mountPath"])]
    return max(leading, key=lambda mount: len(mount["mountPath"]), default=None)


def check_paths(thing, things):
    """Each file that a flag names lies in a volume that is mounted; each volume is used."""
    volumes = {volume["name"]: volume for volume in pod_of(thing).get("volumes", [])}
    for container in containers_of(thing):
        name, words = f"container {container['name']}", arguments(container, things)
        for one in PATH_FLAGS:
            for path in flags(words, one):
                mount = mount_of(container, path) if path.startswith("/") else None
                volume = volumes.get(mount["name"], {}) if mount else None
                if volume is None:
                    yield f"{name}: --{one} {path} lies in no volume that is mounted"
                elif one in SECRET_FILES and "secret" not in volume:
                    yield f"{name}: --{one} {path} lies in no secret"
                elif one in SECRET_FILES and pathlib.PurePath(path).relative_to(mount["mountPath"]).as_posix() not in \
                        keys_of(volume["secret"]):
                    yield f"{name}: the secret {volume['secret'].get('secretName')} has no file for --{one} {path}"
                elif one in SECRET_FILES and not path.endswith("/" + SECRET_FILES[one]):
                    yield f"{name}: --{one} is {path}, not {SECRET_FILES[one]}"
        for mount in container.get("volumeMounts", []):
            if not mount["mountPath"].startswith("/"):
                yield f"{name}: mountPath {mount['mountPath']} is not absolute"
            if "subPath" in mount and "secret" in volumes.get(mount["name"], {}):
                yield f"{name}: {mount['mountPath']} by subPath of a secret: renewed files do not come"
            if mount["name"] == "models" and role_of(thing) in (*NODES, "coordinator", "gateway") and \
                    container in pod_of(thing)["containers"] and not mount.get("readOnly"):
                yield f"{name} may write to the models"
        paths = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
        if len(paths) != len(set(paths)):
            yield f"{name} mounts two volumes at one path"
    mounted = {mount["name"] for container in containers_of(thing) for mount in container.get("volumeMounts", [])}
    for name, volume in volumes.items():
        if name not in mounted:
            yield f"volume {name} is mounted by no container"
        if "secret" in volume and name in SECRET_VOLUMES:
            yield from check_secret(volume["secret"], f"outrider-{role_of(thing)}-{name}")


def keys_of(secret):
    """The files of a mounted secret, as cert-manager writes it."""
    items = secret.get("items")
    return [one["path"] for one in items] if items else list(SECRET_FILES.values())


def check_secret(secret, expected):
    name = secret.get("secretName")
    if name != expected:
        yield f"its volume is of the secret {name}, not {expected}"
    for item in secret.get("items", []):
        if item["key"] not in SECRET_VOLUMES[expected.rpartition("-")[2]]:
            yield f"the secret {name} has no key {item['key']}"
    if secret.get("optional"):
        yield f"the secret {name} is optional: without it no program starts"
    if secret.get("defaultMode", 0o644) not in SECRET_MODES:
        yield f"the files of the secret {name} have the mode {secret.get('defaultMode', 0o644):o}, not 440"


def check_tls(thing, things):
    coordinators = {service["metadata"]["name"] for service in of_kind(things, "Service")
                    if service["spec"]["selector"].get("app.kubernetes.io/component") == "coordinator"}
    modes = {is_tls(other, things) for other in workloads(things) if other["kind"] == "Deployment"}
    if thing["kind"] == "Deployment" and len(modes) > 1:
        yield "some programs speak TLS and some do not"
    for container in pod_of(thing)["containers"]:
        words = arguments(container, things)
        if not [one for one in SECRET_FILES if flag(words, one)] or words[:2] == ["outrider", "bench"]:
            continue
        for one in SECRET_FILES:
            if flag(words, one) is None:
                yield f"container {container['name']} has TLS, but no --{one}"
        if "--insecure" in words:
            yield f"container {container['name']} has TLS and --insecure: plain text may be had for the asking"
        clients = list(flags(words, "tls-clients"))
        if role_of(thing) in NODES and not clients:
            yield f"container {container['name']} has no --tls-clients: all that the authority signed may call it"
        for client in clients:
            if role_of(thing) in NODES and client not in coordinators:
                yield f"container {container['name']}: --tls-clients {client} is no coordinator's name"


def is_tls(thing, things):
    return any(flag(arguments(container, things), "tls-cert") for container in pod_of(thing)["containers"])


def check_places(things):
    """Namespaces and service accounts are there."""
    spaces = {one["metadata"]["name"]: one for one in of_kind(things, "Namespace")}
    for thing in things:
        space = thing["metadata"].get("namespace")
        if thing["kind"] not in CLUSTER_SCOPED and space not in spaces:
            yield f"{name_of(thing)}: there is no namespace {space}"
    for thing in spaces.values():
        if thing["metadata"].get("labels", {}).get("pod-security.kubernetes.io/enforce") != "restricted":
            yield f"{name_of(thing)}: it does not enforce Pod Security \"restricted\""
    accounts = {(one["metadata"].get("namespace"), one["metadata"]["name"]) for one in of_kind(things, "ServiceAccount")}
    for thing in workloads(things):
        account = pod_of(thing).get("serviceAccountName")
        if account is None and thing["kind"] == "Deployment":
            yield f"{name_of(thing)}: it has no service account of its own"
        if account is not None and (thing["metadata"].get("namespace"), account) not in accounts:
            yield f"{name_of(thing)}: there is no ServiceAccount {account}"


def check_services(things):
    for service in of_kind(things, "Service"):
        spec = service["spec"]
        of_tls = [is_tls(thing, things) for thing in of_kind(things, "Deployment")
                  if spec["selector"].items() <= labels_of(thing).items()]
        if any(of_tls) and spec["ports"][0].get("appProtocol") == "kubernetes.io/h2c":
            yield f"{name_of(service)}: appProtocol h2c is plain text, but the program speaks TLS"
        if spec.get("type", "ClusterIP") != "ClusterIP" and any(
                port_of(f":{port['port']}") in (7001, 7002) for port in spec["ports"]):
            yield f"{name_of(service)}: a {spec['type']} shows the nodes to clients"
        if spec.get("sessionAffinity", "None") != "None":
            yield f"{name_of(service)}: sessionAffinity {spec['sessionAffinity']}: all clients of one address, such as a proxy's, meet one pod"
        if spec.get("publishNotReadyAddresses"):
            yield f"{name_of(service)}: it sends clients to pods that are not ready"
