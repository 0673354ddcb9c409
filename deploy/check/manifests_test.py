#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every overlay renders, fits Kubernetes' schemas and means what it should; each mistake is caught."""
import copy
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import yaml

import broken
import manifests
import meaning
import monitors
import prometheus_rule
import scheduling
import sizes
from rules import problems_of

sys.path.insert(0, str(meaning.ROOT / "gateway"))
import make_stubs  # noqa: E402

make_stubs.main()  # outrider-gateway is among the programs whose flags are checked


class OverlayTest(unittest.TestCase):
    def test_every_overlay_is_clean(self):
        for overlay in manifests.OVERLAYS:
            with self.subTest(overlay=overlay):
                things = manifests.render(manifests.DEPLOY / "overlays" / overlay)
                self.assertEqual(problems_of(things), [])
                _, unchecked = manifests.validate(things)
                if unchecked:
                    print(f"{overlay}: no schema for {', '.join(unchecked)}", file=sys.stderr)

    def test_every_example_is_clean(self):
        for folder in sorted((manifests.DEPLOY / "examples").iterdir()):
            with self.subTest(example=folder.name):
                if (folder / "kustomization.yaml").exists():
                    self.assertEqual(problems_of(manifests.render(folder)), [])

    def test_every_component_is_used_or_renders_by_itself(self):
        used = "".join((manifests.DEPLOY / "overlays" / overlay / "kustomization.yaml").read_text()
                       for overlay in manifests.OVERLAYS)
        used += (manifests.DEPLOY / "examples/fetched-models/kustomization.yaml").read_text()
        for component in sorted(path.name for path in (manifests.DEPLOY / "components").iterdir()):
            if f"components/{component}\n" in used:
                continue
            with self.subTest(component=component):
                self.render_with(component)

    def render_with(self, component):
        with tempfile.TemporaryDirectory() as folder:
            deploy = os.path.relpath(manifests.DEPLOY, os.path.realpath(folder))
            components = ("model-volume", "tls", component, "images")
            (pathlib.Path(folder) / "kustomization.yaml").write_text(
                "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: outrider\n"
                f"resources: [{deploy}/base]\n"
                f"components: [{', '.join(f'{deploy}/components/{name}' for name in components)}]\n")
            self.assertEqual(problems_of(manifests.render(folder)), [])

    def test_the_load_test_goes_through_the_services_where_pods_are_delayed(self):
        with tempfile.TemporaryDirectory() as folder:
            deploy = os.path.relpath(manifests.DEPLOY, os.path.realpath(folder))
            (pathlib.Path(folder) / "kustomization.yaml").write_text(
                "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: outrider-load-test\n"
                f"resources: [{deploy}/overlays/load-test]\ncomponents: [{deploy}/components/chaos-latency]\n")
            things = manifests.render(folder)
        self.assertEqual(problems_of(things), [])
        job, = meaning.of_kind(things, "Job")
        self.assertIn("--coordinator=outrider-coordinator:7000", meaning.pod_of(job)["containers"][0]["args"])

    def test_a_load_test_changes_no_release_that_serves(self):
        def places(folder):
            return {(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
                    for one in manifests.render(manifests.DEPLOY / folder)}
        measuring = places("overlays/load-test") | places("check/load-test-of-services")
        shared = {("PriorityClass", None, "outrider")}  # all releases of a cluster have the same
        for overlay in set(manifests.OVERLAYS) - {"load-test"}:
            self.assertEqual(measuring & places(f"overlays/{overlay}"), shared, overlay)

    def test_where_pods_cost_no_gpu_there_are_two(self):
        for overlay in set(manifests.OVERLAYS) - {"local-cpu", "load-test"}:
            things = manifests.render(manifests.DEPLOY / "overlays" / overlay)
            for role in ("coordinator", "gateway"):
                deployment = broken.Objects.find(things, "Deployment", f"outrider-{role}")
                self.assertGreaterEqual(scheduling.least_pods(deployment, things), 2, f"{overlay}: {role}")

    def test_overlays_for_one_machine_fit_the_node_that_the_readme_names(self):
        readme = (manifests.DEPLOY / "README.md").read_text()
        for folder, overlay, rolls in (("overlays/local-cpu", "local-cpu", True), ("overlays/load-test", "load-test", True),
                                       ("check/load-test-of-services", "load-test", False)):
            cores, gigabytes = re.search(rf"\| `{overlay}` \|.*a node of (\d) CPUs and (\d) GB", readme).groups()
            things = meaning.workloads(manifests.render(manifests.DEPLOY / folder))
            wanted = {name: sum(scheduling.requested(one, name, rolls) for one in things) for name in ("cpu", "memory")}
            # Kubernetes' own pods ask for 0.95 and 290Mi of a node by kind, for less by minikube; 1 GiB is for what asks for nothing.
            self.assertLessEqual(wanted["cpu"] + 0.95, int(cores), folder)
            self.assertLessEqual(wanted["memory"] + 290 * 2 ** 20 + 2 ** 30, int(gigabytes) * 1e9, folder)

    def test_drafts_are_made_ahead_where_drafters_have_gpus_of_their_own(self):
        for overlay in manifests.OVERLAYS:
            things = manifests.render(manifests.DEPLOY / "overlays" / overlay)
            coordinator = broken.Objects.find(things, "Deployment", "outrider-coordinator")
            words = meaning.arguments(meaning.pod_of(coordinator)["containers"][0], things)
            expected = "auto" if overlay == "split-pools" else "sequential"
            self.assertEqual(list(meaning.flags(words, "schedule")), [expected], overlay)

    def test_the_load_tests_results_can_be_fetched_once_it_has_ended(self):
        job, = meaning.of_kind(manifests.render(manifests.DEPLOY / "overlays/load-test"), "Job")
        bench, keeper = meaning.pod_of(job)["containers"]
        self.assertEqual(bench["command"][:2], ["outrider", "bench"])  # by itself: its exit status is the Job's
        mounts = [{mount["name"]: mount["mountPath"] for mount in one["volumeMounts"]} for one in (bench, keeper)]
        self.assertIn(f"--out={mounts[0]['results']}", bench["args"])
        script = keeper["command"][2].replace("/results", "FOLDER").replace("sleep 60", "sleep 0.2")
        self.assertIn("FOLDER -mmin -60", script)
        self.assertEqual(mounts[1]["results"], mounts[0]["results"])
        with tempfile.TemporaryDirectory() as folder:
            keep = subprocess.Popen(["sh", "-c", script.replace("FOLDER", folder)])
            with self.assertRaises(subprocess.TimeoutExpired):
                keep.wait(1)
            long_ago = time.time() - 3700
            os.utime(folder, (long_ago, long_ago))
            self.assertEqual(keep.wait(10), 0)

    def test_the_loops_of_shells_end_at_sigterm_by_a_trap(self):
        loops = {}
        for folder in ("check/load-test-of-services", "examples/fetched-models"):
            for thing in meaning.workloads(manifests.render(manifests.DEPLOY / folder)):
                loops |= {one["name"]: one["command"] for one in meaning.containers_of(thing) if one.get("command", [])[:2] == ["sh", "-c"]}
        self.assertEqual(set(loops), {"results", "wait", "wait-for-model"})
        for name, command in loops.items():
            with self.subTest(name), subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as loop:
                children = pathlib.Path(f"/proc/{loop.pid}/task/{loop.pid}/children")
                while not children.read_text():  # its trap is set before
                    time.sleep(0.01)
                loop.terminate()
                # A default action, which the first process of a container does not take, would be -15.
                self.assertEqual(loop.wait(30), 143)

    def test_only_local_overlays_speak_plain_text(self):
        for overlay in manifests.OVERLAYS:
            text = json.dumps(manifests.render(manifests.DEPLOY / "overlays" / overlay))
            self.assertEqual("--insecure" in text, overlay in ("local-cpu", "load-test"), overlay)
            self.assertEqual("--tls-ca" in text, overlay not in ("local-cpu", "load-test"), overlay)


class BrokenManifestTest(unittest.TestCase):
    """A good overlay, one mistake, and the words that name it."""

    @classmethod
    def setUpClass(cls):
        cls.good = {name: manifests.render(manifests.DEPLOY / "overlays" / name)
                    for name in ("local-cpu", "split-pools", "load-test")}

    def setUp(self):
        self.things = copy.deepcopy(self.good["local-cpu"])

    def thing(self, kind, name):
        return broken.Objects.find(self.things, kind, name)

    def container(self, role="verifier"):
        return meaning.pod_of(self.thing("Deployment", f"outrider-{role}"))["containers"][0]

    def assert_caught(self, *words):
        found = problems_of(self.things)
        self.assertTrue(any(all(word in problem for word in words) for problem in found),
                        f"{words} in none of {found}")

    def test_a_misspelt_probe(self):
        container = self.container()
        container["readinesProbe"] = container.pop("readinessProbe")
        self.assert_caught("Deployment/outrider-verifier", "readinesProbe")
        self.assert_caught("has no readinessProbe")

    def test_a_probe_of_a_service_that_no_program_has(self):
        self.container()["readinessProbe"]["grpc"]["service"] = "readyness"
        self.assert_caught("readinessProbe", "'readyness'")

    def test_a_liveness_probe_that_fails_during_the_drain(self):
        self.container()["livenessProbe"]["grpc"]["service"] = "readiness"
        self.assert_caught("livenessProbe asks for the service 'readiness'")

    def test_a_service_whose_selector_matches_nothing(self):
        self.thing("Service", "outrider-drafter")["spec"]["selector"]["app.kubernetes.io/component"] = "draftr"
        self.assert_caught("Service/outrider-drafter: its selector matches no pod")

    def test_a_flag_that_the_program_does_not_know(self):
        self.container("drafter")["args"].append("--draft-tokens=4")
        self.assert_caught("Deployment/outrider-drafter", "--draft-tokens")

    def test_a_flag_that_the_bench_does_not_know(self):
        self.things = copy.deepcopy(self.good["load-test"])
        bench = meaning.pod_of(self.thing("Job", "outrider-load-test"))["containers"][0]
        bench["args"].append("--round-trips=3")
        self.assert_caught("Job/outrider-load-test: container bench", "--round-trips")
        bench["args"][-1:] = ["--jitter=-1"]
        self.assert_caught("Job/outrider-load-test: container bench", "--jitter")

    def test_flags_of_init_containers_and_of_scripts(self):
        self.things = manifests.render(manifests.DEPLOY / "check/load-test-of-services")
        self.assertEqual(problems_of(self.things), [])
        wait = meaning.pod_of(self.thing("Job", "outrider-load-test"))["initContainers"][1]
        good = wait["command"][2]
        for bad, words in ((good.replace("--insecure", "--insecured"), ["--insecured"]),
                           (good.replace("outrider describe", "outrider discribe"), ["discribe"]),
                           (good.replace("outrider describe", "outridr describe"), ["no program outridr"])):
            wait["command"][2] = bad
            self.assert_caught("Job/outrider-load-test: container wait", *words)

    def test_a_flag_that_the_gateway_does_not_know(self):
        self.container("gateway")["args"].append("--api-key=x")
        self.assert_caught("Deployment/outrider-gateway", "--api-key")

    def test_a_gateway_before_a_service_that_hides_its_coordinators(self):
        self.thing("ConfigMap", "outrider-gateway")["data"]["COORDINATOR"] = "outrider-coordinator:7000"
        self.assert_caught("the Service of --coordinator outrider-coordinator:7000 is not headless")

    def test_a_value_that_the_program_refuses(self):
        self.thing("ConfigMap", "outrider-coordinator")["data"]["NUM_SPECULATIVE_TOKENS"] = "many"
        self.assert_caught("Deployment/outrider-coordinator", "--num-speculative-tokens")

    def test_plain_text_off_loopback_without_saying_so(self):
        self.container()["args"].remove("--insecure")
        self.assert_caught("Deployment/outrider-verifier", "--insecure")

    def test_a_service_that_hides_its_pods(self):
        del self.thing("Service", "outrider-verifier")["spec"]["clusterIP"]
        self.assert_caught("the Service of --verifier outrider-verifier:7002 is not headless")

    def test_a_container_without_limits(self):
        del self.container()["resources"]["limits"]["memory"]
        self.assert_caught("has no limit of memory")

    def test_a_container_that_is_not_restricted(self):
        self.container()["securityContext"]["readOnlyRootFilesystem"] = False
        self.assert_caught("is not restricted")

    def test_a_missing_policy(self):
        self.things = [one for one in self.things if one["metadata"]["name"] != "outrider-default-deny"]
        self.assert_caught("no NetworkPolicy denies")

    def test_a_policy_that_cuts_the_coordinator_off(self):
        policy = self.thing("NetworkPolicy", "outrider-coordinator")
        del policy["spec"]["egress"][1]
        self.assert_caught("no NetworkPolicy lets --verifier outrider-verifier:7002 leave")

    def test_a_policy_that_shuts_a_node(self):
        policy = self.thing("NetworkPolicy", "outrider-nodes")
        policy["spec"]["ingress"][0]["ports"][0]["port"] = "metrics"
        self.assert_caught("Deployment/outrider-drafter: no NetworkPolicy lets Deployment/outrider-coordinator in")

    def test_a_policy_without_names_or_scrapes(self):
        for name, words in (("outrider-dns", "no NetworkPolicy lets it ask for names"),
                            ("outrider-metrics", "no NetworkPolicy lets anyone scrape")):
            self.things = copy.deepcopy(self.good["split-pools"])
            self.things.remove(self.thing("NetworkPolicy", name))
            self.assert_caught(words)

    def test_a_scaler_on_a_metric_that_is_not_there(self):
        self.things = copy.deepcopy(self.good["split-pools"])
        scaler = self.thing("HorizontalPodAutoscaler", "outrider-verifier")
        scaler["spec"]["metrics"][0]["pods"]["metric"]["name"] = "outrider_queue_length"
        self.assert_caught("outrider-verifier does not export outrider_queue_length")

    def test_a_kind_that_nobody_expects(self):
        self.things.append({"apiVersion": "example.org/v1", "kind": "Sidecar", "metadata": {"name": "x"}})
        self.assert_caught("unexpected kind Sidecar")


class KubectlTest(unittest.TestCase):
    """What is said of a kubectl, by one that says which version it is."""

    def wanted(self, script=None):
        with tempfile.TemporaryDirectory() as folder:
            if script:
                path = pathlib.Path(folder) / "kubectl"
                path.write_text(f"#!/bin/sh\n{script}\n")
                path.chmod(0o755)
            with unittest.mock.patch.dict(os.environ, {"PATH": folder}):
                return manifests.kubectl_wanted()

    def wanted_with(self, version):
        return self.wanted(f"""echo '{{"clientVersion": {{"major": "1", "gitVersion": "{version}"}}}}'""")

    def test_one_that_is_new_enough(self):
        for version in ("v1.25.0", "v1.32.4-dispatcher", "v1.100.1+k3s1", "v2.0.0"):
            self.assertIsNone(self.wanted_with(version), version)

    def test_one_that_is_too_old(self):
        for version, told in (("v1.24.17", "1.24"), ("v1.21.0-rc.0", "1.21"), ("v1.9.0", "1.9"), ("v0.30.0", "0.30")):
            self.assertEqual(self.wanted_with(version),
                             f"kubectl 1.25 or later, which renders the overlays; the one here is {told}")

    def test_one_that_does_not_tell_and_none(self):
        self.assertIn("does not tell its version", self.wanted("echo error: unknown flag >&2; exit 1"))
        self.assertEqual(self.wanted(), "kubectl 1.25 or later, which renders the overlays")


class BuildTest(unittest.TestCase):
    """build.sh up to its builder; deploy/check/containers.py really builds."""

    def build(self, *words, installed, target="demo-models", commit=None):
        with tempfile.TemporaryDirectory() as folder:
            for name in installed:
                path = pathlib.Path(folder) / name
                path.write_text(f"#!/bin/sh\necho called {name} $*\n")
                path.chmod(0o755)
            environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"} | (
                {"OUTRIDER_COMMIT": commit} if commit else {})
            return subprocess.run([manifests.DEPLOY / "images/build.sh", *words, target],
                                  env=environment, capture_output=True, text=True)

    def test_images_go_to_the_store_of_the_builder_that_was_asked_for(self):
        for name, called in (("docker", "docker build"), ("podman", "podman build"), ("buildah", "buildah bud")):
            run = self.build("--builder", name, installed=["docker", "podman", "buildah"])
            self.assertIn(f"called {called} ", run.stdout)
            self.assertIn("localhost/outrider-demo-models:latest", run.stdout)
            self.assertEqual(run.returncode, 0, run.stderr)

    def test_an_image_is_named_and_labelled_by_its_commit(self):
        commit = "3f2a1b4c5d6e7f8091a2b3c4d5e6f70819223344"
        for changed in ("", "-dirty"):
            run = self.build("--builder", "docker", installed=["docker"], commit=commit + changed)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(f" --tag=localhost/outrider-demo-models:3f2a1b4c5d6e{changed} ", run.stdout)
            self.assertIn(f" --label org.opencontainers.image.revision={commit}{changed} ", run.stdout)
            self.assertRegex(run.stdout, r" --label org\.opencontainers\.image\.version=\d")
            self.assertIn(f"newTag: {json.dumps(commit[:12] + changed)}", run.stdout.splitlines()[-1])

    def test_without_a_repository_no_tag_names_a_commit(self):
        run = self.build("--builder", "docker", installed=["docker"], commit="unknown")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("unknown", run.stdout)
        self.assertNotIn("revision", run.stdout)
        self.assertIn("no tag names a commit", run.stderr)

    def test_programs_of_another_commit_are_not_packed(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "outrider"
            program.write_text("#!/bin/sh\necho outrider 0.1.0 000000000000\n")
            program.chmod(0o755)
            run = self.build("--builder", "docker", "--prebuilt", folder, installed=["docker"], target="coordinator",
                             commit="3f2a1b4c5d6e7f8091a2b3c4d5e6f70819223344")
        self.assertEqual(run.returncode, 1)
        self.assertIn("are of 000000000000, and this tree is 3f2a1b4c5d6e", run.stderr)
        self.assertNotIn("called docker", run.stdout)

    def test_one_tag_is_that_of_all_images_of_a_release_but_gateways_which_roll_after_the_others(self):
        readme, = re.findall("^images: .*?(?=^```)", (manifests.DEPLOY / "README.md").read_text(), re.MULTILINE | re.DOTALL)
        for text in (readme, (manifests.DEPLOY / "components/images/kustomization.yaml").read_text()):
            named = {one["name"]: one["newTag"] for one in yaml.safe_load(text)["images"]}
            self.assertEqual(set(named), set(sizes.IMAGES) - {"outrider-demo-models"})
            self.assertEqual(len(set(named.values())), 1)
            changed = {one["name"]: one["newTag"] for one in yaml.safe_load(re.sub('&tag ".*?"', '&tag "x"', text))["images"]}
            self.assertEqual({name for name in changed if changed[name] == named[name]}, {"outrider-gateway"})

    def test_a_builder_that_is_not_known(self):
        run = self.build("--builder", "kaniko", installed=[])
        self.assertEqual(run.returncode, 2)
        self.assertIn('--builder is buildah, docker or podman, not "kaniko"', run.stderr)


class ObservabilityTest(unittest.TestCase):
    FOLDER = manifests.DEPLOY / "observability"

    def test_rules_are_good_and_fire_when_they_should(self):
        promtool = shutil.which("promtool")
        if promtool is None:
            print("NOT RUN: promtool check rules, test rules (Debian package prometheus)", file=sys.stderr)
            self.skipTest("no promtool")
        for words in (["check", "rules", "alerts.yaml", "recording-rules.yaml"],
                      ["test", "rules", "rules-test.yaml"]):
            run = subprocess.run([promtool, *words], cwd=self.FOLDER, capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_the_operator_gets_the_rules_that_promtool_tests(self):
        things = manifests.render(manifests.DEPLOY / "overlays/single-gpu")
        rule, = meaning.of_kind(things, "PrometheusRule")
        tested = [yaml.safe_load((self.FOLDER / name).read_text())["groups"] for name in prometheus_rule.SOURCES]
        self.assertEqual(rule["spec"], {"groups": sum(tested, [])})
        self.assertEqual(prometheus_rule.TARGET.read_text(), prometheus_rule.text(),
                         "run deploy/check/prometheus_rule.py")

    def test_every_alert_is_seen_to_fire(self):
        alerts = re.findall(r"- alert: (\w+)", (self.FOLDER / "alerts.yaml").read_text())
        tests = yaml.safe_load((self.FOLDER / "rules-test.yaml").read_text())["tests"]
        fired = {one["alertname"] for test in tests for one in test["alert_rule_test"] if one["exp_alerts"]}
        self.assertEqual(fired, set(alerts))

    def rules(self, *files):
        return [rule for name in files for group in yaml.safe_load((self.FOLDER / name).read_text())["groups"]
                for rule in group["rules"]]

    def queries(self):
        dashboard = json.loads((self.FOLDER / "dashboard.json").read_text())
        return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]

    def test_dashboard_and_rules_ask_for_metrics_that_exist(self):
        known = set().union(*map(sizes.exported, sizes.SOURCES))
        # Python's library names what it exports of a counter.
        known |= {f"{name}_total" for name in sizes.exported("gateway")}
        asked = self.queries() + [rule["expr"] for rule in self.rules("alerts.yaml", "recording-rules.yaml")]
        names = set(re.findall(r"outrider_\w+", "\n".join(asked)))
        self.assertGreater(len(names), 50)
        self.assertIn("outrider_gateway_requests_total", names)
        for name in names:
            self.assertIn(re.sub(r"_(bucket|sum|count)$", "", name), known, f"no source names the metric {name}")

    def test_no_metric_has_a_label_that_a_scrape_gives_its_target(self):
        labels = sizes.labels_exported()
        self.assertLessEqual({"peer", "position", "method", "file", "status"}, labels)
        self.assertEqual(labels & monitors.OF_TARGETS, set())

    def test_dashboard_and_rules_select_by_labels_that_are_there(self):
        known = sizes.labels_exported() | {"instance", "job", "namespace"}  # and no others of a target
        for query in self.queries() + [rule["expr"] for rule in self.rules("alerts.yaml", "recording-rules.yaml")]:
            for selected in re.findall(r"\{([^{}]*)\}", query):
                self.assertLessEqual(set(re.findall(r"(\w+) *(?:=~|!=|!~|=)", selected)), known, query)
            for grouped in re.findall(r"\b(?:by|without|on|ignoring) *\(([^()]*)\)", query):
                self.assertLessEqual(set(re.findall(r"\w+", grouped)), known, query)

    def test_rules_tell_releases_apart(self):
        for rule in self.rules("alerts.yaml", "recording-rules.yaml"):
            over = re.findall(r"\b(sum|max|min|avg|count)\b(?! without)(?: by \(([^)]*)\))?", rule["expr"])
            for word, labels in over:
                self.assertIn("namespace", labels.split(", "), f"{word} of {rule}")
            if "alert" in rule and "absent(" not in rule["expr"]:
                self.assertIn("$labels.namespace", rule["annotations"]["description"], rule["alert"])

    def test_the_dashboard_shows_the_namespaces_that_were_chosen(self):
        for query in self.queries():
            for labels in re.findall(r"\boutrider[_:][\w:]+(\{[^}]*\})?", query):
                self.assertIn('namespace=~"$namespace"', labels, query)

    def test_the_dashboards_queries_can_be_asked(self):
        promtool = shutil.which("promtool")
        if promtool is None:
            print("NOT RUN: queries of the dashboard (Debian package prometheus)", file=sys.stderr)
            self.skipTest("no promtool")
        rules = [{"record": f"query{i}", "expr": query} for i, query in enumerate(self.queries())]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "queries.yaml"
            path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
            run = subprocess.run([promtool, "check", "rules", path], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_every_alert_has_its_heading_among_the_runbooks(self):
        headings = re.findall(r"^## (\w+)$", (manifests.DEPLOY / "RUNBOOKS.md").read_text(), re.MULTILINE)
        self.assertEqual(headings, [rule["alert"] for rule in self.rules("alerts.yaml")])

    def test_panels_and_pages_that_runbooks_name_are_there(self):
        panels = {panel["title"]: [target["legendFormat"] for target in panel.get("targets", [])]
                  for panel in json.loads((self.FOLDER / "dashboard.json").read_text())["panels"]}
        headings = re.findall(r"^### (.*)$", (manifests.DEPLOY / "README.md").read_text(), re.MULTILINE)
        text = re.sub("`[^`]*`", "", (manifests.DEPLOY / "RUNBOOKS.md").read_text())
        named = [" ".join(name.split()) for name in re.findall('"([^"]+)"', text)]
        self.assertGreater(len(named), 10)
        self.assertLessEqual(set(named), {*panels, *headings})
        by_instance = re.findall('"([^"]+)" has each instance', text)
        self.assertTrue(by_instance)
        for name in by_instance:
            self.assertTrue(all("{{instance}}" in legend for legend in panels[name]), name)

    def test_what_runbooks_quote_is_what_programs_say(self):
        said = set()
        for folder in ("client", "coordinator", "core", "drafter", "gateway/outrider_gateway", "verifier"):
            for path in [*(meaning.ROOT / folder).rglob("*.cc"), *(meaning.ROOT / folder).rglob("*.h"),
                         *(meaning.ROOT / folder).rglob("*.py")]:
                literals = re.findall(r'(?:f?"(?:[^"\\\n]|\\.)*"\s*)+', "" if path.stem.endswith("_test") else path.read_text())
                said.update(re.sub(r'"\s*f?"', "", one) for one in literals)
        text = re.sub("^```.*?^```", "", (manifests.DEPLOY / "RUNBOOKS.md").read_text(), flags=re.MULTILINE | re.DOTALL)
        quotes = [" ".join(quote.split()) for quote in re.findall("`([^`]+)`", text)]
        quotes = [quote for quote in quotes if " " in quote and not re.match("cmctl|kubectl|outrider|sum by|--", quote)]
        self.assertGreater(len(quotes), 10)
        for quote in quotes:
            # Between them are numbers (N, M), a status, or what differs (...).
            for part in re.split(r"\b[A-Z]\b|: |\.\.\.", quote):
                if re.search("[a-z]", part):
                    self.assertTrue(any(part in one for one in said), f"no program says {part!r} of {quote!r}")

    def test_the_dashboard_has_the_rows_that_the_readme_promises(self):
        dashboard = json.loads((self.FOLDER / "dashboard.json").read_text())
        rows = [panel["title"] for panel in dashboard["panels"] if panel["type"] == "row"]
        self.assertEqual(rows, ["Objectives", "Gateways", "Acceptance", "Network", "Queues and KV", "Nodes", "GPUs"])


if __name__ == "__main__":
    manifests.exit_without_kubectl("the checks of deploy/")
    unittest.main()
