# SPDX-License-Identifier: Apache-2.0
"""Whether NetworkPolicies deny by default, and let through what the flags need."""
from manifests import name_of
from meaning import address_flags, arguments, labels_of, matches, of_kind, pod_of, pods_of_service

NAMESPACE_LABELS = {"kubernetes.io/metadata.name", "outrider/client"}  # the second is ours


def check_policies(things):
    policies = of_kind(things, "NetworkPolicy")
    pods = [thing for thing in things if "template" in thing.get("spec", {})]
    for policy in policies:
        if not any(matches(policy["spec"]["podSelector"], labels_of(pod)) for pod in pods):
            yield f"{name_of(policy)}: its podSelector matches no pod"
        for rule in policy["spec"].get("ingress", []):
            if not rule.get("from") or any(is_everybody(one) for one in rule["from"]):
                yield f"{name_of(policy)}: it lets everybody in"
        if any((not rule.get("to") or any(is_everybody(one) for one in rule["to"])) and not rule.get("ports")
               for rule in policy["spec"].get("egress", [])):
            yield f"{name_of(policy)}: it lets its pods out to everywhere"
        for peer in [one for rule in policy["spec"].get("ingress", []) for one in rule.get("from", [])]:
            for key in peer.get("namespaceSelector", {}).get("matchLabels", {}):
                if key not in NAMESPACE_LABELS:
                    yield f"{name_of(policy)}: no namespace has the label {key}"
        for direction, peer in (("ingress", "from"), ("egress", "to")):
            for rule in policy["spec"].get(direction, []):
                for one in rule.get(peer, []):
                    selector = one.get("podSelector")
                    if selector is not None and not any(matches(selector, labels_of(pod)) for pod in pods):
                        yield f"{name_of(policy)}: a peer's podSelector matches no pod"
    for pod in pods:
        denied = {direction for policy in policies if matches(policy["spec"]["podSelector"], labels_of(pod))
                  and "ingress" not in policy["spec"] and "egress" not in policy["spec"]
                  for direction in policy["spec"]["policyTypes"]}
        if denied != {"Ingress", "Egress"}:
            yield f"{name_of(pod)}: no NetworkPolicy denies what is not allowed"
        if not any_rule(policies, pod, "Egress", lambda rule: lets_port(rule, 53, None, "UDP")):
            yield f"{name_of(pod)}: no NetworkPolicy lets it ask for names (port 53)"
        is_scraped = any(matches(one["spec"].get("selector", {}), labels_of(pod)) for one in of_kind(things, "PodMonitor"))
        if is_scraped and (port := port_named(pod, "metrics")) and not any_rule(
                policies, pod, "Ingress", lambda rule, pod=pod, port=port: lets_port(rule, port, pod)):
            yield f"{name_of(pod)}: no NetworkPolicy lets anyone scrape its port metrics"
    yield from check_connections(things, policies, pods)


def check_connections(things, policies, pods):
    """Each connection that a program is told to make may leave, and may come in."""
    for client in pods:
        for container in pod_of(client)["containers"]:
            for name, host, port in address_flags(arguments(container, things)):
                for server in pods_of_service(things, host):
                    if not any_rule(policies, client, "Egress",
                                    lambda rule, server=server, port=port: lets(rule, "to", server, port, server)):
                        yield f"{name_of(client)}: no NetworkPolicy lets --{name} {host}:{port} leave"
                    if not any_rule(policies, server, "Ingress",
                                    lambda rule, server=server, port=port, client=client:
                                    lets(rule, "from", client, port, server)):
                        yield f"{name_of(server)}: no NetworkPolicy lets {name_of(client)} in at {port}"


def is_everybody(peer):
    return peer == {} or peer.get("namespaceSelector") == {} or peer.get("ipBlock", {}).get("cidr", "").endswith("/0")


def any_rule(policies, pod, direction, condition):
    """Whether a rule of a policy over this pod does it; true where no policy restrains the pod."""
    over = [policy["spec"] for policy in policies if matches(policy["spec"]["podSelector"], labels_of(pod))
            and direction in policy["spec"]["policyTypes"]]
    return not over or any(condition(rule) for spec in over for rule in spec.get(direction.lower(), []))


def lets(rule, side, peer, port, server):
    peers = rule.get(side)
    return lets_port(rule, port, server) and (peers is None or any(
        "podSelector" in one and "namespaceSelector" not in one and matches(one["podSelector"], labels_of(peer))
        for one in peers))


def lets_port(rule, port, server, protocol="TCP"):
    """A port by its number, or by the name that the serving pod gives it."""
    ports = rule.get("ports")
    return ports is None or any(
        one.get("protocol", "TCP") == protocol and
        (one["port"] == port or (server and isinstance(one["port"], str) and port_named(server, one["port"]) == port))
        for one in ports)


def port_named(pod, name):
    for container in pod_of(pod)["containers"]:
        for port in container.get("ports", []):
            if port["name"] == name:
                return port["containerPort"]
    return None
