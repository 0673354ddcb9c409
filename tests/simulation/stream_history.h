// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_STREAM_HISTORY_H_
#define OUTRIDER_TESTS_SIMULATION_STREAM_HISTORY_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/token.h"

namespace outrider::testing {

// What was seen of one stream: the sessions that carried it on one after the
// other, what each of them committed, and what its client received. Looks for
// the one sequential execution that explains it all: a text that only grows,
// each of whose positions was written once. Indices and the order of sessions
// leave no choice of the order of what was received; what a session committed
// and nobody received may have happened or not, unless the very text is
// promised: then no session may ever have written another token there.
class StreamHistory {
 public:
  // A session begins with what the client says that it has.
  void Begins(uint64_t seed, absl::Span<const TokenId> delivered) {
    if (sessions_.empty()) seed_ = seed;
    if (seed != seed_) Report("a session has another seed");
    if (delivered != absl::MakeConstSpan(received_)) {
      Report("a session begins with another text than was received");
    }
    sessions_.emplace_back(delivered.begin(), delivered.end());
  }
  // The last one to begin is session num_sessions() - 1.
  int num_sessions() const { return static_cast<int>(sessions_.size()); }

  void Committed(int session, int first_index,
                 absl::Span<const TokenId> tokens) {
    std::vector<TokenId>& log = sessions_[session];
    if (first_index != static_cast<int>(log.size())) {
      Report(absl::StrCat("position ", first_index, " is written after ",
                          log.size(), " others"));
    }
    log.insert(log.end(), tokens.begin(), tokens.end());
  }
  void Received(int session, int first_index,
                absl::Span<const TokenId> tokens) {
    const std::vector<TokenId>& log = sessions_[session];
    const size_t end = first_index + tokens.size();
    if (session != num_sessions() - 1) {
      Report("what came is of a session that another one has followed");
    } else if (first_index != static_cast<int>(received_.size())) {
      Report(absl::StrCat("position ", first_index, " came after ",
                          received_.size(), " others"));
    } else if (end > log.size() || tokens != absl::MakeConstSpan(log).subspan(
                                                 first_index, tokens.size())) {
      Report("what came was not committed before");
    }
    received_.insert(received_.end(), tokens.begin(), tokens.end());
  }

  // The first that no sequential execution explains; empty: none.
  std::string Problem(bool is_text_promised) const {
    if (!problem_.empty() || !is_text_promised) return problem_;
    for (size_t i = 0; i < sessions_.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const size_t length =
            std::min(sessions_[i].size(), sessions_[j].size());
        if (!std::equal(sessions_[i].begin(), sessions_[i].begin() + length,
                        sessions_[j].begin())) {
          return absl::StrCat("sessions ", j, " and ", i,
                              " wrote different texts");
        }
      }
    }
    return "";
  }

 private:
  void Report(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  uint64_t seed_ = 0;
  std::vector<std::vector<TokenId>> sessions_;  // their logs, without prompts
  std::vector<TokenId> received_;
  std::string problem_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_STREAM_HISTORY_H_
