# SPDX-License-Identifier: Apache-2.0
"""What the Prometheus operator reads: whether it points at what is there."""
import re

from manifests import name_of
from meaning import containers_of, labels_of, matches, of_kind, workloads

DURATION = re.compile(r"(\d+(ms|s|m|h))+")
API = "monitoring.coreos.com/v1"
# What a scrape by the operator names its target by: a metric's own label of this name becomes exported_NAME.
OF_TARGETS = {"container", "endpoint", "instance", "job", "namespace", "pod"}


def check_monitors(things):
    monitors = of_kind(things, "PodMonitor")
    for monitor in monitors:
        for problem in check_monitor(monitor, things):
            yield f"{name_of(monitor)}: {problem}"
    for thing in workloads(things) if monitors else []:
        has_metrics = any(port.get("name") == "metrics" for one in containers_of(thing) for port in one.get("ports", []))
        if has_metrics and not any(matches(one["spec"].get("selector", {}), labels_of(thing)) for one in monitors):
            yield f"{name_of(thing)}: no PodMonitor selects its pods"
    for rule in of_kind(things, "PrometheusRule"):
        for problem in check_rules(rule):
            yield f"{name_of(rule)}: {problem}"
    for config in of_kind(things, "ConfigMap"):
        for file in config["data"] if "grafana_dashboard" in config["metadata"].get("labels", {}) else []:
            if not file.startswith("outrider"):
                yield f"{name_of(config)}: {file}: Grafana's sidecar puts all teams' dashboards into one folder, by such names"


def seconds_of(text):
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
    return sum(int(count) * units[unit] for count, unit in re.findall(r"(\d+)(ms|s|m|h)", text))


def check_monitor(monitor, things):
    spec = monitor["spec"]
    if monitor["apiVersion"] != API:
        yield f"the operator reads {API}, not {monitor['apiVersion']}"
    if not spec.get("podMetricsEndpoints"):
        yield "it has no podMetricsEndpoints: nothing is scraped"
    spaces = spec.get("namespaceSelector", {}).get("matchNames")
    if spaces is not None and monitor["metadata"].get("namespace") not in spaces:
        yield f"it looks for pods in {', '.join(spaces)}, where there are none"
    pods = [thing for thing in workloads(things) if matches(spec.get("selector", {}), labels_of(thing))]
    ports = {port["name"] for thing in pods for one in containers_of(thing) for port in one.get("ports", [])}
    for endpoint in spec.get("podMetricsEndpoints", []):
        if endpoint.get("port") not in ports:
            yield f"its pods have no port {endpoint.get('port')}"
        if endpoint.get("port") == "grpc":
            yield "the port grpc has no metrics"
        if endpoint.get("path", "/metrics") != "/metrics":
            yield f"programs have no metrics at {endpoint['path']}"
        if endpoint.get("scheme", "http") != "http":
            yield "metrics are plain HTTP"
        times = [endpoint[name] for name in ("interval", "scrapeTimeout") if name in endpoint]
        if not all(isinstance(one, str) and DURATION.fullmatch(one) for one in times):
            yield f"{times} are no durations, such as 15s"
        elif len(times) == 2 and seconds_of(times[1]) > seconds_of(times[0]):
            yield f"scrapeTimeout {times[1]} is longer than interval {times[0]}"


def check_rules(rule):
    if rule["apiVersion"] != API:
        yield f"the operator reads {API}, not {rule['apiVersion']}"
    for group in rule["spec"].get("groups", []):
        for one in group.get("rules", []):
            name = one.get("alert") or one.get("record")
            if not name or "expr" not in one:
                yield f"group {group.get('name')}: a rule without alert, record or expr"
            if "for" in one and not DURATION.fullmatch(str(one["for"])):
                yield f"{name}: {one['for']} is no duration"
