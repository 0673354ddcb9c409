# SPDX-License-Identifier: Apache-2.0
"""/metrics, /health and the logs of the real programs, held against what a client saw."""
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from programs import MODELS, wait_until
from scraping import ScrapingTest, get


class MetricsTest(ScrapingTest):
    def start_all(self, *flags):
        self.verifier = self.start_verifier(*self.HTTP, *flags)
        self.drafter = self.start_drafter(*self.HTTP, *flags)
        self.coordinator = self.start_coordinator(
            self.verifier.address(), self.drafter.address(), *self.HTTP, *flags)
        self.address = self.coordinator.address()
        self.wait_for_nodes(self.address, "verifier", "drafter")
        self.all = [self.coordinator, self.drafter, self.verifier]

    def run_client(self, *flags):
        program = self.generate(self.address, "--json-rounds", "--ignore-eos", *flags, "def merge(left, right):")
        self.assertEqual(program.wait(), 0, program.err())
        return json.loads(program.out())

    def test_counters_are_exactly_what_clients_add_up(self):
        self.start_all()
        runs = [self.run_client("-k", k, "--max-tokens", "60", "--seed", "3") for k in (0, 1, 4, 4)]
        rounds = [one for run in runs for one in run["rounds"]]
        offered = [0] * 4
        accepted = [0] * 4
        for one in rounds:
            for i in range(one["drafted"]):
                offered[i] += 1
                accepted[i] += i < one["accepted"]
        coordinator = self.coordinator
        self.assertEqual(self.value(coordinator, "rounds_total"), len(rounds))
        self.assertEqual(self.value(coordinator, "verifier_passes_total"), sum(1 + one["more"] for one in rounds))
        self.assertEqual(self.value(coordinator, "generated_tokens_total"), 4 * 60)
        self.assertEqual(self.value(coordinator, "draft_tokens_total"), sum(offered))
        self.assertEqual(self.value(coordinator, "accepted_tokens_total"), sum(accepted))
        self.assertEqual(self.value(coordinator, "draft_tokens_wasted_total"), sum(offered) - sum(accepted))
        for i in range(4):
            self.assertEqual(self.value(coordinator, "draft_tokens_per_position_total", position=i), offered[i])
            self.assertEqual(self.value(coordinator, "accepted_tokens_per_position_total", position=i), accepted[i])
        for peer in ("drafter", "verifier"):
            self.assertEqual(self.value(coordinator, "rpc_bytes_total", peer=peer),
                             sum(one[f"{peer}_bytes"] for one in rounds))
            self.assertEqual(self.value(coordinator, "cache_misses_total", peer=peer), 0)
        self.assertEqual(self.value(coordinator, "requests_total", finish_reason="length", code="OK"), 4)
        self.assertEqual(self.value(coordinator, "requests_total"), 4)
        self.assertEqual(self.value(coordinator, "time_to_first_token_seconds_count"), 4)
        self.assertEqual(self.value(coordinator, "spec_engaged"), 1)
        for cause in ("draft_failed", "no_drafter"):
            self.assertEqual(self.value(coordinator, "fallback_total", cause=cause), 0)
        # One Verify a round, and one Draft a round that had K > 0.
        self.assertEqual(self.value(self.verifier, "requests_total", method="Verify", code="OK"), len(rounds))
        self.assertGreater(self.value(self.drafter, "requests_total", method="Draft", code="OK"), 0)
        wait_until("the streams' ends are counted out",
                   lambda: self.value(coordinator, "requests_running") == 0)

    def test_counters_are_exactly_what_the_bench_counts(self):
        self.start_all()
        coordinator, out = self.coordinator, self.folder / "results"
        bench = self.start("outrider", "bench", "sweep", "--coordinator", self.address, "--rtt", "0",
                           "--k", "0,3", "--concurrency", "1,2", "--seconds", "0.3", "--warm-up", "0",
                           "--max-tokens", "24", "--acceptance-rule", "rejection",
                           "--prompts", MODELS / "prompts.jsonl", "--out", out)
        self.assertEqual(bench.wait(), 0, bench.err())
        rows = [json.loads(line) for line in (out / "results.jsonl").read_text("utf-8").splitlines()]
        self.assertEqual(len(rows), 4)

        def counted(name):
            return sum(row["counts"][name] for row in rows)

        requests, drafted = sum(row["requests"] for row in rows), counted("draft_tokens")
        self.assertGreater(drafted, 0)
        self.assertEqual(self.value(coordinator, "requests_total"), requests)
        self.assertEqual(self.value(coordinator, "requests_total", code="OK"), requests)
        self.assertEqual(self.value(coordinator, "time_to_first_token_seconds_count"), requests)
        self.assertEqual(self.value(coordinator, "generated_tokens_total"), 24 * requests)
        self.assertEqual(sum(row["tokens"] for row in rows), 24 * requests)
        self.assertEqual(self.value(coordinator, "rounds_total"), counted("rounds"))
        self.assertEqual(self.value(coordinator, "round_duration_seconds_count"), counted("rounds"))
        self.assertEqual(self.value(coordinator, "draft_tokens_total"), drafted)
        self.assertEqual(self.value(coordinator, "accepted_tokens_total"), counted("accepted_tokens"))
        self.assertEqual(self.value(coordinator, "draft_tokens_wasted_total"),
                         drafted - counted("accepted_tokens"))
        for peer, node, method in (("verifier", self.verifier, "Verify"), ("drafter", self.drafter, "Draft")):
            calls = self.value(node, "requests_total", method=method, code="OK")
            self.assertEqual(self.value(coordinator, "rpc_bytes_total", peer=peer), counted(f"{peer}_bytes"))
            waited_for = self.value(coordinator, "rpc_network_seconds_count", peer=peer)
            if peer == "verifier":
                self.assertEqual(2 * calls, counted(f"{peer}_messages"))
                self.assertEqual(waited_for, calls)
            else:  # no round waits until a drafter has taken in the prompt, and a stream may end before
                self.assertLessEqual(counted(f"{peer}_messages"), 2 * calls)
                self.assertGreaterEqual(counted(f"{peer}_messages"), 2 * waited_for)

    def test_nodes_tell_how_long_calls_waited_and_computed(self):
        self.start_all()
        self.run_client("-k", "4", "--max-tokens", "20")
        for node, method in ((self.verifier, "Verify"), (self.drafter, "Draft")):
            num_calls = self.value(node, "requests_total", method=method, code="OK")
            for name in ("queue_seconds", "compute_seconds"):
                self.assertEqual(self.value(node, f"{name}_count", method=method), num_calls)
                self.assertEqual(self.value(node, f"{name}_bucket", method=method, le="+Inf"), num_calls)
            self.assertGreater(self.value(node, "compute_seconds_sum", method=method), 0)

    def test_simulated_nodes_are_marked(self):
        self.start_all()
        self.assertEqual([self.value(program, "simulated") for program in self.all], [0, 0, 0])
        flags = ("--simulate", "--listen", "127.0.0.1:0", *self.HTTP)
        verifier, drafter = self.start("outrider-verifier", *flags), self.start("outrider-drafter", *flags)
        coordinator = self.start("outrider-coordinator", "--listen", "127.0.0.1:0", *self.HTTP,
                                 "--verifier", verifier.address(), "--drafter", drafter.address())
        self.wait_for_nodes(coordinator.address(), "verifier", "drafter")
        for program in (verifier, drafter, coordinator):
            self.assertEqual(self.value(program, "simulated"), 1, program.name)

    def test_all_say_which_build_they_are_and_what_the_system_knows_of_them(self):
        self.start_all()
        for program in self.all:
            told = self.start(program.name, "--version")
            told.wait()
            _, version, commit = told.out().split()
            page = self.scrape(program)
            self.assertEqual(self.sample(page, "build_info", version=version, commit=commit), 1)
            values = {name: float(re.search(rf'^{name}{{.*role="{program.name[9:]}".*}} (\S+)$', page, re.M)[1]) for name in (
                "process_start_time_seconds", "process_resident_memory_bytes", "process_open_fds")}
            self.assertLess(abs(time.time() - values["process_start_time_seconds"]), 300)
            self.assertGreater(values["process_resident_memory_bytes"], 1 << 20)
            self.assertGreater(values["process_open_fds"], 3)

    def test_drafts_that_are_looked_up_call_no_drafter(self):
        self.start_all()
        flags = ("-k", "4", "--temperature", "0", "--max-tokens", "60")
        plain = self.run_client(*flags)["token_ids"]
        run = self.run_client(*flags, "--prompt-lookup")
        self.assertEqual(run["token_ids"], plain)
        looked_up = [one for one in run["rounds"] if one["looked_up"]]
        self.assertTrue(looked_up)
        for one in looked_up:
            self.assertEqual((one["looked_up"], one["drafter_bytes"]), (one["drafted"], 0))
        self.assertEqual(self.value(self.coordinator, "draft_tokens_looked_up_total"),
                         sum(one["looked_up"] for one in looked_up))
        # Nor do they need one.
        self.drafter.end(signal.SIGKILL)
        wait_until("the drafter is missed", lambda: self.value(self.coordinator, "spec_engaged") == 0)
        alone = self.run_client(*flags, "--prompt-lookup")
        self.assertEqual(alone["token_ids"], plain)
        self.assertGreater(alone["totals"]["accepted"], 0)

    def test_a_round_without_a_drafter_is_a_fallback_and_a_bad_request_is_counted(self):
        self.start_all()
        self.drafter.end(signal.SIGKILL)
        wait_until("the drafter is missed", lambda: self.value(self.coordinator, "spec_engaged") == 0)
        rounds = self.run_client("-k", "4", "--max-tokens", "5")["rounds"]
        # A round that has one token to give would not have drafted anyway.
        left, num_fallbacks = 5, 0
        for one in rounds:
            num_fallbacks += left > 1
            left -= 1 + one["more"]
        self.assertEqual(left, 0)
        self.assertEqual(self.value(self.coordinator, "fallback_total", cause="no_drafter"), num_fallbacks)
        self.assertEqual(self.generate(self.address, "-k", "999", "x").wait(), 1)
        self.assertEqual(self.value(self.coordinator, "requests_total", code="INVALID_ARGUMENT"), 1)

    def test_promtool_finds_nothing_to_say(self):
        promtool = shutil.which("promtool")
        if promtool is None:
            print("NOT RUN: promtool check metrics (Debian package prometheus)", file=sys.stderr)
            self.skipTest("promtool is not installed (Debian package prometheus)")
        self.start_all()
        self.run_client("-k", "4", "--max-tokens", "20")
        for program in self.all:
            page = self.scrape(program)
            self.assertIn("# HELP outrider_requests_waiting", page)
            check = subprocess.run([promtool, "check", "metrics"], input=page, text=True, capture_output=True)
            self.assertEqual((check.returncode, check.stdout + check.stderr), (0, ""), program.name)

    def test_health_is_readiness(self):
        coordinator = self.start_coordinator("127.0.0.1:1", None, *self.HTTP)
        coordinator.address()
        self.assertEqual(get(self.http(coordinator), "/health")[0], 503)
        self.start_all()
        for program in self.all:
            wait_until("it is healthy", lambda: get(self.http(program), "/health")[0] == 200)
        stream = self.start_generate(self.address, "--ignore-eos", "x")
        wait_until("the stream has begun", stream.out)
        self.verifier.send(signal.SIGSTOP)
        self.coordinator.send(signal.SIGTERM)
        wait_until("a draining coordinator is not healthy",
                   lambda: get(self.http(self.coordinator), "/health")[0] == 503)
        self.verifier.send(signal.SIGCONT)

    def test_no_prompt_and_no_whole_id_is_on_the_page_or_in_the_log(self):
        self.start_all("--log-json")
        program = self.generate(self.address, "--max-tokens", "5", "canary_7261")
        self.assertEqual(program.wait(), 0, program.err())
        self.generate(self.address, "-k", "999", "canary_7261")
        for server in self.all:
            self.assertNotIn("canary", self.scrape(server) + server.err())

    def test_json_lines_have_time_level_message_and_request_id(self):
        self.start_all("--log-json")
        self.run_client("-k", "4", "--max-tokens", "60")
        lines = [json.loads(line) for line in self.coordinator.err().splitlines()]
        done, = [line for line in lines if line["message"].startswith("done: 60 tokens")]
        self.assertEqual(done["level"], "info")
        self.assertRegex(done["time"], r"^\d{4}-\d\d-\d\dT[\d:.]+Z$")
        self.assertRegex(done["request_id"], r"^[0-9a-f]{16}$")
        self.assertRegex(done["session"], r"^[0-9a-f]{8}$")
        for node in (self.drafter, self.verifier):
            opened, = [line for line in map(json.loads, node.err().splitlines()) if line["message"] == "session opened"]
            self.assertEqual((opened["request_id"], opened["session"]), (done["request_id"], done["session"]))

    def test_an_acceptance_line_of_fields_comes_every_ten_seconds(self):
        self.start_all("--log-json")
        rounds, num_tokens = [], 0

        def drafts_are_accepted():  # not in each stream: none waits for a drafter that is slow to begin
            nonlocal num_tokens
            rounds.extend(self.run_client("-k", "4", "--max-tokens", "30")["rounds"])
            num_tokens += 30
            return any(one["accepted"] for one in rounds)
        wait_until("drafts are accepted", drafts_are_accepted, patience=120)
        wait_until("the lines have come", lambda: sum(line["tokens"] for line in self.acceptance_lines()) == num_tokens)
        lines = self.acceptance_lines()
        for line in lines:
            self.assertGreaterEqual(line["seconds"], 10)
        for what in ("drafted", "accepted"):
            self.assertEqual(sum(line[what] for line in lines), sum(one[what] for one in rounds))
        self.assertEqual(sum(line["rounds"] for line in lines), len(rounds))
        if len(lines) > 1:
            return  # shares are those of each line's rounds
        drafted, accepted = (sum(one[what] for one in rounds) for what in ("drafted", "accepted"))
        self.assertAlmostEqual(lines[0]["acceptance"], accepted / drafted, delta=0.001)
        firsts = [one for one in rounds if one["drafted"] > 0]
        self.assertAlmostEqual(lines[0]["acceptance_by_position"][0],
                               sum(one["accepted"] > 0 for one in firsts) / len(firsts), delta=0.001)

    def acceptance_lines(self):
        lines = map(json.loads, self.coordinator.err().splitlines())
        return [line for line in lines if line["message"] == "acceptance"]


if __name__ == "__main__":
    unittest.main()
