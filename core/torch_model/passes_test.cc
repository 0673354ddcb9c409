// SPDX-License-Identifier: Apache-2.0
// A row's bits depend on its own context alone. Here sessions go through passes
// of every composition, and each row is held against that of the same context
// run alone, in one piece, on one thread, in blocks that lie in order.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/solo_session.h"
#include "core/torch_model/torch_causal_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr int kBlocksOfPool = 64;

class Random {
 public:
  explicit Random(uint32_t seed) : bits_(seed) {}
  // Gives a number in [low, high].
  int Draw(int low, int high) {
    return low + static_cast<int>(bits_() % (high - low + 1));
  }
  template <typename T>
  void Shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[Draw(0, static_cast<int>(i) - 1)]);
    }
  }

 private:
  std::mt19937 bits_;
};

// Contexts that begin alike, and what a model makes of each alone.
struct Context {
  std::vector<TokenId> tokens = {};
  LogitRows rows = {};  // of all its positions
};

// A session on its way through a context.
struct Session {
  const Context* context = nullptr;
  std::vector<KvBlockId> table = {};
  int length = 0;
  std::optional<KvBlockId> copied_block = {};  // by its next pass
};

class PassesTest : public ::testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<CausalLm> Load(const std::string& dtype,
                                        int num_threads) {
    const char* source = std::getenv("OUTRIDER_SOURCE_DIR");
    auto model =
        LoadTorchCausalLm({.model_directory = absl::StrCat(
                               source == nullptr ? "." : source,
                               "/tests/golden/testdata/models/", GetParam()),
                           .dtype = dtype,
                           .num_threads = num_threads});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  void SetUp(const std::string& dtype) {
    const auto reference = Load(dtype, 1);
    length_ = std::min(100, reference->info().context_length);
    auto alone = SoloSession::Open(*reference, length_);
    ASSERT_TRUE(alone.ok()) << alone.status();
    for (int i = 0; i < 4; ++i) {
      Context& context = contexts_.emplace_back();
      for (int j = 0; j < length_; ++j) {
        // Two of them part after the second block, the others at once.
        const int salt = i == 1 && j < 2 * kKvBlockLength ? 0 : i;
        context.tokens.push_back((j * 31 + salt * 17 + 3) %
                                 reference->info().vocab_size);
      }
      auto rows = alone->Extend(0, context.tokens, length_);
      ASSERT_TRUE(rows.ok()) << rows.status();
      context.rows = *rows;
    }
    model_ = Load(dtype, 3);
    ASSERT_TRUE(model_->AllocateKvBlocks(kBlocksOfPool).ok());
  }

  // Every session takes so many rows; rows that differ from the reference are
  // reported.
  void Run(std::vector<Session*> sessions, const std::vector<int>& num_rows) {
    std::vector<Extension> batch;
    for (size_t i = 0; i < sessions.size(); ++i) {
      const Session& session = *sessions[i];
      batch.push_back({.blocks = session.table,
                       .cached_length = session.length,
                       .tokens = absl::MakeConstSpan(session.context->tokens)
                                     .subspan(session.length, num_rows[i]),
                       .num_rows = num_rows[i],
                       .copied_block = session.copied_block});
    }
    const auto results = model_->Extend(batch);
    for (size_t i = 0; i < sessions.size(); ++i) {
      ASSERT_TRUE(results[i].ok()) << results[i].status();
      Session& session = *sessions[i];
      for (int row = 0; row < num_rows[i]; ++row) {
        const auto expected = session.context->rows.Row(session.length + row);
        EXPECT_EQ(std::memcmp(results[i]->Row(row).data(), expected.data(),
                              expected.size() * sizeof(float)),
                  0)
            << "position " << session.length + row << ", row " << row << " of "
            << num_rows[i] << ", session " << i << " of " << sessions.size();
      }
      session.length += num_rows[i];
      session.copied_block.reset();
    }
  }

  int length_ = 0;  // of every context
  std::vector<Context> contexts_;
  std::unique_ptr<CausalLm> model_;
};

TEST_P(PassesTest, RowsAreBitEqualInEveryBatchChunkAndBlockLayout) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    contexts_.clear();
    SetUp(dtype);
    Random random(11);
    std::vector<KvBlockId> blocks;
    for (KvBlockId block = 0; block < kBlocksOfPool; ++block) {
      blocks.push_back(block);
    }
    for (int repeat = 0; repeat < 6; ++repeat) {
      // Eight sessions in blocks anywhere.
      random.Shuffle(blocks);
      std::vector<Session> sessions;
      for (int i = 0; i < 8; ++i) {
        const auto first = blocks.begin() + ptrdiff_t{i} * 7;
        sessions.push_back({&contexts_[i % 4], {first, first + 7}});
      }
      while (true) {
        std::vector<Session*> members;
        for (Session& session : sessions) {
          const bool takes_part = random.Draw(0, 3) > 0;
          if (takes_part && session.length < length_) {
            members.push_back(&session);
          }
        }
        const bool all_done =
            std::all_of(sessions.begin(), sessions.end(),
                        [&](const Session& s) { return s.length == length_; });
        if (all_done) break;
        if (members.empty()) continue;
        random.Shuffle(members);
        std::vector<int> num_rows;
        for (const Session* session : members) {
          // Now and then a chunk of a prompt among the rows of the others.
          const int wanted =
              random.Draw(0, 4) == 0 ? random.Draw(10, 60) : random.Draw(1, 9);
          num_rows.push_back(std::min(wanted, length_ - session->length));
        }
        Run(members, num_rows);
      }
    }
  }
}

TEST_P(PassesTest, RowsOverABlockThatTwoSessionsShareAreThoseOverTheirOwn) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    contexts_.clear();
    SetUp(dtype);
    // The first two contexts have their first two blocks in common.
    Session first = {&contexts_[0], {9, 4, 30, 31, 32, 33, 34}};
    Session second = {&contexts_[1], {9, 4, 20, 21, 22, 23, 24}};
    Run({&first}, {length_});
    second.length = 2 * kKvBlockLength;
    Run({&second}, {5});
    first.length = 2 * kKvBlockLength;
    for (int i = 0; i < 6; ++i) Run({&second, &first}, {i + 1, 5});
  }
}

TEST_P(PassesTest, RowsAfterACopyOfABlockAreThoseAfterTheBlockItself) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    contexts_.clear();
    SetUp(dtype);
    Session first = {&contexts_[0], {9, 4, 30, 31, 32, 33, 34}};
    Run({&first}, {30});
    for (const int length : {17, 25, 30}) {
      // The copy is made before the block that it is of goes on.
      Session second = {&contexts_[1], {9, 20, 21, 22, 23, 24, 25}, length, 4};
      first.length = 25;
      Run({&first, &second}, {4, 3});
      Run({&second, &first}, {6, 1});
    }
  }
}

// What lies after the positions written, or was cut off, is garbage.
TEST_P(PassesTest, GarbageAfterASessionsLengthDoesNotReachItsRows) {
  SetUp("float32");
  Session session = {&contexts_[0], {9, 4, 30, 31, 32, 33, 34}};
  Run({&session}, {20});
  for (int wrong = 1; wrong <= 9; ++wrong) {
    Session other = {&contexts_[2], session.table, session.length};
    const auto tokens =
        absl::MakeConstSpan(other.context->tokens).subspan(30, wrong);
    ASSERT_TRUE(
        model_->Extend({{other.table, other.length, tokens, wrong}})[0].ok());
    Run({&session}, {1 + wrong % 3});
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PassesTest,
                         ::testing::Values("llama", "gpt2", "qwen3",
                                           "mistral_sliding_sharded",
                                           "qwen2_sliding"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace outrider
