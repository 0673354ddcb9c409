# SPDX-License-Identifier: Apache-2.0
"""Mistakes that people make in manifests, each on a rendered overlay: (what, overlay, change, words that name it)."""
import copy

import manifests
from meaning import pod_of

LOCAL, POOLS, ONE, FETCH = "local-cpu", "split-pools", "single-gpu", "fetched-models"
TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


class Objects:
    """Rendered objects, and the parts of them that mistakes are made in."""

    def __init__(self, things):
        self.things = copy.deepcopy(things)

    def get(self, kind, name):
        return self.find(self.things, kind, name)

    @staticmethod
    def find(things, kind, name):
        """Finds it by its name, or by what it is without the hash of a generator."""
        found, = [one for one in things if one["kind"] == kind and
                  (one["metadata"]["name"] == name or kind == "ConfigMap" and
                   one["metadata"]["name"].rpartition("-")[0] == name)]
        return found

    def deployment(self, role="verifier"):
        return self.get("Deployment", f"outrider-{role}")

    def spec(self, role="verifier"):
        return self.deployment(role)["spec"]

    def pod(self, role="verifier"):
        return pod_of(self.deployment(role))

    def container(self, role="verifier"):
        return self.pod(role)["containers"][0]

    def limits(self, role="verifier"):
        return self.container(role)["resources"]["limits"]

    def requests(self, role="verifier"):
        return self.container(role)["resources"]["requests"]

    def settings(self, role):
        return self.get("ConfigMap", f"outrider-{role}")["data"]

    def replace_flag(self, role, old, new=None):
        args = self.container(role)["args"]
        args[args.index(old):args.index(old) + 1] = [new] if new else []

    def terms(self, role="verifier"):
        affinity = self.pod(role)["affinity"]["nodeAffinity"]
        return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]["matchExpressions"][0]

    def volume(self, name, role="verifier"):
        return next(one for one in self.pod(role)["volumes"] if one["name"] == name)

    def mount(self, name, role="verifier"):
        return next(one for one in self.container(role)["volumeMounts"] if one["name"] == name)

    def policy(self, name):
        return self.get("NetworkPolicy", f"outrider-{name}")["spec"]

    def claim(self):
        return self.get("PersistentVolumeClaim", "outrider-models")["spec"]

    def fetch(self):
        """The pod of the Job that fetches, and in it the mount of the claim that it fills."""
        pod = pod_of(self.get("Job", "outrider-model-fetch"))
        return pod, next(one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "models")

    def budget(self, role="verifier"):
        return self.get("PodDisruptionBudget", f"outrider-{role}")["spec"]

    def scaler(self, role="verifier"):
        return self.get("HorizontalPodAutoscaler", f"outrider-{role}")["spec"]

    def scale_down(self):
        return self.scaler()["behavior"]["scaleDown"]

    def endpoint(self):
        return self.get("PodMonitor", "outrider")["spec"]["podMetricsEndpoints"][0]


def rename_port(o):
    o.container()["ports"][1]["name"] = "metrics-of-verifier"
    o.get("Service", "outrider-verifier")["spec"]["ports"][1]["targetPort"] = "metrics-of-verifier"


def without_hash(o):
    config, = [one for one in o.container()["envFrom"] if "configMapRef" in one]
    o.get("ConfigMap", "outrider-verifier")["metadata"]["name"] = "outrider-verifier"
    config["configMapRef"]["name"] = "outrider-verifier"


def change_address(o, flag, port):
    old, = [word for word in o.container()["args"] if word.startswith(flag + "=")]
    o.replace_flag("verifier", old, f"{flag}=127.0.0.1:{port}")


def two_budgets(o):
    extra = copy.deepcopy(o.get("PodDisruptionBudget", "outrider-verifier"))
    extra["metadata"]["name"] = "outrider-verifier-too"
    o.things.append(extra)


def mix_slices(o):
    o.limits("drafter").pop("nvidia.com/gpu")
    o.limits("drafter")["nvidia.com/mig-1g.10gb"] = 1
    o.pod("drafter")["affinity"].pop("nodeAffinity")


def rename_volume(o):
    o.volume("tls")["name"] = o.mount("tls")["name"] = "TLS_files"


def empty_models(o):
    o.volume("models").pop("persistentVolumeClaim")
    o.volume("models").update(emptyDir={})


def never_rolled_out(o):
    o.spec()["strategy"]["rollingUpdate"] = {"maxSurge": 0, "maxUnavailable": 0}


def shares_that_round_to_nothing(o):
    o.spec("coordinator")["strategy"]["rollingUpdate"] = {"maxSurge": "0%", "maxUnavailable": "25%"}


BROKEN = [
    # GPUs and nodes
    ("a GPU without the toleration of its nodes", POOLS, lambda o: o.pod().pop("tolerations"), ["does not tolerate the taint"]),
    ("a toleration of another taint", POOLS, lambda o: o.pod().update(tolerations=[{**TAINT, "key": "nvidia.com/gpus"}]),
     ["does not tolerate the taint"]),
    ("a toleration of another effect", POOLS, lambda o: o.pod().update(tolerations=[{**TAINT, "effect": "NoExecute"}]),
     ["does not tolerate the taint"]),
    ("a GPU's flag without its limit", POOLS, lambda o: o.limits().pop("nvidia.com/gpu"), ["no limit of nvidia.com/gpu"]),
    ("a GPU that no flag uses", POOLS, lambda o: o.replace_flag("verifier", "--device=cuda"), ["no --device=cuda"]),
    ("CUDA in an image that has none", POOLS, lambda o: o.container().update(image="outrider-node-cpu:0.1.0"),
     ["has --device=cuda, but its image"]),
    ("a GPU requested without a limit", POOLS, lambda o: (o.limits().pop("nvidia.com/gpu"),
                                                          o.requests().update({"nvidia.com/gpu": 1})), ["has no limit"]),
    ("two GPUs for a program that uses one", POOLS, lambda o: o.limits().update({"nvidia.com/gpu": 2}), ["the program uses one"]),
    ("half a GPU", POOLS, lambda o: o.limits().update({"nvidia.com/gpu": "500m"}), ["no whole number of GPUs"]),
    ("a misspelt GPU", POOLS, lambda o: (o.limits().pop("nvidia.com/gpu"), o.limits().update({"nvidia.com/gpus": 1})),
     ["nobody offers the resource nvidia.com/gpus"]),
    ("a whole GPU and a slice", POOLS, lambda o: o.limits().update({"nvidia.com/mig-1g.10gb": 1}), ["no machine gives it both"]),
    ("a whole GPU for one role and slices for another", POOLS, mix_slices, ["one GPU is not both"]),
    ("GPU nodes for who needs none", LOCAL, lambda o: o.pod("coordinator").update(tolerations=[TAINT]), ["but asks for no GPU"]),
    ("an unknown label of nodes", POOLS, lambda o: o.terms().update(key="nvidia.com/gpu-product"),
     ["no node has the label nvidia.com/gpu-product"]),
    ("an unknown nodeSelector", LOCAL, lambda o: o.pod().update(nodeSelector={"accelerator": "h100"}), ["no node has the label accelerator"]),
    ("a GPU by the name that people use", POOLS, lambda o: o.terms().update(values=["H100"]), ["'H100' is no value"]),
    ("a topology that nodes do not have", LOCAL, lambda o: o.pod()["topologySpreadConstraints"][0].update(topologyKey="kubernetes.io/host"),
     ["its topologyKey"]),
    ("pods that are spread by another role's", LOCAL, lambda o: o.pod()["topologySpreadConstraints"][0]["labelSelector"].update(
        matchLabels={"app.kubernetes.io/component": "drafter"}), ["does not count its own pods"]),
    ("a neighbour that is not there", LOCAL, lambda o: o.pod("drafter")["affinity"]["podAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]["labelSelector"].update(
            matchLabels={"app.kubernetes.io/component": "coordinater"}), ["affinity's labelSelector matches no pod"]),
    ("a priority that is not there", LOCAL, lambda o: o.pod().update(priorityClassName="high"), ["no PriorityClass high"]),
    # Secrets, mounts, flags
    ("a secret mounted elsewhere than flags say", POOLS, lambda o: next(
        one for one in o.container()["volumeMounts"] if one["name"] == "tls").update(mountPath="/certs"),
     ["--tls-cert /tls/tls.crt lies in no volume"]),
    ("a flag that looks elsewhere", POOLS, lambda o: o.replace_flag("verifier", "--tls-key=/tls/tls.key", "--tls-key=/tls/key.pem"),
     ["has no file for --tls-key"]),
    ("another role's secret", POOLS, lambda o: o.volume("tls")["secret"].update(secretName="outrider-drafter-tls"),
     ["outrider-drafter-tls, not outrider-verifier-tls"]),
    ("a secret's name misspelt", POOLS, lambda o: o.volume("tls")["secret"].update(secretName="outrider-verifer-tls"),
     ["not outrider-verifier-tls"]),
    ("a secret without the authority", POOLS, lambda o: o.volume("tls")["secret"].update(
        items=[{"key": one, "path": one} for one in ("tls.crt", "tls.key")]), ["has no file for --tls-ca"]),
    ("a secret's mode in decimal", POOLS, lambda o: o.volume("tls")["secret"].update(defaultMode=440), ["have the mode 670"]),
    ("a certificate in place of the authority", POOLS, lambda o: o.replace_flag(
        "verifier", "--tls-ca=/tls/ca.crt", "--tls-ca=/tls/tls.crt"), ["--tls-ca is /tls/tls.crt, not ca.crt"]),
    ("a mount without a volume", POOLS, lambda o: o.pod()["volumes"].remove(o.volume("tls")), ["which is no volume"]),
    ("models at another place", LOCAL, lambda o: o.container()["volumeMounts"][0].update(mountPath="/model"),
     ["--model /models/demo-target lies in no volume"]),
    ("models that the server may write to", LOCAL, lambda o: o.container()["volumeMounts"][0].pop("readOnly"), ["may write to the models"]),
    ("a forgotten --tls-ca", POOLS, lambda o: o.replace_flag("verifier", "--tls-ca=/tls/ca.crt"), ["no --tls-ca"]),
    ("a forgotten --tls-ca of the coordinator", POOLS, lambda o: o.replace_flag("coordinator", "--tls-ca=/tls/ca.crt"), ["no --tls-ca"]),
    ("a forgotten --tls-clients", POOLS, lambda o: o.replace_flag("verifier", "--tls-clients=outrider-coordinator"), ["--tls-clients"]),
    ("a client's name misspelt", POOLS, lambda o: o.replace_flag(
        "drafter", "--tls-clients=outrider-coordinator", "--tls-clients=outrider-cordinator"), ["is no coordinator's name"]),
    ("plain text beside TLS", POOLS, lambda o: o.container()["args"].append("--insecure"), ["TLS and --insecure"]),
    ("plain HTTP/2 for a Service of TLS", POOLS, lambda o: o.get("Service", "outrider-coordinator")["spec"]["ports"][0].update(
        appProtocol="kubernetes.io/h2c"), ["h2c is plain text"]),
    ("files of a ConfigMap that is not there", FETCH, lambda o: next(one for one in pod_of(o.get("Job", "outrider-model-fetch"))[
        "volumes"] if one["name"] == "files")["configMap"].update(name="model-files"), ["ConfigMap model-files of its volume is not there"]),
    ("a claim of another name", POOLS, lambda o: o.volume("models")["persistentVolumeClaim"].update(claimName="models"),
     ["claim models of its volume is not there"]),
    ("a volume of one node for pods of two pools", POOLS, lambda o: o.get("PersistentVolumeClaim", "outrider-models")["spec"].update(
        accessModes=["ReadWriteOnce"]), ["ReadWriteOnce, but pods of several nodes"]),
    ("a volume that nothing can fill", POOLS, lambda o: o.get("PersistentVolumeClaim", "outrider-models")["spec"].update(
        accessModes=["ReadOnlyMany"]), ["nothing can fill it"]),
    ("a claim that is no folder", POOLS, lambda o: o.claim().update(volumeMode="Block"), ["cannot be mounted as a folder"]),
    ("a key that the secret has not", POOLS, lambda o: o.volume("tls")["secret"].update(
        items=[{"key": one, "path": path} for one, path in (("tls.cert", "tls.crt"), ("tls.key", "tls.key"), ("ca.crt", "ca.crt"))]),
     ["has no key tls.cert"]),
    ("the secret of API keys misspelt", POOLS, lambda o: o.volume("keys", "gateway")["secret"].update(secretName="outrider-gateway-key"),
     ["outrider-gateway-key, not outrider-gateway-keys"]),
    ("certificates by subPath", POOLS, lambda o: o.mount("tls").update(subPath="certs"), ["renewed files do not come"]),
    # Models
    ("models in a folder that nothing fills", POOLS, empty_models, ["lies in an emptyDir that nothing fills"]),
    ("a fetch that may not write", FETCH, lambda o: o.fetch()[1].update(readOnly=True), ["may not write to the claim"]),
    ("a fetch whose claim is read-only", FETCH, lambda o: next(
        one for one in o.fetch()[0]["volumes"] if one["name"] == "models")["persistentVolumeClaim"].update(readOnly=True),
     ["may not write to the claim"]),
    ("a fetch that may not leave", FETCH, lambda o: o.things.remove(o.get("NetworkPolicy", "outrider-model-fetch")),
     ["lets it leave for https://models.example/demo-target/1, port 443"]),
    ("a fetch that may leave by another port", FETCH, lambda o: o.policy("model-fetch")["egress"][0]["ports"][0].update(port=80),
     ["lets it leave for https://models.example/demo-target/1, port 443"]),
    ("a model without sums", FETCH, lambda o: o.get("ConfigMap", "outrider-model-files")["data"].pop("demo-draft-1.sha256"),
     ["no sums of demo-draft-1"]),
    ("a model that nobody fetches", FETCH, lambda o: o.settings("drafter").update(DRAFT_MODEL="demo-draft-2"),
     ["/models/demo-draft-2 of drafter is not among"]),
    ("a gateway of another model", LOCAL, lambda o: o.settings("gateway").update(TARGET_MODEL="demo-draft"),
     ["the gateway's --model /models/demo-draft is not the verifier's"]),
    ("a name of the model that the next weights take away", FETCH, lambda o: o.settings("gateway").update(MODEL_NAME="demo-target-1"),
     ["--model-name demo-target-1 of Deployment/outrider-gateway is a folder's"]),
    ("another model by the demo's name", POOLS, lambda o: [
        o.settings(role).update(TARGET_MODEL="big-7f3c2a1") for role in ("coordinator", "gateway", "verifier")],
     ["--model-name demo-target, but its model is big-7f3c2a1"]),
    # Roll-outs and drains
    ("a budget that blocks drains", LOCAL, lambda o: o.budget().update(maxUnavailable=0), ["a node cannot be drained"]),
    ("a budget of all pods", POOLS, lambda o: (o.budget().pop("maxUnavailable"), o.budget().update(minAvailable=2)),
     ["a node cannot be drained"]),
    ("a budget of all pods, as a share", POOLS, lambda o: (o.budget().pop("maxUnavailable"), o.budget().update(minAvailable="100%")),
     ["a node cannot be drained"]),
    ("two budgets over one role", LOCAL, two_budgets, ["each eviction is refused"]),
    ("a budget over everything", LOCAL, lambda o: o.budget().update(selector={"matchLabels": {"app.kubernetes.io/name": "outrider"}}),
     ["matches the pods of 4 roles"]),
    ("a budget that protects nobody", POOLS, lambda o: o.budget().update(maxUnavailable="100%"), ["all 2 pods may be evicted at once"]),
    ("a budget that says nothing", LOCAL, lambda o: o.budget().pop("maxUnavailable"), ["may be evicted at once"]),
    ("a budget by which pods that load hold up a drain", LOCAL,
     lambda o: o.budget().pop("unhealthyPodEvictionPolicy"), ["pods that are not ready hold up a drain"]),
    ("a budget with both", LOCAL, lambda o: o.budget().update(minAvailable=0), ["both are refused"]),
    ("no surge and none unavailable", LOCAL, never_rolled_out, ["it can never be rolled out"]),
    ("shares that come to nothing", LOCAL, shares_that_round_to_nothing, ["it can never be rolled out"]),
    ("a surge on the only GPU", ONE, lambda o: o.spec()["strategy"].update(rollingUpdate={"maxSurge": 1, "maxUnavailable": 0}),
     ["waits for ever where its one GPU"]),
    ("all pods replaced at once", LOCAL, lambda o: o.spec("coordinator").update(strategy={"type": "Recreate"}), ["takes away all pods"]),
    ("a roll-out that is faster than DNS", LOCAL, lambda o: o.spec().pop("minReadySeconds"), ["has found its successor"]),
    ("a roll-out that is faster than a load balancer", LOCAL, lambda o: o.spec("gateway").pop("minReadySeconds"),
     ["before load balancers have found its successor"]),
    ("a gateway that load balancers do not forget in time", LOCAL,
     lambda o: o.container("gateway")["lifecycle"]["preStop"]["exec"].update(command=["sleep", "5"]),
     ["before load balancers have forgotten the pod"]),
    ("a roll-out that is given up while a model loads", LOCAL, lambda o: o.spec().pop("progressDeadlineSeconds"),
     ["counts as failed while its first pod"]),
    ("no pods at all", LOCAL, lambda o: o.spec().update(replicas=0), ["nothing serves"]),
    ("a paused Deployment", LOCAL, lambda o: o.spec().update(paused=True), ["it is paused"]),
    ("settings whose edit rolls no pods", LOCAL, without_hash, ["has no hash"]),
    ("pods that end after ten minutes", LOCAL, lambda o: o.pod().update(activeDeadlineSeconds=600), ["activeDeadlineSeconds"]),
    ("pods that are not started again", LOCAL, lambda o: o.pod().update(restartPolicy="Never"), ["restartPolicy Never"]),
    ("no way back", LOCAL, lambda o: o.spec().update(revisionHistoryLimit=0), ["no way back"]),
    # Containers
    ("a privileged container", LOCAL, lambda o: o.container()["securityContext"].update(privileged=True), ["is privileged"]),
    ("a capability", LOCAL, lambda o: o.container()["securityContext"]["capabilities"].update(add=["SYS_PTRACE"]), ["SYS_PTRACE"]),
    ("a folder of the machine", LOCAL, lambda o: o.volume("models").update(emptyDir=None, hostPath={"path": "/data"}) or
     o.volume("models").pop("emptyDir"), ["is a hostPath"]),
    ("a container that runs as root", LOCAL, lambda o: o.container()["securityContext"].update(runAsUser=0), ["runs as root"]),
    ("a container that may run as root", LOCAL, lambda o: o.container()["securityContext"].update(runAsNonRoot=False), ["runs as root"]),
    ("no seccomp in one container", LOCAL, lambda o: o.container()["securityContext"].update(seccompProfile={"type": "Unconfined"}),
     ["seccompProfile"]),
    ("the group root beside its own", LOCAL, lambda o: o.pod()["securityContext"].update(supplementalGroups=[0]), ["group root"]),
    ("no AppArmor", LOCAL, lambda o: o.spec()["template"]["metadata"].update(
        annotations={"container.apparmor.security.beta.kubernetes.io/verifier": "unconfined"}), ["is unconfined"]),
    ("the machine's network", LOCAL, lambda o: o.pod().update(hostNetwork=True), ["hostNetwork"]),
    ("a port of the machine", LOCAL, lambda o: o.container()["ports"][0].update(hostPort=7002), ["takes a hostPort"]),
    ("a namespace that enforces nothing", LOCAL, lambda o: o.get("Namespace", "outrider")["metadata"].pop("labels"), ["Pod Security"]),
    # Resources, images, names
    ("a request above its limit", LOCAL, lambda o: o.requests().update(memory="16Gi"), ["above its limit 8Gi"]),
    ("a cache that takes all memory", LOCAL, lambda o: o.container()["args"].append("--kv-cache-memory=8GB"),
     ["does not fit into its limit of memory, 8Gi"]),
    ("a second container that does not drain", LOCAL, lambda o: o.pod()["containers"].append(
        {"name": "proxy", "image": "registry.example/proxy:1", "args": ["sleep", "60"]}), ["container proxy has no preStop"]),
    ("a unit that is none", LOCAL, lambda o: o.limits().update(memory="8GB"), ["'8GB' is no quantity"]),
    ("memory in thousandths of bytes", LOCAL, lambda o: (o.limits().update(memory="512m"), o.requests().update(memory="256m")),
     ["512m are 0.512 bytes"]),
    ("cores for thousandths", LOCAL, lambda o: (o.limits().update(cpu="1000"), o.requests().update(cpu="500")), ["500 are 500 cores"]),
    ("thousandths for cores", LOCAL, lambda o: (o.limits().update(cpu="2m"), o.requests().update(cpu="1m")), ["2m are 0.002 cores"]),
    ("an image of any version", POOLS, lambda o: o.container().update(image="registry.example/outrider-node-cuda:latest"),
     ["names no version"]),
    ("an image whose tag moves", POOLS, lambda o: o.container().update(image="registry.example/outrider-node-cuda:stable"),
     ["names no version"]),
    ("an image without a version", POOLS, lambda o: o.container("coordinator").update(image="registry.example:5000/outrider-coordinator"),
     ["names no version"]),
    ("an image without the program", LOCAL, lambda o: o.container().update(image="localhost/outrider-coordinator:latest"),
     ["has no outrider-verifier"]),
    ("a local image that is pulled", LOCAL, lambda o: o.container().update(imagePullPolicy="Always"), ["can be pulled from nowhere"]),
    ("a port's name of more than 15 characters", LOCAL, rename_port, ["a name has at most 15"]),
    ("a container's name with a capital", LOCAL, lambda o: o.container().update(name="Verifier"), ["no name of a container"]),
    ("a volume's name with a capital", POOLS, rename_volume, ["no name of a volume"]),
    ("a label of pods that is a sentence", LOCAL, lambda o: o.spec()["template"]["metadata"]["labels"].update(note="to be seen"),
     ["'to be seen' of its pods' note"]),
    ("a priority of the system's own", LOCAL, lambda o: o.get("PriorityClass", "outrider").update(value=2000000000),
     ["above 1000000000"]),
    ("a namespace that is not there", LOCAL, lambda o: o.deployment()["metadata"].update(namespace="outrider-prod"),
     ["no namespace outrider-prod"]),
    ("a service account that is not there", LOCAL, lambda o: o.pod().update(serviceAccountName="verifier"), ["no ServiceAccount verifier"]),
    ("a service account of another namespace", LOCAL, lambda o: o.get("ServiceAccount", "outrider-verifier")["metadata"].update(
        namespace="default"), ["no ServiceAccount outrider-verifier"]),
    ("a claim's size in a unit that is none", POOLS, lambda o: o.get("PersistentVolumeClaim", "outrider-models")["spec"]["resources"][
        "requests"].update(storage="200GB"), ["'200GB' is no quantity"]),
    ("a policy of pulling that is none", LOCAL, lambda o: o.container("drafter").update(imagePullPolicy="IfNotPresnt"), ["no word that"]),
    ("a direction in small letters", LOCAL, lambda o: o.get("NetworkPolicy", "outrider-nodes")["spec"].update(policyTypes=["ingress"]),
     ["'ingress' is no word"]),
    # Autoscalers and monitoring
    ("an autoscaler on a metric of another role", POOLS, lambda o: o.scaler()["metrics"][0]["pods"]["metric"].update(
        name="outrider_verifiers_ready"), ["does not export outrider_verifiers_ready"]),
    ("an autoscaler on what only grows", POOLS, lambda o: o.scaler()["metrics"][0]["pods"]["metric"].update(
        name="outrider_requests_total"), ["outrider_requests_total is no load"]),
    ("an autoscaler on a histogram", POOLS, lambda o: o.scaler()["metrics"][0]["pods"]["metric"].update(name="outrider_pass_seconds"),
     ["outrider_pass_seconds is no load"]),
    ("an autoscaler of verifiers on who waits alone", POOLS,
     lambda o: o.scaler().update(metrics=o.scaler()["metrics"][:1]),
     ["HorizontalPodAutoscaler/outrider-verifier", "users who share a pass"]),
    ("an autoscaler that ends all pods at once", POOLS, lambda o: o.scale_down().pop("policies"),
     ["several pods at once"]),
    ("an autoscaler that ends half of the pods at once", POOLS,
     lambda o: o.scale_down()["policies"][0].update(type="Percent", value=50), ["several pods at once"]),
    ("an autoscaler that is faster than a drain", POOLS,
     lambda o: o.scale_down()["policies"][0].update(periodSeconds=60),
     ["before the drain of one, of at most 320 s, is over"]),
    ("an autoscaler without metrics", POOLS, lambda o: o.scaler().pop("metrics"), ["it has no metrics"]),
    ("an autoscaler that remembers for two hours", POOLS, lambda o: o.scaler()["behavior"]["scaleDown"].update(
        stabilizationWindowSeconds=7200), ["stabilizationWindowSeconds is above 3600"]),
    ("an autoscaler on the use of a CPU", POOLS, lambda o: o.scaler().update(metrics=[{"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]), ["not on the load"]),
    ("at least more pods than at most", POOLS, lambda o: o.scaler().update(minReplicas=9), ["at least 9 pods and at most 8"]),
    ("replicas beside an autoscaler", POOLS, lambda o: o.spec().update(replicas=2), ["each apply sets them back"]),
    ("an autoscaler of what is not there", POOLS, lambda o: o.scaler()["scaleTargetRef"].update(name="verifier"),
     ["a Deployment that is not there"]),
    ("a field that a PodMonitor has not", POOLS, lambda o: o.endpoint().update(targetport="metrics"), ["podMetricsEndpoints.0", "'targetport' was unexpected"]),
    ("a scrape of a port that is not there", POOLS, lambda o: o.endpoint().update(port="http-metrics"), ["no port http-metrics"]),
    ("an interval that is no duration", POOLS, lambda o: o.endpoint().update(interval="15"), ["no durations"]),
    ("a ServiceMonitor's field", POOLS, lambda o: o.get("PodMonitor", "outrider")["spec"].update(
        endpoints=o.get("PodMonitor", "outrider")["spec"].pop("podMetricsEndpoints")), ["spec", "'endpoints' was unexpected"]),
    ("a monitor that leaves roles out", POOLS, lambda o: o.get("PodMonitor", "outrider")["spec"]["selector"].update(
        matchLabels={"app.kubernetes.io/component": "verifier"}), ["no PodMonitor selects its pods"]),
    ("a monitor of another namespace", POOLS, lambda o: o.get("PodMonitor", "outrider")["spec"].update(
        namespaceSelector={"matchNames": ["default"]}), ["where there are none"]),
    # Probes
    ("liveness that asks for readiness", LOCAL, lambda o: o.container()["livenessProbe"]["grpc"].pop("service"),
     ["livenessProbe asks for the service ''"]),
    ("readiness that asks for liveness", LOCAL, lambda o: o.container()["readinessProbe"]["grpc"].update(service="liveness"),
     ["readinessProbe asks for the service 'liveness'"]),
    ("liveness by a page that says nothing", POOLS, lambda o: o.container()["livenessProbe"]["httpGet"].update(path="/metrics"),
     ["livenessProbe asks for /metrics"]),
    ("a coordinator that is killed while it waits for verifiers", LOCAL, lambda o: o.container("coordinator")["startupProbe"]["grpc"].update(
        service="readiness"), ["startupProbe asks for the service 'readiness'"]),
    ("a coordinator that is killed while it drains", LOCAL, lambda o: o.container("coordinator").update(livenessProbe={
        "grpc": {"port": 7000, "service": "liveness"}, "periodSeconds": 10, "failureThreshold": 6}),
     ["livenessProbe is gRPC, which a coordinator that drains does not listen for"]),
    ("a start without the time to load a model", LOCAL, lambda o: o.container()["startupProbe"].update(failureThreshold=3),
     ["gives up after 15 s"]),
    ("a liveness that must hold twice", LOCAL, lambda o: o.container()["livenessProbe"].update(successThreshold=2), ["successThreshold"]),
    ("a probe that overtakes itself", LOCAL, lambda o: o.container()["readinessProbe"].update(timeoutSeconds=9), ["asks again"]),
    ("a readiness that begins late", LOCAL, lambda o: o.container()["readinessProbe"].update(initialDelaySeconds=600),
     ["readinessProbe begins after 600 s"]),
    ("a probe all the time", LOCAL, lambda o: o.container()["readinessProbe"].update(periodSeconds=0, timeoutSeconds=0),
     ["has periodSeconds 0"]),
    # Settings
    ("a drafter for a verifier", LOCAL, lambda o: o.settings("coordinator").update(VERIFIER="outrider-drafter:7001"), ["leads to drafter"]),
    ("a setting that no flag reads", LOCAL, lambda o: o.settings("verifier").update(TARGET_MODLE="big"), ["no flag reads TARGET_MODLE"]),
    ("a tokenizer of another model", LOCAL, lambda o: o.settings("coordinator").update(TARGET_MODEL="demo-draft"),
     ["is not of the verifier's --model"]),
    ("more drafts than nodes take", LOCAL, lambda o: o.settings("coordinator").update(NUM_SPECULATIVE_TOKENS="32"),
     ["more than the verifier's --max-draft-tokens"]),
    ("drafts ahead by a drafter without a GPU", LOCAL, lambda o: o.settings("coordinator").update(SCHEDULE="auto"),
     ["--schedule auto, but the drafter has no GPU"]),
    ("drafts ahead, always, beside the verifier's GPU", ONE,
     lambda o: o.settings("coordinator").update(SCHEDULE="predraft"),
     ["--schedule predraft, but the drafter has no GPU"]),
    ("a schedule that there is not", POOLS, lambda o: o.settings("coordinator").update(SCHEDULE="parallel"),
     ["Deployment/outrider-coordinator", "--schedule: needs one of ahead, auto, predraft, sequential, not \"parallel\""]),
    ("weights that the coordinator refuses", LOCAL, lambda o: (
        o.container("verifier")["args"].append("--expect-weights=" + "a" * 64),
        o.container("coordinator")["args"].append("--expect-weights=" + "b" * 64)), ["would refuse the weights"]),
    ("nodes that only their own pods reach", LOCAL, lambda o: change_address(o, "--listen", 7002),
     ["--listen 127.0.0.1:7002 is reached from its own pod alone"]),
    ("metrics that only their own pods reach", LOCAL, lambda o: change_address(o, "--metrics-listen", 9090),
     ["--metrics-listen 127.0.0.1:9090 is reached from its own pod alone"]),
    ("names that are asked of the machine's resolver", LOCAL, lambda o: o.pod("coordinator").update(dnsPolicy="Default"),
     ["do not find the names of Services"]),
    ("a shell's variable", LOCAL, lambda o: o.replace_flag(
        "verifier", "--max-sessions=$(MAX_SESSIONS)", "--max-sessions=${MAX_SESSIONS}"), ["Kubernetes replaces $(NAME) alone"]),
    ("a policy that lets everybody in", LOCAL, lambda o: o.get("NetworkPolicy", "outrider-nodes")["spec"]["ingress"][0].pop("from"),
     ["lets everybody in"]),
    ("a namespace by a label that it has not", LOCAL, lambda o: o.get("NetworkPolicy", "outrider-metrics")["spec"]["ingress"][0]["from"][0][
        "namespaceSelector"].update(matchLabels={"name": "monitoring"}), ["no namespace has the label name"]),
    ("everybody by their addresses", LOCAL, lambda o: o.policy("nodes")["ingress"][0]["from"].append({"ipBlock": {"cidr": "0.0.0.0/0"}}),
     ["lets everybody in"]),
    ("a policy that denies one direction", LOCAL, lambda o: o.policy("default-deny").update(policyTypes=["Ingress"]),
     ["no NetworkPolicy denies"]),
    ("pods that may call everybody", LOCAL, lambda o: o.policy("coordinator")["egress"].append({}), ["out to everywhere"]),
    ("names by TCP alone", LOCAL, lambda o: o.policy("dns")["egress"][0]["ports"].pop(0), ["lets it ask for names"]),
    ("a policy for UDP", LOCAL, lambda o: o.policy("nodes")["ingress"][0]["ports"][0].update(protocol="UDP"),
     ["no NetworkPolicy lets Deployment/outrider-coordinator in"]),
    ("a Service for UDP", LOCAL, lambda o: o.get("Service", "outrider-verifier")["spec"]["ports"][0].update(protocol="UDP"),
     ["port grpc is UDP"]),
    ("a container's port for UDP", LOCAL, lambda o: o.container()["ports"][0].update(protocol="UDP"), ["port grpc is None"]),
    ("nodes that clients can see", LOCAL, lambda o: o.get("Service", "outrider-verifier")["spec"].update(
        type="NodePort", clusterIP=""), ["shows the nodes to clients"]),
]


def rendered():
    """The overlays that mistakes are made in."""
    folders = {name: manifests.DEPLOY / "overlays" / name for name in (LOCAL, POOLS, ONE)}
    folders[FETCH] = manifests.DEPLOY / "examples" / FETCH
    return {name: manifests.render(folder) for name, folder in folders.items()}
