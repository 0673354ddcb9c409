# SPDX-License-Identifier: Apache-2.0
"""`outrider bench` through a network that it emulates, which must meet its round trip: nothing runs beside it."""
import unittest

from benching import LACKING, NO_TUNNELS, SIMULATED, BenchingTest


class BenchNetworkTest(BenchingTest):
    def test_a_trio_of_real_models_is_measured_through_a_network(self):
        # So long that a busy machine meets it within 5 %.
        self.bench("run", "--rtt", "50", "-k", "3", "--seconds", "0.2", "--max-tokens", "8")
        plain, drafted = self.results()
        self.assertEqual((plain["k"], drafted["k"]), (0, 3))
        for row in (plain, drafted):
            self.assertEqual(row["failures"], 0)
            self.assertEqual(row["misses"], 0)
            self.assertEqual(row["tokens"], 8 * row["requests"])
            self.assertGreaterEqual(row["achieved_verifier_rtt_ms"], 50)
            self.assertGreater(row["plain_in_verifier_token_ms"], 0)
            self.assertGreater(row["speedup_over_k0_same_network"], 0)
        # A verification is a request and a reply.
        # The verifier draws some tokens in each call.
        self.assertAlmostEqual(plain["verifier_messages_per_token"] * plain["tokens"],
                               2 * plain["counts"]["rounds"])
        self.assertLess(plain["verifier_messages_per_token"], 2)
        self.assertEqual(plain["drafter_bytes_per_token"], 0)
        self.assertGreater(drafted["drafter_bytes_per_token"], 0)
        self.assertEqual(len(drafted["offered_by_position"]), 3)
        self.assertIn("</html>", (self.out / "report.html").read_text("utf-8"))

    @unittest.skipIf(LACKING, NO_TUNNELS)
    def test_nodes_behind_tunnels_are_a_true_round_trip_away(self):
        self.bench("run", *SIMULATED, "--simulate-acceptance", "0.8", "--network", "tunnel",
                   "--rtt", "50", "--drafter-rtt", "40", "--jitter", "1", "-k", "2",
                   "--seconds", "0.2", "--max-tokens", "8")
        for row in self.results():
            self.assertEqual(row["failures"], 0)
            self.assertGreaterEqual(row["achieved_verifier_rtt_ms"], 48)
            self.assertGreaterEqual(row["achieved_drafter_rtt_ms"], 38)
        self.assertIn("network namespaces", (self.out / "report.md").read_text("utf-8"))


if __name__ == "__main__":
    unittest.main()
