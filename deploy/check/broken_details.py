# SPDX-License-Identifier: Apache-2.0
"""A mistake for each rule that broken.py, where the usual ones are, leaves out; in the same form."""
import sizes
from broken import FETCH, LOCAL, ONE, POOLS

NOBODY = {"matchLabels": {"app.kubernetes.io/component": "nobody"}}


def remove(o, kind, name):
    o.things.remove(o.get(kind, name))


def one_program_in_plain_text(o):
    args = o.container("drafter")["args"]
    args[:] = [word for word in args if not word.startswith("--tls")] + ["--insecure"]


def no_endpoint(o):
    o.get("PodMonitor", "outrider")["spec"]["podMetricsEndpoints"] = []


def rule(o):
    return o.get("PrometheusRule", "outrider")["spec"]["groups"][0]["rules"][0]


def dashboard(o):
    return o.get("ConfigMap", "outrider-dashboard")["data"]


def change_loop(o, old, new):
    command = o.pod()["initContainers"][0]["command"]
    command[2] = command[2].replace(old, new)


def service(o, name="verifier"):
    return o.get("Service", f"outrider-{name}")


DETAILS = [
    # Containers and pods
    ("an account's token in pods", LOCAL, lambda o: o.pod().pop("automountServiceAccountToken"), ["get a service account's token"]),
    ("pods that run as root", LOCAL, lambda o: o.pod()["securityContext"].update(runAsUser=0), ["securityContext.runAsUser is 0, not 65532"]),
    ("files of group root", LOCAL, lambda o: o.pod()["securityContext"].pop("fsGroup"), ["securityContext.fsGroup is None"]),
    ("settings of the machine's kernel", LOCAL, lambda o: o.pod()["securityContext"].update(
        sysctls=[{"name": "net.core.somaxconn", "value": "1024"}]), ["sets sysctls"]),
    ("an unmasked /proc", LOCAL, lambda o: o.container()["securityContext"].update(procMount="Unmasked"), ["unmasked /proc"]),
    ("a pod without an account", LOCAL, lambda o: o.pod().pop("serviceAccountName"), ["no service account of its own"]),
    ("pods on one machine", LOCAL, lambda o: o.pod().pop("topologySpreadConstraints"), ["nothing spreads its pods"]),
    ("pods that batch work displaces", LOCAL, lambda o: o.pod().pop("priorityClassName"), ["no priorityClassName"]),
    ("a label of nodes with no value", POOLS, lambda o: o.terms().update(values=[]), ["of the label nvidia.com/gpu.product has no values"]),
    ("values beside Exists", POOLS, lambda o: o.terms().update(operator="Exists"), ["Exists of the label nvidia.com/gpu.product has values"]),
    ("pods of one machine", POOLS, lambda o: o.pod().update(nodeName="gpu-1"), ["bound to one machine"]),
    ("settings that are not there", LOCAL, lambda o: o.container()["envFrom"][0]["configMapRef"].update(name="outrider-verifier-cfg"),
     ["from ConfigMap outrider-verifier-cfg, which is not there"]),
    ("a variable that nothing sets", LOCAL, lambda o: o.settings("drafter").pop("DRAFT_MODEL"), ["nothing sets $(DRAFT_MODEL)"]),
    ("a volume's limit in a unit that is none", LOCAL, lambda o: o.volume("models").update(emptyDir={"sizeLimit": "1GB"}),
     ["volume models: sizeLimit: '1GB' is no quantity"]),
    ("an image by the version of the project", POOLS, lambda o: o.container("gateway").update(
        image=f"registry.example/outrider-gateway:{sizes.project_version()}"), ["moves with each build"]),
    ("an image that nobody builds", POOLS, lambda o: o.container().update(image="outrider-node-gpu:0.1.0"), ["nobody builds the image outrider-node-gpu"]),
    ("two ports of one name", LOCAL, lambda o: o.container()["ports"][1].update(name="grpc"), ["two ports are called grpc"]),
    ("an SELinux type of the machine", LOCAL, lambda o: o.container()["securityContext"].update(seLinuxOptions={"type": "spc_t"}),
     ["container verifier has the SELinux type spc_t"]),
    ("pods of the machine's SELinux type", LOCAL, lambda o: o.pod()["securityContext"].update(seLinuxOptions={"type": "spc_t"}),
     ["the SELinux type spc_t is not"]),
    ("an image that is never pulled", POOLS, lambda o: o.container().update(imagePullPolicy="Never"), ["is never pulled"]),
    ("more threads than cores", LOCAL, lambda o: o.container()["args"].append("--threads=64"), ["--threads 64 share 2 cores"]),
    ("a priority of all pods of the cluster", LOCAL, lambda o: o.get("PriorityClass", "outrider").update(globalDefault=True), ["globalDefault"]),
    ("a priority below that of batch work", LOCAL, lambda o: o.get("PriorityClass", "outrider").update(value=-10), ["its value is -10"]),
    ("a wait that nothing ends", FETCH, lambda o: change_loop(o, "trap 'exit 143' TERM;", ""), ["wait-for-model loops without trap 'exit 143' TERM"]),
    ("a wait that does not listen", FETCH, lambda o: change_loop(o, "sleep 2", "sleep 60"), ["wait-for-model hears no SIGTERM while it sleeps for 60 s"]),
    # Volumes
    ("a claim for no model", POOLS, lambda o: o.claim()["resources"]["requests"].update(storage="200Mi"), ["200Mi hold no model"]),
    ("a fetch that never begins", FETCH, lambda o: o.get("Job", "outrider-model-fetch")["spec"].update(suspend=True), ["nothing is fetched"]),
    ("a secret that may be missing", POOLS, lambda o: o.volume("tls")["secret"].update(optional=True), ["is optional"]),
    ("two volumes at one path", POOLS, lambda o: o.mount("tls").update(mountPath="/models"), ["two volumes at one path"]),
    ("a volume that nobody mounts", POOLS, lambda o: o.container()["volumeMounts"].remove(o.mount("tls")), ["volume tls is mounted by no container"]),
    ("a path that is not absolute", POOLS, lambda o: o.mount("tls").update(mountPath="tls"), ["mountPath tls is not absolute"]),
    ("a role without TLS", POOLS, one_program_in_plain_text, ["some programs speak TLS and some do not"]),
    # Roll-outs and drains
    ("a roll-out that takes a pod before another is ready", LOCAL, lambda o: o.spec("gateway")["strategy"]["rollingUpdate"].update(
        maxUnavailable=1), ["maxUnavailable is not 0"]),
    ("a roll-out of all GPUs at once", ONE, lambda o: o.spec()["strategy"]["rollingUpdate"].update(maxUnavailable=2), ["all its 1 pods"]),
    ("a drain of no time", LOCAL, lambda o: o.replace_flag("verifier", "--drain-seconds=40", "--drain-seconds=0"), ["--drain-seconds 0"]),
    ("a budget's word that is none", LOCAL, lambda o: o.budget().update(unhealthyPodEvictionPolicy="Always"), ["'Always' is no word"]),
    ("no budget", LOCAL, lambda o: remove(o, "PodDisruptionBudget", "outrider-verifier"), ["no PodDisruptionBudget selects its pods"]),
    ("a budget of nobody", LOCAL, lambda o: o.budget().update(selector=NOBODY), ["PodDisruptionBudget/outrider-verifier: its selector matches no pod"]),
    ("less grace than the drain takes", LOCAL, lambda o: o.pod().update(terminationGracePeriodSeconds=30),
     ["terminationGracePeriodSeconds 30 is shorter than preStop 5 + drain 40 + 15"]),
    ("a gateway that drains for less time than a request may take", LOCAL,
     lambda o: o.replace_flag("gateway", "--request-seconds=600", "--request-seconds=900"),
     ["--drain-seconds 600 is less than --request-seconds 900"]),
    ("a gateway whose requests may take as long as they do by default", LOCAL,
     lambda o: (o.replace_flag("gateway", "--request-seconds=600"), o.replace_flag("gateway", "--drain-seconds=600", "--drain-seconds=60")),
     ["--drain-seconds 60 is less than --request-seconds 600"]),
    # Services and labels
    ("a Deployment of others' pods", LOCAL, lambda o: o.spec().update(selector=NOBODY), ["does not match its own pods"]),
    ("a label that all have, left out", LOCAL, lambda o: o.deployment()["metadata"]["labels"].pop("app.kubernetes.io/version"),
     ["no label app.kubernetes.io/version"]),
    ("a Service's port that no pod has", LOCAL, lambda o: service(o)["spec"]["ports"][0].update(targetPort="gprc"), ["has no port gprc"]),
    ("a headless Service with a port of its own", LOCAL, lambda o: service(o)["spec"]["ports"][0].update(port=80), ["must be the pods' 7002"]),
    ("a port without its protocol", LOCAL, lambda o: service(o)["spec"]["ports"][0].pop("appProtocol"), ["the port grpc has no appProtocol"]),
    ("a Service's port without a name", LOCAL, lambda o: service(o)["spec"]["ports"][1].update(name="Metrics_"), ["no name of a port"]),
    ("a Service that leads to pods that load", LOCAL, lambda o: service(o)["spec"].update(publishNotReadyAddresses=True),
     ["clients to pods that are not ready"]),
    ("an address that is no Service's", LOCAL, lambda o: o.settings("coordinator").update(VERIFIER="outrider-verifier:7003"),
     ["--verifier outrider-verifier:7003 is no Service's"]),
    ("clients that stay with one pod", LOCAL, lambda o: service(o, "coordinator")["spec"].update(sessionAffinity="ClientIP"),
     ["sessionAffinity ClientIP"]),
    # Policies
    ("a policy over nobody", LOCAL, lambda o: o.policy("gateway").update(podSelector=NOBODY), ["its podSelector matches no pod"]),
    ("a policy for a peer that is not there", LOCAL, lambda o: o.policy("gateway")["egress"][0]["to"][0].update(podSelector=NOBODY),
     ["a peer's podSelector matches no pod"]),
    ("a gateway that is cut off", LOCAL, lambda o: o.policy("gateway").pop("egress"),
     ["lets --coordinator outrider-coordinators:7000 leave"]),
    ("pods that may call all addresses", LOCAL, lambda o: o.policy("coordinator")["egress"].append(
        {"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}), ["out to everywhere"]),
    ("no scrapes", POOLS, lambda o: remove(o, "NetworkPolicy", "outrider-metrics"), ["lets anyone scrape"]),
    # Probes
    ("a probe of nothing that is served", LOCAL, lambda o: o.container().update(readinessProbe={"tcpSocket": {"port": 7002}}),
     ["asks neither the gRPC server nor HTTP"]),
    ("a probe of another port", LOCAL, lambda o: o.container()["livenessProbe"]["grpc"].update(port=7001), ["asks port 7001, but the program serves 7002"]),
    ("a probe without TLS beside it", POOLS, lambda o: o.container().update(readinessProbe={"grpc": {"port": 7002}}), ["readinessProbe is gRPC"]),
    ("a probe with TLS where there is none", POOLS, lambda o: o.container()["readinessProbe"]["httpGet"].update(scheme="HTTPS"), ["is HTTPS"]),
    ("a liveness without patience", LOCAL, lambda o: o.container()["livenessProbe"].update(failureThreshold=1), ["kills after 10 s"]),
    # Autoscalers and monitoring
    ("an autoscaler of another kind", POOLS, lambda o: o.scaler()["scaleTargetRef"].update(kind="StatefulSet"), ["it scales a StatefulSet of apps/v1"]),
    ("two autoscalers of one role", POOLS, lambda o: o.scaler("drafter")["scaleTargetRef"].update(name="outrider-verifier"),
     ["two autoscalers scale outrider-verifier"]),
    ("a goal that is no mean", POOLS, lambda o: o.scaler()["metrics"][0]["pods"].update(target={"type": "Value", "value": "2"}),
     ["no averageValue above 0"]),
    ("a monitor of another version", POOLS, lambda o: o.get("PodMonitor", "outrider").update(apiVersion="monitoring.coreos.com/v1alpha1"),
     ["PodMonitor/outrider: the operator reads"]),
    ("a monitor of nobody", POOLS, lambda o: o.get("PodMonitor", "outrider")["spec"].update(selector=NOBODY),
     ["PodMonitor/outrider: its selector matches no pod"]),
    ("a monitor without endpoints", POOLS, no_endpoint, ["nothing is scraped"]),
    ("a scrape of gRPC", POOLS, lambda o: o.endpoint().update(port="grpc"), ["the port grpc has no metrics"]),
    ("a scrape of another path", POOLS, lambda o: o.endpoint().update(path="/stats"), ["no metrics at /stats"]),
    ("a scrape by TLS", POOLS, lambda o: o.endpoint().update(scheme="https"), ["metrics are plain HTTP"]),
    ("a scrape that outlasts its interval", POOLS, lambda o: o.endpoint().update(scrapeTimeout="30s"), ["scrapeTimeout 30s is longer"]),
    ("rules of another version", POOLS, lambda o: o.get("PrometheusRule", "outrider").update(apiVersion="monitoring.coreos.com/v1beta1"),
     ["PrometheusRule/outrider: the operator reads"]),
    ("a dashboard that takes another team's place", POOLS, lambda o: dashboard(o).update({"dashboard.json": dashboard(o).pop("outrider.json")}),
     ["ConfigMap/outrider-dashboard: dashboard.json: Grafana's sidecar"]),
    ("a rule without an expression", POOLS, lambda o: rule(o).pop("expr"), ["a rule without alert, record or expr"]),
    ("a rule's field that there is not", POOLS, lambda o: rule(o).update(expression="1"), ["groups.0.rules.0", "'expression' was unexpected"]),
    ("a rule's time that is none", POOLS, lambda o: rule(o).update({"for": "2 min"}), ["2 min is no duration"]),
]
