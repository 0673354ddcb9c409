# SPDX-License-Identifier: Apache-2.0
"""Words of which Kubernetes knows a few, and its published schemas say only that they are words."""
from manifests import name_of

KNOWN = {
    "imagePullPolicy": {"Always", "IfNotPresent", "Never"},
    "restartPolicy": {"Always", "OnFailure", "Never"},
    "whenUnsatisfiable": {"DoNotSchedule", "ScheduleAnyway"},
    "effect": {"NoSchedule", "PreferNoSchedule", "NoExecute"},
    "operator": {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal"},
    "protocol": {"TCP", "UDP", "SCTP"},
    "policyTypes": {"Ingress", "Egress"},
    "unhealthyPodEvictionPolicy": {"IfHealthyBudget", "AlwaysAllow"},
    "selectPolicy": {"Max", "Min", "Disabled"},
    "accessModes": {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"},
}
TYPES = {"strategy": {"RollingUpdate", "Recreate"}, "seccompProfile": {"RuntimeDefault", "Localhost", "Unconfined"}}
CUSTOM = "ConfigMap", "PrometheusRule", "PodMonitor"  # other people's words


def check_enums(things):
    for thing in things:
        if thing["kind"] not in CUSTOM:
            for where, word in unknown(thing, ""):
                yield f"{name_of(thing)}: {where}: {word!r} is no word that Kubernetes knows"


def unknown(value, where):
    """(field, word) of each that is not known."""
    if isinstance(value, list):
        for one in value:
            yield from unknown(one, where)
    if not isinstance(value, dict):
        return
    for name, one in value.items():
        known = TYPES.get(where) if name == "type" else KNOWN.get(name)
        for word in (one if isinstance(one, list) else [one]) if known else []:
            if word not in known:
                yield f"{where}.{name}", word
        yield from unknown(one, name)
