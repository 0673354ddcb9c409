#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples for other people's operators name what is there: Services, secrets, metrics, and queries that answer."""
import copy
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

import custom_resources
import manifests
import meaning
import quantities
import sizes

EXAMPLES = manifests.DEPLOY / "examples"
PODS = ("outrider-verifier-a", 3), ("outrider-verifier-b", 1)


def objects(path):
    return list(yaml.safe_load_all((EXAMPLES / path).read_text()))


def of_kind(things, kind):
    return [thing for thing in things if thing["kind"] == kind]


def by_folder():
    """All objects of each example: rendered, or those of its files."""
    for folder in sorted(EXAMPLES.iterdir()):
        if (folder / "kustomization.yaml").exists():
            yield folder, manifests.render(folder)
        else:
            yield folder, [thing for path in sorted(folder.glob("*.yaml")) for thing in objects(path) if "kind" in thing]


def named_by(part):
    """(kind, name) of the secrets and ConfigMaps that some part of an object wants to be there."""
    if isinstance(part, list):
        for one in part:
            yield from named_by(one)
    elif isinstance(part, dict) and not part.get("optional"):
        for field, value in part.items():
            kind = "ConfigMap" if field.startswith("configMap") else "Secret"
            if field == "secretName":
                yield kind, value
            elif field in ("configMap", "configMapRef", "configMapKeyRef", "secretRef", "secretKeyRef"):
                yield from [(kind, value["name"])] if not value.get("optional") else []
            elif field in ("certificateRefs", "caCertificateRefs", "clientCertificateRef"):
                yield from ((one.get("kind", "Secret"), one["name"]) for one in (value if isinstance(value, list) else [value]))
            else:
                yield from named_by(value)


def made_by(things):
    for thing in things:
        if thing["kind"] == "Certificate":
            yield "Secret", thing["spec"]["secretName"]
        elif thing["kind"] in ("Secret", "ConfigMap"):
            yield thing["kind"], thing["metadata"]["name"]


def made_by_commands():
    kinds = {"secret generic": "Secret", "secret tls": "Secret", "configmap": "ConfigMap"}
    for path in (manifests.DEPLOY / "README.md", *EXAMPLES.glob("*/README.md")):
        for kind, name in re.findall(r"kubectl -n outrider create (secret \w+|configmap) (\S+) --from", path.read_text()):
            yield kinds[kind], name


class FieldsTest(unittest.TestCase):
    """Every object of every example, against the schema of its kind."""

    def test_every_object_fits(self):
        for folder, things in by_folder():
            with self.subTest(folder.name):
                self.assertEqual(manifests.validate(things), ([], []))

    def test_what_does_not_fit_is_found(self):
        kinds = set()
        for folder, things in by_folder():
            for thing in filter(custom_resources.is_custom, things):
                kinds.add(thing["kind"])
                with self.subTest(manifests.name_of(thing), folder=folder.name):
                    self.assert_found(thing, lambda one: one["spec"].update(misspelt=1), "'misspelt' was unexpected")
                    self.assert_found(thing, lambda one: one.update(apiVersion=f"{one['apiVersion']}x"), "unexpected kind")
                    self.assert_found(thing, lambda one: one["metadata"].update(namspace="x"), "'namspace' was unexpected")
                    self.assert_found(thing, lambda one: one.update(spec=[]), "is not of type 'object'")
        self.assertEqual(kinds, {"BackendTLSPolicy", "Certificate", "GRPCRoute", "Gateway", "HTTPRoute", "Issuer", "PodMonitor",
                                 "PrometheusRule", "ReferenceGrant", "ScaledObject"})

    def test_what_does_not_fit_is_found_further_in_as_well(self):
        route, = of_kind(objects("entry/grpcroute.yaml"), "GRPCRoute")
        self.assert_found(route, lambda one: one["spec"]["rules"][0]["backendRefs"][0].update(port="grpc"), "is not of type 'integer'")
        self.assert_found(route, lambda one: one["spec"]["rules"][0]["matches"][0]["method"].update(path="/"), "'path' was unexpected")
        scaled, = of_kind(objects("scaling/keda.yaml"), "ScaledObject")
        self.assert_found(scaled, lambda one: one["spec"]["triggers"][0]["metadata"].update(threshold=2), "is not of type 'string'")
        issued = of_kind(objects("certificates/certificates.yaml"), "Certificate")[0]
        self.assert_found(issued, lambda one: one["spec"].update(usages=["serve"]), "'serve' is not one of")

    def assert_found(self, thing, change, words):
        broken = copy.deepcopy(thing)
        change(broken)
        problems, _ = manifests.validate([broken])
        self.assertTrue(any(words in problem for problem in problems), f"{words} in none of {problems}")


class SecretsTest(unittest.TestCase):
    def test_every_secret_and_config_map_that_an_example_names_is_made(self):
        folders = list(by_folder())
        made = {one for _, things in folders for one in made_by(things)} | set(made_by_commands())
        for folder, things in folders:
            with self.subTest(folder.name):
                self.assertEqual(set(named_by(things)) - made, set())

    def test_what_is_named_is_seen(self):
        named = {folder.name: set(named_by(things)) for folder, things in by_folder()}
        self.assertLessEqual({("Secret", "outrider-example-tls"), ("ConfigMap", "outrider-authority")}, named["entry"])
        self.assertIn(("Secret", "outrider-authority"), named["certificates"])
        self.assertLessEqual({("Secret", "outrider-gateway-keys"), ("Secret", "outrider-verifier-tls")}, named["without-monitoring"])
        self.assertNotIn(("Secret", "outrider-model-source"), named["fetched-models"])  # it may be there

    def test_the_secret_that_the_gateway_shows_to_coordinators_is_made_for_a_client(self):
        patched, = re.findall(r'"clientCertificateRef": {"name": "([^"]+)", "namespace": "outrider"}', (EXAMPLES / "entry/README.md").read_text())
        certificates = {one["spec"]["secretName"]: one["spec"] for one in of_kind(objects("entry/certificates.yaml"), "Certificate")}
        self.assertIn("client auth", certificates[patched]["usages"])
        self.assertNotIn("outrider-coordinator", certificates[patched]["dnsNames"], "nodes would serve whoever has this name")

    def test_the_entrys_certificate_has_the_name_that_it_listens_at(self):
        gateways = [one for path in ("grpcroute", "httproute") for one in of_kind(objects(f"entry/{path}.yaml"), "Gateway")]
        self.assertEqual(len(gateways), 2)
        certificates = {one["spec"]["secretName"]: one["spec"] for one in of_kind(objects("entry/certificates.yaml"), "Certificate")}
        issuers = {one["metadata"]["name"] for one in of_kind(objects("certificates/certificates.yaml"), "Issuer")}
        for listener in (one for gateway in gateways for one in gateway["spec"]["listeners"]):
            for shown in listener["tls"]["certificateRefs"]:
                self.assertIn(listener["hostname"], certificates[shown["name"]]["dnsNames"])
        self.assertLessEqual({one["issuerRef"]["name"] for one in certificates.values()}, issuers)


class EntryTest(unittest.TestCase):
    """The Gateways, where the release's policies do not reach their pods."""

    def setUp(self):
        self.things = dict(by_folder())[EXAMPLES / "entry"]

    def of_kind(self, kind):
        return of_kind(self.things, kind)

    def test_gateways_lie_in_a_namespace_of_their_own_which_the_policies_let_in(self):
        space, = self.of_kind("Namespace")
        name = space["metadata"]["name"]
        for folder in manifests.OVERLAYS:
            self.assertNotIn(name, {one["metadata"]["name"] for one in
                                    of_kind(manifests.render(manifests.DEPLOY / "overlays" / folder), "Namespace")})
        self.assertEqual({one["metadata"]["namespace"] for one in self.of_kind("Gateway")}, {name})
        for policy in self.of_kind("NetworkPolicy"):
            peers = [peer for rule in policy["spec"]["ingress"] for peer in rule["from"]]
            self.assertEqual(peers, [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}])

    def test_each_route_leads_from_a_gateway_that_takes_routes_of_its_namespace(self):
        gateways = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in self.of_kind("Gateway")}
        routes = self.of_kind("GRPCRoute") + self.of_kind("HTTPRoute")
        self.assertEqual(len(routes), 2)
        for route in routes:
            for parent in route["spec"]["parentRefs"]:
                for listener in gateways[parent["namespace"], parent["name"]]["spec"]["listeners"]:
                    allowed = listener["allowedRoutes"]["namespaces"]
                    self.assertEqual(allowed["from"], "Selector")
                    self.assertTrue(meaning.matches(allowed["selector"], {"kubernetes.io/metadata.name": route["metadata"]["namespace"]}))

    def test_gateways_may_read_the_secrets_that_they_name_and_no_others(self):
        named = {(one["namespace"], one["name"]) for gateway in self.of_kind("Gateway")
                 for listener in gateway["spec"]["listeners"] for one in listener["tls"]["certificateRefs"]}
        patch, = re.findall(r"-p '({.*})'", (EXAMPLES / "entry/README.md").read_text())
        patched = yaml.safe_load(patch)["spec"]["tls"]["backend"]["clientCertificateRef"]
        grant, = self.of_kind("ReferenceGrant")
        self.assertEqual({(one["kind"], one["namespace"]) for one in grant["spec"]["from"]},
                         {("Gateway", gateway["metadata"]["namespace"]) for gateway in self.of_kind("Gateway")})
        self.assertEqual({(grant["metadata"]["namespace"], one["name"]) for one in grant["spec"]["to"]},
                         named | {(patched["namespace"], patched["name"])})
        made = {(one["metadata"]["namespace"], one["spec"]["secretName"]) for one in self.of_kind("Certificate")}
        self.assertEqual({(grant["metadata"]["namespace"], one["name"]) for one in grant["spec"]["to"]}, made)


class MonitoringTest(unittest.TestCase):
    """The two examples that say what becomes of monitoring."""

    def things_of_monitoring(self, example):
        return {name for name in map(manifests.name_of, manifests.render(EXAMPLES / example))
                if re.search("monitor|metrics|prometheus|dashboard", name, re.IGNORECASE)}

    def test_without_monitoring_nothing_of_it_is_left(self):
        all_of_it = {"PodMonitor/outrider", "PrometheusRule/outrider", "NetworkPolicy/outrider-metrics", "ConfigMap/outrider-dashboard"}
        self.assertEqual(self.things_of_monitoring("monitoring-elsewhere"), all_of_it)
        self.assertEqual(self.things_of_monitoring("without-monitoring"), set())


class ExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.things = manifests.render(manifests.DEPLOY / "overlays/split-pools")

    def services(self):
        return {one["metadata"]["name"]: {port["port"] for port in one["spec"]["ports"]}
                for one in meaning.of_kind(self.things, "Service")}

    def test_each_secret_that_is_mounted_has_a_certificate_with_its_services_names(self):
        certificates = {one["spec"]["secretName"]: one["spec"] for one in
                        of_kind(objects("certificates/certificates.yaml"), "Certificate")}
        for thing in meaning.of_kind(self.things, "Deployment"):
            tls, = [volume["secret"]["secretName"] for volume in meaning.pod_of(thing)["volumes"] if volume["name"] == "tls"]
            names = certificates[tls]["dnsNames"]
            for service in meaning.of_kind(self.things, "Service"):
                if meaning.matches(service["spec"]["selector"], meaning.labels_of(thing)):
                    self.assertIn(service["metadata"]["name"], names)
            is_coordinator = tls == "outrider-coordinator-tls"
            self.assertEqual("outrider-coordinator" in names, is_coordinator, "nodes would serve whoever has this name")
            self.assertEqual("localhost" in names, is_coordinator, "RUNBOOKS.md asks it inside its pod")

    def test_certificates_are_of_an_issuer_that_is_there_and_usable_on_the_side_that_shows_them(self):
        things = objects("certificates/certificates.yaml")
        issuers = {one["metadata"]["name"] for one in of_kind(things, "Issuer")}
        usages = {one["metadata"]["name"]: set(one["spec"].get("usages", [])) for one in of_kind(things, "Certificate")}
        self.assertLessEqual({one["spec"]["issuerRef"]["name"] for one in of_kind(things, "Certificate")}, issuers)
        self.assertEqual(usages["outrider-coordinator"], {"server auth", "client auth"})
        self.assertEqual(usages["outrider-verifier"], {"server auth"})
        self.assertEqual(usages["outrider-gateway"], {"client auth"})

    def test_the_route_leads_to_a_service_with_that_port_by_a_method_that_is_served(self):
        things = objects("entry/grpcroute.yaml")
        rule, = of_kind(things, "GRPCRoute")[0]["spec"]["rules"]
        for backend in rule["backendRefs"]:
            self.assertIn(backend["port"], self.services()[backend["name"]])
        proto = (meaning.ROOT / "proto/outrider/v1/generation.proto").read_text()
        self.assertIn("service GenerationService", proto)
        self.assertIn("outrider.v1.GenerationService", [one["method"]["service"] for one in rule["matches"]])
        policy, = of_kind(things, "BackendTLSPolicy")
        self.assertIn(policy["spec"]["targetRefs"][0]["name"], self.services())

    def test_the_route_of_http_leads_to_what_is_served_there_and_its_policy_lets_it_in(self):
        things = objects("entry/httproute.yaml")
        route, = of_kind(things, "HTTPRoute")
        gateway, = of_kind(things, "Gateway")
        self.assertEqual([one["name"] for one in route["spec"]["parentRefs"]], [gateway["metadata"]["name"]])
        self.assertEqual(route["spec"]["hostnames"], [one["hostname"] for one in gateway["spec"]["listeners"]])
        rule, = route["spec"]["rules"]
        for backend in rule["backendRefs"]:
            self.assertIn(backend["port"], self.services()[backend["name"]])
        served = re.findall(r'Route\("([^"]+)"', (meaning.ROOT / "gateway/outrider_gateway/app.py").read_text())
        for match in rule["matches"]:
            self.assertTrue(any(path.startswith(match["path"]["value"] + "/") for path in served), match)
        self.assertEqual(set(rule["timeouts"].values()), {"0s"}, "a whole reply may take all of --request-seconds")
        policy, = of_kind(things, "NetworkPolicy")
        pods, = [one for one in meaning.of_kind(self.things, "Deployment")
                 if meaning.matches(policy["spec"]["podSelector"], meaning.labels_of(one))]
        ports = {port["name"] for port in meaning.pod_of(pods)["containers"][0]["ports"]}
        self.assertLessEqual({one["port"] for rule in policy["spec"]["ingress"] for one in rule["ports"]}, ports)

    def test_keda_scales_a_deployment_on_what_its_component_would(self):
        scaled, = of_kind(objects("scaling/keda.yaml"), "ScaledObject")
        scaler, = [one for one in meaning.of_kind(self.things, "HorizontalPodAutoscaler")
                   if one["spec"]["scaleTargetRef"]["name"] == scaled["spec"]["scaleTargetRef"]["name"]]
        triggers = scaled["spec"]["triggers"]
        self.assertGreater(len(triggers), 1)
        for metric, trigger in zip(scaler["spec"]["metrics"], triggers, strict=True):
            name, goal = metric["pods"]["metric"]["name"], metric["pods"]["target"]["averageValue"]
            self.assertEqual(float(trigger["metadata"]["threshold"]), quantities.value_of(goal))
            # KEDA divides what Prometheus answers by the number of pods.
            self.assert_answers(trigger["metadata"]["query"], {"{}": sum(value for _, value in PODS)}, name)
        behavior = scaled["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        self.assertEqual(behavior, scaler["spec"]["behavior"])

    def test_the_adapters_rule_finds_every_metric_and_answers_for_each_pod(self):
        rule, = yaml.safe_load((EXAMPLES / "scaling/prometheus-adapter.yaml").read_text())["rules"]["custom"]
        pattern = re.search(r'__name__=~"([^"]+)"', rule["seriesQuery"])[1]
        scalers = meaning.of_kind(self.things, "HorizontalPodAutoscaler")
        metrics = {metric["pods"]["metric"]["name"] for scaler in scalers for metric in scaler["spec"]["metrics"]}
        self.assertEqual(metrics, sizes.LOADS)
        for metric in metrics:
            self.assertRegex(metric, f"^{pattern}$")
            # The adapter fills it in like this for the pods of a Deployment.
            query = rule["metricsQuery"]
            matchers = 'namespace="outrider",pod=~"outrider-verifier-a|outrider-verifier-b"'
            for name, text in (("Series", metric), ("GroupBy", "pod"), ("LabelMatchers", matchers)):
                query = query.replace(f"<<.{name}>>", text)
            self.assertNotIn("<<", query)
            self.assert_answers(query, {f'{{pod="{pod}"}}': value for pod, value in PODS}, metric)

    def assert_answers(self, query, samples, metric):
        promtool = shutil.which("promtool")
        if promtool is None:
            print("NOT RUN: queries of examples (Debian package prometheus)", file=sys.stderr)
            self.skipTest("no promtool")
        series = [{"series": f'{metric}{{namespace="outrider",role="verifier",pod="{pod}"}}',
                   "values": f"{value}x4"} for pod, value in PODS]
        expected = [{"labels": labels, "value": value} for labels, value in samples.items()]
        test = {"tests": [{"interval": "15s", "input_series": series, "promql_expr_test": [
            {"expr": query, "eval_time": "1m", "exp_samples": expected}]}]}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "test.yaml"
            path.write_text(yaml.safe_dump(test))
            run = subprocess.run([promtool, "test", "rules", path], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    manifests.exit_without_kubectl("the examples")
    unittest.main()
