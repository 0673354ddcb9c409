// SPDX-License-Identifier: Apache-2.0
// The production round's whole law, every branch of chance, where the greatest
// logits of the target's rows are those that core/kernels/cuda finds: with
// cuts, penalties and bias it is the target's own, whether a row is decided by
// them or comes whole. Rows that are cut nowhere are device_rows_law_test.cc's
// matter.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/cuda_model/answer_threads.h"
#include "core/cuda_model/device_memory.h"
#include "core/cuda_model/row_scorer.h"
#include "core/cuda_model/small_model.h"
#include "gtest/gtest.h"
#include "tests/exactness/answered_law.h"

namespace outrider::testing {
namespace {

// Answers as a GPU's model does, with at most so many of the greatest logits.
// An enumeration comes back to its rows a thousand times: each is asked once.
class DeviceAnswers {
 public:
  DeviceAnswers(int vocab_size, int most_top)
      : most_top_(most_top), gpu_(GpuUnderTest()) {
    auto scorer =
        RowScorer::Make(gpu_, counters_,
                        {.max_rows = 1,
                         .vocab_size = vocab_size,
                         .threads = std::make_shared<AnswerThreads>(
                             AnswerThreads::Options{.num_threads = 1})});
    EXPECT_TRUE(scorer.ok()) << scorer.status();
    scorer_ = *std::move(scorer);
  }

  std::optional<RowAnswer> operator()(const RowQuestion& question,
                                      absl::Span<const float> logits) {
    const auto& top = std::get<TopQuestion>(question.what);
    TopAnswer answer = Find(question, top, logits);
    const bool is_enough = !top.suffices || top.suffices(answer);
    ++(is_enough ? counts_.num_answered : counts_.num_undecided);
    if (!is_enough) return std::nullopt;
    return answer;
  }

  const AnswerCounts& counts() const { return counts_; }
  int num_launches() const { return static_cast<int>(found_.size()); }

 private:
  using Key = std::tuple<std::vector<float>, double, int, std::vector<TokenId>>;

  const TopAnswer& Find(const RowQuestion& question, const TopQuestion& top,
                        absl::Span<const float> logits) {
    const int count = std::min(top.count, most_top_);
    const Key key = {{logits.begin(), logits.end()},
                     question.temperature,
                     count,
                     top.tokens};
    auto found = found_.find(key);
    if (found == found_.end()) {
      const RowQuestion asked = {
          .vocab_size = question.vocab_size,
          .temperature = question.temperature,
          .what = TopQuestion{.count = count, .tokens = top.tokens}};
      found = found_.emplace(key, Ask(asked, logits)).first;
    }
    return found->second;
  }

  TopAnswer Ask(const RowQuestion& question, absl::Span<const float> logits) {
    const size_t bytes = logits.size() * sizeof(float);
    const auto memory = DeviceMemory::Allocate(gpu_, bytes, "a row");
    EXPECT_TRUE(memory.ok()) << memory.status();
    gpu_->Upload(memory->data(), logits.data(), bytes);
    std::vector<WantedRow> rows = {{.question = &question}};
    const float* const row = memory->as<const float>();
    scorer_->Ask(row, absl::MakeSpan(rows), /*num_rows=*/1);
    scorer_->Answer(1);
    EXPECT_TRUE(scorer_->Download(row, absl::MakeSpan(rows)).ok());
    EXPECT_EQ(gpu_->Finish(), "");
    scorer_->TakeAnswers(absl::MakeSpan(rows));
    EXPECT_TRUE(rows[0].result.answer.has_value());
    return std::get<TopAnswer>(rows[0].result.answer.value_or(TopAnswer()));
  }

  const int most_top_;
  const std::shared_ptr<Gpu> gpu_;
  DeviceCounters counters_;
  std::unique_ptr<RowScorer> scorer_;
  std::map<Key, TopAnswer> found_;
  AnswerCounts counts_;
};

TEST(DeviceCandidatesLawTest, TheLawIsTheTargetsWhetherOrNotTheyDecide) {
  for (const ReplyFormat format :
       {ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    for (const int most_top : {kFewTop, kMaxTopLogits}) {
      DeviceAnswers device(/*vocab_size=*/4, most_top);
      for (const SamplingParams& sampling : CutProcessings()) {
        const Difference difference = AnsweredDifference(
            AnsweredConfig(sampling, format, std::ref(device)));
        EXPECT_LE(difference.max_difference, kTolerance)
            << "T " << sampling.temperature << ", top-k " << sampling.top_k
            << ", top-p " << sampling.top_p << ", min-p " << sampling.min_p;
        EXPECT_EQ(difference.impossible_mass, 0);
      }
      EXPECT_GT(device.num_launches(), 0);
      EXPECT_GT(device.counts().num_answered, 0);
      EXPECT_EQ(device.counts().num_undecided > 0, most_top == kFewTop);
    }
  }
}

}  // namespace
}  // namespace outrider::testing
