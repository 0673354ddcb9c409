# SPDX-License-Identifier: Apache-2.0
"""What schemas cannot know of rendered objects: whether they fit each other, and our programs."""
import functools
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from manifests import name_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"
USER = 65532
SPARE_SECONDS = 15  # between the end of the drain and the kill
DISRUPTABLE = {"Deployment"}
TOOLS = {"cp", "find", "grep", "sh", "sleep", "test", "trap", "wait"}  # what containers run besides our programs; Debian's images have them
SHELL_WORDS = {"while", "until", "do", "done", "if", "then", "else", "fi", "!", ":"}
FLAGS_REFUSED = 2  # an exit status
HASHED = re.compile(r".+-[2456789bcdfghkmt]{10}")  # a generator's name, as kustomize writes it


def check(things, binaries):
    """All problems, as lines. `binaries`: the folder with our programs."""
    problems = []
    for thing in workloads(things):
        for rule in (check_containers, check_security, check_drain, check_volumes):
            problems += [f"{name_of(thing)}: {problem}" for problem in rule(thing, things)]
        problems += [f"{name_of(thing)}: {problem}" for problem in check_flags(thing, things, binaries)]
    for rule in (check_selectors, check_service_ports, check_addresses, check_labels):
        problems += rule(things)
    return problems


def workloads(things):
    """Whatever has pods."""
    return [thing for thing in things if "template" in thing.get("spec", {})]


def containers_of(thing):
    return pod_of(thing).get("initContainers", []) + pod_of(thing)["containers"]


def pod_of(thing):
    return thing["spec"]["template"]["spec"]


def labels_of(thing):
    return thing["spec"]["template"]["metadata"].get("labels", {})


def of_kind(things, *kinds):
    return [thing for thing in things if thing["kind"] in kinds]


def matches(selector, labels):
    """A label selector, in either form, over a pod's labels."""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        selector = {"matchLabels": selector}
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for one in selector.get("matchExpressions") or []:
        value, values = labels.get(one["key"]), one.get("values", [])
        if not {"In": value in values, "NotIn": value not in values, "Exists": value is not None,
                "DoesNotExist": value is None}[one["operator"]]:
            return False
    return True


def config_maps(container):
    return [source["configMapRef"]["name"] for source in container.get("envFrom", []) if "configMapRef" in source]


def environment(container, things):
    """What $(NAME) in its args becomes."""
    variables = {}
    for name in config_maps(container):
        for config in of_kind(things, "ConfigMap"):
            if config["metadata"]["name"] == name:
                variables.update(config["data"])
    variables.update({one["name"]: one.get("value", "") for one in container.get("env", [])})
    return variables


def arguments(container, things):
    variables = environment(container, things)
    words = [*container.get("command", []), *container.get("args", [])]
    return [re.sub(r"\$\((\w+)\)", lambda m: variables.get(m[1], m[0]), word) for word in words]


def flags(words, name):
    """All values of a flag, in either form."""
    for i, word in enumerate(words):
        if word.startswith(f"--{name}="):
            yield word.split("=", 1)[1]
        elif word == f"--{name}" and i + 1 < len(words):
            yield words[i + 1]


def flag(words, name, default=None):
    return next(flags(words, name), default)


def check_containers(thing, things):
    policy = pod_of(thing).get("restartPolicy", "Always")
    if (policy == "Always") == (thing["kind"] == "Job"):
        yield f"restartPolicy {policy}: a {thing['kind']} of it is refused"
    if "activeDeadlineSeconds" in pod_of(thing) and thing["kind"] == "Deployment":
        yield "activeDeadlineSeconds of its pods: a Deployment of it is refused"
    if pod_of(thing).get("dnsPolicy", "ClusterFirst") == "Default":
        yield "dnsPolicy Default: its pods do not find the names of Services"
    for container in containers_of(thing):
        name = f"container {container['name']}"
        limits = container.get("resources", {}).get("limits", {})
        requests = container.get("resources", {}).get("requests", {})
        for resource in ("cpu", "memory"):
            if resource not in limits:
                yield f"{name} has no limit of {resource}"
            if resource not in requests:
                yield f"{name} has no request of {resource}"
        for wanted in config_maps(container):
            if not any(config["metadata"]["name"] == wanted for config in of_kind(things, "ConfigMap")):
                yield f"{name} takes its environment from ConfigMap {wanted}, which is not there"
            if not HASHED.fullmatch(wanted):
                yield f"{name} takes its environment from ConfigMap {wanted}, whose name has no hash: an edit rolls no pods"
        for word in arguments(container, things):
            if unknown := re.search(r"\$\(\w+\)", word):
                yield f"{name}: nothing sets {unknown[0]} of {word}"


def check_security(thing, things):
    del things
    pod = pod_of(thing)
    context = pod.get("securityContext", {})
    wanted = {"runAsNonRoot": True, "runAsUser": USER, "seccompProfile": {"type": "RuntimeDefault"}}
    for key, value in wanted.items():
        if context.get(key) != value:
            yield f"securityContext.{key} is {context.get(key)}, not {value}"
    if pod.get("automountServiceAccountToken") is not False:
        yield "its pods get a service account's token"
    for container in containers_of(thing):
        context = container.get("securityContext", {})
        if context.get("readOnlyRootFilesystem") is not True or \
                context.get("allowPrivilegeEscalation") is not False or \
                context.get("capabilities", {}).get("drop") != ["ALL"]:
            yield f"container {container['name']} is not restricted: read-only root, no escalation, drop ALL"


def seconds_of_pre_stop(container):
    command = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", [])
    if len(command) == 2 and command[0] == "sleep" and command[1].isdigit():
        return int(command[1])
    return 0


def check_drain(thing, things):
    if thing["kind"] not in DISRUPTABLE:
        return
    pod = pod_of(thing)
    grace = pod.get("terminationGracePeriodSeconds", 30)
    for container in pod["containers"]:
        pre_stop = seconds_of_pre_stop(container)
        words = arguments(container, things)
        drain = int(flag(words, "drain-seconds", -1))
        longest = int(flag(words, "request-seconds", 600)) if words[:1] == ["outrider-gateway"] else 0
        if pre_stop == 0:
            yield f"container {container['name']} has no preStop of whole seconds"
        if drain < 0:
            yield f"container {container['name']} does not say --drain-seconds"
        elif drain == 0:
            yield f"container {container['name']} has --drain-seconds 0: its sessions get no time to go elsewhere"
        elif grace < pre_stop + drain + SPARE_SECONDS:
            yield (f"terminationGracePeriodSeconds {grace} is shorter than preStop {pre_stop} + drain {drain}"
                   f" + {SPARE_SECONDS}: it is killed while it drains")
        if 0 < drain < longest:
            yield f"--drain-seconds {drain} is less than --request-seconds {longest}: a roll-out cuts readers off"
    if not any(matches(budget["spec"]["selector"], labels_of(thing))
               for budget in of_kind(things, "PodDisruptionBudget")):
        yield "no PodDisruptionBudget selects its pods"


def port_of(address):
    return int(address.rsplit(":", 1)[1]) if address else None


def check_volumes(thing, things):
    pod = pod_of(thing)
    names = {volume["name"] for volume in pod.get("volumes", [])}
    for container in containers_of(thing):
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in names:
                yield f"container {container['name']} mounts {mount['name']}, which is no volume"
    for volume in pod.get("volumes", []):
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        config = volume.get("configMap", {}).get("name")
        if config and not any(one["metadata"]["name"] == config for one in of_kind(things, "ConfigMap")):
            yield f"the ConfigMap {config} of its volume is not there"
        if claim and not any(one["metadata"]["name"] == claim for one in of_kind(things, "PersistentVolumeClaim")):
            yield f"the claim {claim} of its volume is not there"


def check_flags(thing, things, binaries):
    """The real programs take the flags, also those in the scripts of a shell."""
    for container in containers_of(thing):
        for words in commands(arguments(container, things)):
            if words[0] in TOOLS:
                continue
            program = program_of(words[0], binaries)
            problem = words_refused(tuple(program), tuple(words)) if program else f"there is no program {words[0]}"
            if problem:
                yield f"container {container['name']}: {problem}"


def program_of(name, binaries):
    """The words that start one of our programs; nothing where there is none of this name."""
    if name == "outrider-gateway":
        return ["env", f"PYTHONPATH={ROOT / 'gateway'}", sys.executable, "-B", "-m", "outrider_gateway"]
    path = pathlib.Path(binaries) / name
    return [path] if path.is_file() else None


def commands(words):
    """The words of each command that a container runs."""
    if words[:2] != ["sh", "-c"]:
        return [words]
    script = shlex.shlex(words[2], posix=True, punctuation_chars=True)
    script.whitespace_split = True
    parts = [[]]
    for word in script:
        if set(word) <= set("();<>|&"):
            parts.append([])
        elif parts[-1] or word not in SHELL_WORDS:
            parts[-1].append(word)
    return [part for part in parts if part]


@functools.cache  # the same words come again and again
def words_refused(program, words):
    """What a real program says against its words, with our models and certificates for theirs; or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        stand_in, more, is_refused = {}, ["--check-config"], bool
        if words[:2] == ("outrider", "bench"):
            stand_in, more = {"/results": folder}, ["--dry-run"]  # the plan alone
        elif words[0] == "outrider":  # it reads its flags, then calls: nobody, here
            words = [re.sub(r"^(--\w+=)?[\w.-]+:\d+$", r"\g<1>127.0.0.1:1", word) for word in words]
            more, is_refused = [], FLAGS_REFUSED.__eq__
        else:
            stand_in = stand_ins(words, pathlib.Path(folder))
        local = [localise(word, words[0], stand_in) for word in words[1:]]
        run = subprocess.run([*program, *local, *more], capture_output=True, text=True)
        return run.stderr.strip() if is_refused(run.returncode) else None


def localise(word, program, stand_in):
    """A flag with our own files in place of those in the container."""
    name, _, value = word.partition("=")
    if value in stand_in:
        return f"{name}={stand_in[value]}"
    if value.startswith("/models/"):
        ours = MODELS / value.removeprefix("/models/")
        if not ours.exists():
            ours = MODELS / ("demo-draft" if program == "outrider-drafter" else "demo-target")
        return f"{name}={ours}"
    return word


def stand_ins(words, folder):
    """Files for those that components mount from secrets."""
    files = make_certificates(folder) if flag(words, "tls-cert") else {}
    if flag(words, "api-keys"):
        (folder / "keys").write_text("check secret\n")
        files["/keys/keys"] = folder / "keys"
    return files


def make_certificates(folder):
    """A certificate that signs itself, under the names that the tls component mounts."""
    key, certificate = folder / "tls.key", folder / "tls.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-keyout", key, "-out", certificate, "-days", "1", "-subj", "/CN=check"],
                   check=True, capture_output=True)
    return {"/tls/tls.crt": certificate, "/tls/tls.key": key, "/tls/ca.crt": certificate}


def check_selectors(things):
    pods = [labels_of(thing) for thing in things if "template" in thing.get("spec", {})]
    for thing in of_kind(things, "Deployment"):
        if not matches(thing["spec"]["selector"], labels_of(thing)):
            yield f"{name_of(thing)}: its selector does not match its own pods"
    for thing in of_kind(things, "Service", "PodDisruptionBudget"):
        num_selected = sum(matches(thing["spec"]["selector"], labels) for labels in pods)
        if num_selected == 0:
            yield f"{name_of(thing)}: its selector matches no pod"
        elif num_selected > 1:
            yield f"{name_of(thing)}: its selector matches the pods of {num_selected} roles"
    for thing in of_kind(things, "PodMonitor"):
        if not any(matches(thing["spec"]["selector"], labels) for labels in pods):
            yield f"{name_of(thing)}: its selector matches no pod"


def check_service_ports(things):
    for service in of_kind(things, "Service"):
        for thing in of_kind(things, "Deployment"):
            if not matches(service["spec"]["selector"], labels_of(thing)):
                continue
            containers = pod_of(thing)["containers"]
            ports = {port["name"]: port["containerPort"] for one in containers for port in one.get("ports", [])}
            for port in service["spec"]["ports"]:
                if port.get("protocol", "TCP") != "TCP":
                    yield f"{name_of(service)}: port {port['name']} is {port['protocol']}, but programs listen on TCP"
                target = port.get("targetPort", port["port"])
                number = ports.get(target) if isinstance(target, str) else target
                if number not in ports.values():
                    yield f"{name_of(service)}: {name_of(thing)} has no port {target}"
                elif service["spec"].get("clusterIP") == "None" and number != port["port"]:
                    yield f"{name_of(service)}: headless, so its port {port['port']} must be the pods' {number}"
        first = service["spec"]["ports"][0]
        if not first.get("appProtocol"):
            yield f"{name_of(service)}: the port {first['name']} has no appProtocol"
    for thing in of_kind(things, "Deployment"):
        for container in pod_of(thing)["containers"]:
            words = arguments(container, things)
            ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])
                     if port.get("protocol", "TCP") == "TCP"}
            for name, what in (("http" if "http" in ports else "grpc", "listen"), ("metrics", "metrics-listen")):
                address = flag(words, what, "")
                if ports.get(name) != port_of(address):
                    yield f"{name_of(thing)}: port {name} is {ports.get(name)}, but --{what} {address}"
                elif address.rpartition(":")[0] in ("127.0.0.1", "[::1]", "localhost"):
                    yield f"{name_of(thing)}: --{what} {address} is reached from its own pod alone"


def address_flags(words):
    """(flag, host, port) of each address that a program is told to connect to."""
    for name in ("verifier", "drafter", "coordinator"):
        for address in flags(words, name):
            host, _, port = address.removeprefix("dns:///").rpartition(":")
            if "$(" not in address:
                yield name, host, int(port)


def pods_of_service(things, name):
    pods = [thing for thing in things if "template" in thing.get("spec", {})]
    return [pod for service in of_kind(things, "Service") if service["metadata"]["name"] == name
            for pod in pods if matches(service["spec"]["selector"], labels_of(pod))]


def check_addresses(things):
    """Each HOST:PORT that a program is told is a Service's, with that port."""
    services = {service["metadata"]["name"]: [port["port"] for port in service["spec"]["ports"]]
                for service in of_kind(things, "Service")}
    headless = {service["metadata"]["name"] for service in of_kind(things, "Service")
                if service["spec"].get("clusterIP") == "None"}
    for thing in [thing for thing in things if "template" in thing.get("spec", {})]:
        for container in pod_of(thing)["containers"]:
            for name, host, port in address_flags(arguments(container, things)):
                if port not in services.get(host, []):
                    yield f"{name_of(thing)}: --{name} {host}:{port} is no Service's name and port"
                    continue
                roles = {labels_of(pod).get("app.kubernetes.io/component") for pod in pods_of_service(things, host)}
                if name not in roles:
                    yield f"{name_of(thing)}: --{name} {host}:{port} leads to {' and '.join(sorted(map(str, roles)))}"
                elif thing["kind"] == "Deployment" and host not in headless:
                    yield (f"{name_of(thing)}: the Service of --{name} {host}:{port} is not headless:"
                           " all its pods would look like one node")


def check_labels(things):
    for thing in of_kind(things, "Deployment", "Service", "Job"):
        labels = thing["metadata"].get("labels", {})
        for label in ("name", "instance", "version", "component", "part-of"):
            if f"app.kubernetes.io/{label}" not in labels:
                yield f"{name_of(thing)}: no label app.kubernetes.io/{label}"


def binaries_folder():
    return pathlib.Path(os.environ.get("OUTRIDER_BIN_DIR", ROOT / "build/release/bin"))
