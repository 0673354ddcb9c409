#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files lie, include and are named as the target graph says; each rule is seen to fire."""
import pathlib
import tempfile
import unittest

import include_rules

ROOT = pathlib.Path(__file__).resolve().parents[2]


class RepositoryTest(unittest.TestCase):
    def test_breaks_no_rule(self):
        violations = include_rules.check_tree(ROOT)
        if violations:
            self.fail(f"{len(violations)} violation(s)\n" + "\n".join(map(str, violations)))

    def test_its_source_files_are_found(self):
        self.assertIn("core/base/check.h", include_rules.source_paths(ROOT))


class PlantedTreeTest(unittest.TestCase):
    """Each case plants a small tree and names the violations it must have."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def plant(self, path, *includes, lines=0):
        """A clean file with these includes: `<a.h>`, or `b.h` for a quoted one."""
        body = [include_rules.SPDX]
        guard = "OUTRIDER_" + path.upper().replace("/", "_").replace(".", "_") + "_"
        if path.endswith(".h"):
            body += [f"#ifndef {guard}", f"#define {guard}"]
        body += [f"#include {i}" if i.startswith("<") else f'#include "{i}"' for i in includes]
        body += ["//"] * (lines - len(body))
        self.write(path, body)

    def write(self, path, body):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text("\n".join(body) + "\n")

    def expect(self, *expected):
        """Exactly these violations: (path, line, rule)."""
        found = [(v.path, v.line, v.rule) for v in include_rules.check_tree(self.root)]
        self.assertEqual(found, sorted(expected))

    def test_a_clean_tree_passes(self):
        self.plant("core/base/token.h", "<vector>", "absl/types/span.h")
        self.plant("core/session/token_log.h", "core/base/token.h", "core/telemetry/metrics.h")
        self.plant("core/telemetry/metrics.h", "core/base/token.h")
        self.plant("core/session/token_log.cc", "core/session/token_log.h", "<vector>")
        self.plant("core/testing/table_lm.h", "core/session/token_log.h")
        self.plant("core/session/token_log_test.cc", "core/session/token_log.h", "core/testing/table_lm.h")
        self.plant("core/torch_model/rope.h", "<ATen/core/Tensor.h>")
        self.plant("core/wire/convert.cc", "outrider/v1/types.pb.h", "core/session/token_log.h")
        self.plant("core/torch_model/torch_causal_lm.h", "core/base/token.h")
        self.plant("drafter/drafter_main.cc", "<grpcpp/grpcpp.h>", "core/torch_model/torch_causal_lm.h")
        self.plant("tests/integration/generate_test.cc", "<grpcpp/grpcpp.h>", "drafter/x.h", "core/testing/table_lm.h")
        self.plant("bench/micro/transformer_benchmark.cc", "core/torch_model/torch_causal_lm.h")
        self.expect()

    def test_a_lower_layer_may_not_include_a_higher_one(self):
        self.plant("core/sampling/coins.h")
        self.plant("core/session/token_log.h", "<vector>", "core/sampling/coins.h")
        self.expect(("core/session/token_log.h", 5, "graph"))

    def test_services_do_not_include_each_other(self):
        self.plant("drafter/drafter_service.h")
        self.plant("verifier/verifier_service.cc", "drafter/drafter_service.h")
        self.plant("coordinator/round/session.cc", "drafter/drafter_service.h")
        self.expect(("verifier/verifier_service.cc", 2, "graph"), ("coordinator/round/session.cc", 2, "graph"))

    def test_only_a_main_joins_a_service_and_the_model_runtime(self):
        self.plant("core/torch_model/torch_causal_lm.h")
        self.plant("verifier/verifier_service.cc", "core/torch_model/torch_causal_lm.h")
        self.plant("verifier/verifier_main.cc", "core/torch_model/torch_causal_lm.h")
        self.expect(("verifier/verifier_service.cc", 2, "graph"))

    def test_base_includes_no_other_layer(self):
        self.plant("core/telemetry/metrics.h")
        self.plant("core/base/log.h", "core/telemetry/metrics.h")
        self.expect(("core/base/log.h", 4, "graph"))

    def test_a_room_of_the_coordinator_includes_only_those_below(self):
        self.plant("coordinator/round/session.h")
        self.plant("coordinator/pool/node_pool.h", "coordinator/round/session.h")
        self.plant("coordinator/round/speculative_decoder.cc", "coordinator/pool/node_pool.h")
        self.plant("coordinator/nodes/session_verifier.h", "coordinator/pool/node_pool.h")
        self.plant("coordinator/coordinator_main.cc", "coordinator/pool/node_pool.h")
        self.plant("coordinator/loose.h")
        self.expect(("coordinator/round/speculative_decoder.cc", 2, "graph"),
                    ("coordinator/nodes/session_verifier.h", 4, "graph"), ("coordinator/loose.h", 1, "graph"))

    def test_testing_knows_no_service_and_lower_code_no_test_support(self):
        self.plant("drafter/draft_engine.h")
        self.plant("core/testing/stubs.h", "drafter/draft_engine.h")
        self.plant("tests/support/stubs.h", "drafter/draft_engine.h")
        self.plant("drafter/model_strategy_test.cc", "tests/support/stubs.h")
        self.plant("bench/load/plan.cc", "tests/support/stubs.h")
        self.expect(("core/testing/stubs.h", 4, "graph"), ("bench/load/plan.cc", 2, "testing"))

    def test_a_folder_outside_the_graph_is_refused(self):
        self.plant("core/utils/strings.h")
        self.plant("helpers/strings.cc")
        self.expect(("core/utils/strings.h", 1, "graph"), ("helpers/strings.cc", 1, "graph"))

    def test_torch_stays_in_torch_model(self):
        self.plant("core/model/tensor.h", "<torch/types.h>")
        self.plant("core/node/scheduler.cc", "c10/core/Device.h")
        self.plant("tests/golden/logits_test.cc", "<ATen/ATen.h>")
        self.expect(("core/model/tensor.h", 4, "torch"), ("core/node/scheduler.cc", 2, "torch"),
                    ("tests/golden/logits_test.cc", 2, "torch"))

    def test_device_code_includes_no_torch(self):
        self.plant("core/torch_model/attention.cu", "<ATen/ATen.h>")
        self.plant("core/kernels/cuda/gemv.cu", "<torch/types.h>")
        self.expect(("core/torch_model/attention.cu", 2, "torch"), ("core/kernels/cuda/gemv.cu", 2, "torch"))

    def test_messages_and_grpc_stay_in_the_shells(self):
        for allowed in ("core/rpc/server.h", "core/node/cache_service.cc", "drafter/drafter_service_test.cc",
                        "coordinator/pool/grpc_draft_client.h", "client/generation_client.cc", "client/outrider_main.cc"):
            self.plant(allowed, "<grpcpp/grpcpp.h>")
        self.plant("coordinator/round/session.h", "outrider/v1/types.pb.h")
        self.plant("coordinator/round/session_test.cc", "<google/protobuf/message.h>")
        self.plant("core/session/token_log.cc", "<grpc/grpc.h>")
        self.expect(("coordinator/round/session.h", 4, "grpc"), ("coordinator/round/session_test.cc", 2, "grpc"),
                    ("core/session/token_log.cc", 2, "grpc"))

    def test_no_translation_unit_sees_torch_and_grpc_even_through_headers(self):
        self.plant("core/torch_model/torch_causal_lm.h", "<ATen/ATen.h>")
        self.plant("core/rpc/server.h", "<grpcpp/grpcpp.h>")
        self.plant("verifier/verifier_main.cc", "core/torch_model/torch_causal_lm.h", "core/rpc/server.h")
        self.expect(("verifier/verifier_main.cc", 3, "torch-and-grpc"))

    def test_only_tests_include_testing(self):
        self.plant("core/testing/table_lm.h")
        self.plant("drafter/model_strategy.cc", "core/testing/table_lm.h")
        self.plant("bench/load/rejection.cc", "core/testing/table_lm.h")
        self.plant("drafter/model_strategy_test.cc", "core/testing/table_lm.h")
        self.expect(("drafter/model_strategy.cc", 2, "testing"), ("bench/load/rejection.cc", 2, "testing"))

    def test_test_support_beside_the_code_is_for_tests_and_benchmarks_of_single_parts(self):
        self.plant("core/kernels/random_values.h")
        self.plant("core/cuda_model/small_model.h", "core/kernels/random_values.h")
        self.plant("core/kernels/norm_test.cc", "core/kernels/random_values.h")
        self.plant("tests/exactness/scored_rows.h", "core/kernels/random_values.h")
        self.plant("bench/micro/kernels_benchmark.cc", "core/kernels/random_values.h")
        self.plant("core/cuda_model/weights.cc", "core/cuda_model/small_model.h")
        self.plant("client/scripted_generation_service.h")
        self.plant("client/scripted_generation_service.cc", "client/scripted_generation_service.h")
        self.plant("client/command.cc", "client/scripted_generation_service.h")
        self.expect(("core/cuda_model/weights.cc", 2, "testing"), ("client/command.cc", 2, "testing"))

    def test_bench_includes_no_test(self):
        self.plant("tests/exactness/joint_law.h")
        self.plant("bench/micro/law_benchmark.cc", "tests/exactness/joint_law.h")
        self.plant("tests/golden/law_test.cc", "tests/exactness/joint_law.h")
        self.expect(("bench/micro/law_benchmark.cc", 2, "graph"))

    def test_nothing_includes_a_main(self):
        self.plant("drafter/drafter_main.cc")
        self.plant("tests/integration/main_test.cc", "drafter/drafter_main.cc")
        self.expect(("tests/integration/main_test.cc", 2, "main"))

    def test_includes_start_at_the_root(self):
        self.plant("core/base/token.h")
        self.plant("core/base/check.h", "token.h")
        self.plant("core/session/token_log.h", "../base/token.h")
        self.expect(("core/base/check.h", 4, "root-path"), ("core/session/token_log.h", 4, "dot-dot"))

    def test_a_file_includes_its_own_header_first(self):
        self.plant("core/base/log.h")
        self.plant("core/base/log.cc", "<vector>", "core/base/log.h")
        self.expect(("core/base/log.cc", 2, "own-header-first"))

    def test_a_guard_is_named_after_the_path(self):
        self.write("core/base/a.h", [include_rules.SPDX, "#ifndef OUTRIDER_A_H_", "#define OUTRIDER_A_H_"])
        self.write("core/base/b.h", [include_rules.SPDX, "", "#pragma once"])
        self.expect(("core/base/a.h", 2, "guard"), ("core/base/b.h", 3, "guard"))

    def test_the_first_line_names_the_licence(self):
        self.write("core/base/log.cc", ["// A file."])
        self.write("core/base/empty.cc", [])
        self.expect(("core/base/empty.cc", 1, "spdx"), ("core/base/log.cc", 1, "spdx"))

    def test_nothing_waits_or_measures_by_a_clock_that_may_be_set(self):
        self.write("core/rpc/sleep.cc", [include_rules.SPDX, "auto end = std::chrono::system_clock::now() + time;",
                                         "// system_clock", "auto begin = std::chrono::steady_clock::now();"])
        self.write("core/base/log.cc", [include_rules.SPDX, "absl::Now();"])
        self.write("core/rpc/sleep_test.cc", [include_rules.SPDX, "absl::Now();"])
        self.expect(("core/rpc/sleep.cc", 2, "clock"))

    def test_files_stay_within_their_budgets(self):
        for path, budget in (("core/base/a.h", 120), ("core/base/a.cc", 400), ("core/base/a_test.cc", 500)):
            self.plant(path, *(["core/base/a.h"] if path == "core/base/a.cc" else []), lines=budget)
        self.expect()
        self.plant("core/base/a.h", lines=121)
        self.plant("core/base/a.cc", "core/base/a.h", lines=401)
        self.plant("core/base/a_test.cc", lines=501)
        self.plant("core/base/a_test.h", lines=121)
        self.expect(("core/base/a.h", 121, "budget"), ("core/base/a.cc", 401, "budget"),
                    ("core/base/a_test.cc", 501, "budget"), ("core/base/a_test.h", 121, "budget"))

    def test_a_violation_reads_as_file_line_rule(self):
        self.plant("core/base/log.h", "../log.h")
        self.assertEqual([str(v) for v in include_rules.check_tree(self.root)],
                         ["core/base/log.h:4: [dot-dot] `../log.h` climbs by ../"])


if __name__ == "__main__":
    unittest.main()
