#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples for other people's operators name what is there: Services, secrets, metrics, and queries that answer."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

import manifests
import meaning

EXAMPLES = manifests.DEPLOY / "examples"
PODS = ("outrider-verifier-a", 3), ("outrider-verifier-b", 1)


def objects(path):
    return list(yaml.safe_load_all((EXAMPLES / path).read_text()))


def of_kind(things, kind):
    return [thing for thing in things if thing["kind"] == kind]


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
        for network in of_kind(things, "NetworkPolicy"):
            self.assertEqual(manifests.validate([network]), ([], []))

    def test_keda_scales_a_deployment_on_what_its_component_would(self):
        scaled, = of_kind(objects("scaling/keda.yaml"), "ScaledObject")
        scaler, = [one for one in meaning.of_kind(self.things, "HorizontalPodAutoscaler")
                   if one["spec"]["scaleTargetRef"]["name"] == scaled["spec"]["scaleTargetRef"]["name"]]
        metric = scaler["spec"]["metrics"][0]["pods"]
        trigger, = scaled["spec"]["triggers"]
        self.assertIn(metric["metric"]["name"], trigger["metadata"]["query"])
        self.assertEqual(trigger["metadata"]["threshold"], metric["target"]["averageValue"])
        self.assert_answers(trigger["metadata"]["query"], {"{}": sum(value for _, value in PODS)})

    def test_the_adapters_rule_finds_every_metric_and_answers_for_each_pod(self):
        rule, = yaml.safe_load((EXAMPLES / "scaling/prometheus-adapter.yaml").read_text())["rules"]["custom"]
        pattern = re.search(r'__name__=~"([^"]+)"', rule["seriesQuery"])[1]
        for scaler in meaning.of_kind(self.things, "HorizontalPodAutoscaler"):
            self.assertRegex(scaler["spec"]["metrics"][0]["pods"]["metric"]["name"], f"^{pattern}$")
        # The adapter fills it in like this for the pods of a Deployment.
        query = rule["metricsQuery"]
        for name, text in (("Series", "outrider_requests_waiting"), ("GroupBy", "pod"),
                           ("LabelMatchers", 'namespace="outrider",pod=~"outrider-verifier-a|outrider-verifier-b"')):
            query = query.replace(f"<<.{name}>>", text)
        self.assertNotIn("<<", query)
        self.assert_answers(query, {f'{{pod="{pod}"}}': value for pod, value in PODS})

    def assert_answers(self, query, samples):
        promtool = shutil.which("promtool")
        if promtool is None:
            print("NOT RUN: queries of examples (Debian package prometheus)", file=sys.stderr)
            self.skipTest("no promtool")
        series = [{"series": f'outrider_requests_waiting{{namespace="outrider",role="verifier",pod="{pod}"}}',
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
