# SPDX-License-Identifier: Apache-2.0
"""The checker finds each kind of mistake, and none in a stream that is right."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from figures import percentile, quiet_moments, ratio_of_means, recoveries  # noqa: E402
from stream_check import differences  # noqa: E402

GOLDEN = tuple(range(100, 200))
OTHER = tuple(range(500, 600))


class DifferencesTest(unittest.TestCase):
    def found(self, *tokens):
        return dict(differences(tuple(tokens), GOLDEN, [OTHER]))

    def test_a_right_stream_has_none(self):
        self.assertEqual(self.found(*GOLDEN), {})

    def test_tokens_that_are_lost_in_the_middle(self):
        self.assertEqual(self.found(*GOLDEN[:40], *GOLDEN[43:]), {"lost": 3})

    def test_tokens_that_are_lost_at_the_end(self):
        self.assertEqual(self.found(*GOLDEN[:95]), {"lost": 5})

    def test_a_stream_that_gives_nothing_has_lost_all(self):
        self.assertEqual(self.found(), {"lost": 100})

    def test_tokens_that_come_twice(self):
        self.assertEqual(self.found(*GOLDEN[:40], *GOLDEN[36:]), {"doubled": 4})

    def test_a_last_token_that_comes_twice(self):
        self.assertEqual(self.found(*GOLDEN, GOLDEN[-1]), {"doubled": 1})

    def test_tokens_in_another_order(self):
        self.assertEqual(self.found(*GOLDEN[:40], GOLDEN[41], GOLDEN[40], *GOLDEN[42:]), {"reordered": 2})

    def test_tokens_of_another_stream(self):
        self.assertEqual(self.found(*GOLDEN[:40], *OTHER[40:]), {"crossed": 60})

    def test_a_token_that_nobody_said(self):
        self.assertEqual(self.found(*GOLDEN[:99], 7), {"wrong": 1})

    def test_several_mistakes_of_one_stream(self):
        self.assertEqual(self.found(*GOLDEN[:10], *GOLDEN[12:50], *GOLDEN[45:]), {"lost": 2, "doubled": 5})


class FiguresTest(unittest.TestCase):
    def test_a_recovery_is_the_silence_that_a_fault_begins(self):
        # The message of 1.01 was on its way when the fault came.
        self.assertEqual(recoveries([[0.5, 0.9, 1.01, 2.51, 2.6]], 1), [1.5])

    def test_streams_that_were_over_or_had_not_begun_have_none(self):
        self.assertEqual(recoveries([[0.5, 0.9], [1.5, 1.6], []], 1), [])

    def test_quiet_moments_leave_time_for_what_was_on_its_way(self):
        self.assertEqual([round(at, 6) for at in quiet_moments(1, 1.5)], [1, 1.1])
        self.assertEqual(quiet_moments(1, 1.1), [1])

    def test_a_ratio_of_means_says_how_sure_it_is(self):
        ratio, error = ratio_of_means([9, 11], [20, 20])
        self.assertEqual((ratio, round(error, 6)), (0.5, 0.05))
        self.assertEqual(ratio_of_means([3], [1, 2]), (2, 0))

    def test_percentiles_are_values_of_the_sample(self):
        self.assertEqual([percentile([3, 1, 2], share) for share in (0.5, 0.99)], [2, 3])
        self.assertEqual(percentile([], 0.5), 0)


if __name__ == "__main__":
    unittest.main()
