// SPDX-License-Identifier: Apache-2.0
#include "client/deployment_report.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/sampling/rule_names.h"
#include "core/wire/reply_format_names.h"

namespace outrider::client {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::array<std::string, 14>;

Row Titles() {
  return {"role",    "model",      "strategy", "dtype",     "device",
          "kernels", "vocabulary", "context",  "KV tokens", "prefixes",
          "max K",   "rules",      "replies",  "build"};
}

// Names rules as flags do. Greedy has none: it is rejection at temperature 0.
std::vector<std::string> RulesOf(const NodeDescription& node) {
  std::vector<std::string> names;
  for (const RuleKind rule : node.rules) names.emplace_back(NameOf(rule));
  return names;
}

// Only a verifier has reply formats.
std::vector<std::string> ReplyFormatsOf(const NodeDescription& node) {
  std::vector<std::string> names;
  for (const ReplyFormat format : node.reply_formats) {
    for (const auto& [name, named] : ReplyFormatNames()) {
      if (named == format) names.push_back(name);
    }
  }
  return names;
}

std::string Joined(const std::vector<std::string>& names) {
  return names.empty() ? "-" : absl::StrJoin(names, ",");
}

Row ToRow(absl::string_view role, const NodeDescription& node) {
  return {std::string(role),
          node.model_name.empty() ? "-" : node.model_name,
          node.draft_strategy.empty() ? "-" : node.draft_strategy,
          node.dtype,
          node.device,
          node.numerics.empty() ? "-" : node.numerics,
          absl::StrCat(node.vocab_size),
          absl::StrCat(node.context_length),
          absl::StrCat(node.kv_cache_tokens),
          node.prefix_cache.empty() ? "off" : node.prefix_cache,
          absl::StrCat(node.max_draft_tokens),
          Joined(RulesOf(node)),
          Joined(ReplyFormatsOf(node)),
          node.build};
}

double Mean(double sum, int64_t count) {
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

// What it has done so far, and holds: a line of two sentences.
std::string ActivityOf(absl::string_view role, const NodeDescription& node) {
  if (!node.activity) return "";
  const NodeActivity& a = *node.activity;
  return absl::StrFormat(
      "%s %s: %d passes of %.1f rows and %.1f sessions, %d prefill chunks, %d "
      "preemptions; a decode waited %.2f ms for passes, a prefill %.2f ms. Now "
      "%d sessions in %d of %d KV blocks\n",
      role, node.model_name.empty() ? "-" : node.model_name, a.num_passes,
      Mean(static_cast<double>(a.num_rows), a.num_passes),
      Mean(static_cast<double>(a.num_pass_sessions), a.num_passes),
      a.num_prefill_chunks, a.num_preemptions,
      1e3 * Mean(a.decode_queue_seconds, a.num_decode_calls),
      1e3 * Mean(a.prefill_queue_seconds, a.num_prefill_calls), a.num_sessions,
      a.num_kv_blocks_used, a.num_kv_blocks);
}

// What its GPU is and has done: a line.
std::string GpuActivityOf(absl::string_view role, const NodeDescription& node) {
  if (!node.activity || !node.activity->gpu) return "";
  const GpuActivity& gpu = *node.activity->gpu;
  return absl::StrFormat(
      "%s %s on %s: %.1f MiB taken, %.1f MiB of it by KV blocks; %d graphs "
      "(%d captured late), launched %d times; %d rows of logits answered, %d "
      "copied whole, %d of these as the answer did not decide\n",
      role, node.model_name.empty() ? "-" : node.model_name, gpu.name,
      static_cast<double>(gpu.memory_bytes) / (1 << 20),
      static_cast<double>(node.kv_cache_bytes) / (1 << 20), gpu.num_graphs,
      gpu.num_late_graphs, gpu.num_graph_replays, gpu.num_answered_rows,
      gpu.num_copied_rows, gpu.num_undecided_rows);
}

std::string Align(const std::vector<Row>& rows) {
  std::array<size_t, std::tuple_size_v<Row>> widths = {};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string table;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppendFormat(&line, "%-*s", static_cast<int>(widths[i] + 2),
                            row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&table, line, "\n");
  }
  return table;
}

// A node after the other, with a line for each of its columns.
std::string ToBlocks(const std::vector<Row>& rows) {
  const Row titles = Titles();
  size_t indent = 0;
  for (const std::string& title : titles) {
    indent = std::max(indent, title.size());
  }
  std::string blocks;
  for (const Row& row : rows) {
    absl::StrAppend(&blocks, row[0], " ", row[1], "\n");
    for (size_t i = 2; i < row.size(); ++i) {
      absl::StrAppendFormat(&blocks, "  %-*s  %s\n", static_cast<int>(indent),
                            titles[i], row[i]);
    }
  }
  return blocks;
}

bool IsWithin(const std::string& text, size_t width) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.size() > width) return false;
  }
  return true;
}

// The lines, broken between words; what follows a break stands further in.
std::string Wrapped(const std::string& text, size_t width) {
  std::string wrapped;
  for (const absl::string_view whole : absl::StrSplit(text, '\n')) {
    std::string line;
    for (const absl::string_view word : absl::StrSplit(whole, ' ')) {
      if (!line.empty() && line.size() + 1 + word.size() > width) {
        absl::StrAppend(&wrapped, line, "\n");
        line = "  ";
      } else if (!line.empty()) {
        line += ' ';
      }
      absl::StrAppend(&line, word);
    }
    absl::StrAppend(&wrapped, line, "\n");
  }
  wrapped.pop_back();  // the last line was empty
  return wrapped;
}

// What is said beneath the table.
std::string NotesOn(const Deployment& deployment) {
  std::string notes;
  for (const NodeDescription& node : deployment.verifiers) {
    notes += ActivityOf("verifier", node);
    notes += GpuActivityOf("verifier", node);
  }
  for (const NodeDescription& node : deployment.drafters) {
    notes += ActivityOf("drafter", node);
    notes += GpuActivityOf("drafter", node);
  }
  for (const auto* nodes : {&deployment.verifiers, &deployment.drafters}) {
    for (const NodeDescription& node : *nodes) {
      if (!node.is_simulated) continue;
      absl::StrAppend(&notes, node.model_name,
                      " is simulated: a timing model, no weights\n");
    }
  }
  if (deployment.verifiers.empty()) {
    absl::StrAppend(&notes, "no verifier is ready: nothing can be generated\n");
  }
  if (deployment.drafters.empty()) {
    absl::StrAppend(&notes, "no drafter is ready: decoding is plain\n");
  }
  for (const std::string& refused : deployment.refused_verifiers) {
    absl::StrAppend(&notes, "refused verifier: ", refused, "\n");
  }
  for (const std::string& refused : deployment.refused_drafters) {
    absl::StrAppend(&notes, "refused drafter: ", refused, "\n");
  }
  if (!deployment.has_tokenizer) {
    absl::StrAppend(&notes,
                    "no tokenizer: prompts are token ids (--prompt-tokens)\n");
  }
  return notes;
}

Json ActivityToJson(const NodeActivity& activity) {
  Json json = {{"num_passes", activity.num_passes},
               {"num_rows", activity.num_rows},
               {"num_pass_sessions", activity.num_pass_sessions},
               {"num_prefill_chunks", activity.num_prefill_chunks},
               {"num_preemptions", activity.num_preemptions},
               {"num_decode_calls", activity.num_decode_calls},
               {"decode_queue_seconds", activity.decode_queue_seconds},
               {"num_prefill_calls", activity.num_prefill_calls},
               {"prefill_queue_seconds", activity.prefill_queue_seconds},
               {"num_sessions", activity.num_sessions},
               {"num_kv_blocks", activity.num_kv_blocks},
               {"num_kv_blocks_used", activity.num_kv_blocks_used},
               {"gpu", Json()}};
  if (const auto& gpu = activity.gpu) {
    json["gpu"] = {{"name", gpu->name},
                   {"memory_bytes", gpu->memory_bytes},
                   {"num_graphs", gpu->num_graphs},
                   {"num_late_graphs", gpu->num_late_graphs},
                   {"num_graph_replays", gpu->num_graph_replays},
                   {"num_answered_rows", gpu->num_answered_rows},
                   {"num_copied_rows", gpu->num_copied_rows},
                   {"num_undecided_rows", gpu->num_undecided_rows}};
  }
  return json;
}

Json NodesToJson(const std::vector<NodeDescription>& nodes) {
  Json all = Json::array();
  for (const NodeDescription& node : nodes) {
    all.push_back({{"model", node.model_name},
                   {"strategy", node.draft_strategy},
                   {"dtype", node.dtype},
                   {"device", node.device},
                   {"kernels", node.numerics},
                   {"simulated", node.is_simulated},
                   {"weights_hash", node.weights_hash},
                   {"tokenizer_hash", node.tokenizer_hash},
                   {"vocab_size", node.vocab_size},
                   {"context_length", node.context_length},
                   {"kv_cache_tokens", node.kv_cache_tokens},
                   {"kv_cache_bytes", node.kv_cache_bytes},
                   {"prefix_cache", node.prefix_cache},
                   {"max_draft_tokens", node.max_draft_tokens},
                   {"rules", RulesOf(node)},
                   {"reply_formats", ReplyFormatsOf(node)},
                   {"build", node.build},
                   {"activity",
                    node.activity ? ActivityToJson(*node.activity) : Json()}});
  }
  return all;
}

}  // namespace

std::string ToText(const Deployment& deployment, size_t width) {
  std::vector<Row> rows;
  for (const NodeDescription& node : deployment.verifiers) {
    rows.push_back(ToRow("verifier", node));
  }
  for (const NodeDescription& node : deployment.drafters) {
    rows.push_back(ToRow("drafter", node));
  }
  std::vector<Row> lines = {Titles()};
  lines.insert(lines.end(), rows.begin(), rows.end());
  const std::string table = Align(lines);
  const std::string notes = NotesOn(deployment);
  if (width == 0) return table + notes;
  return (IsWithin(table, width) ? table : ToBlocks(rows)) +
         Wrapped(notes, width);
}

std::string ToJson(const Deployment& deployment) {
  const Json json = {{"verifiers", NodesToJson(deployment.verifiers)},
                     {"drafters", NodesToJson(deployment.drafters)},
                     {"refused_verifiers", deployment.refused_verifiers},
                     {"refused_drafters", deployment.refused_drafters},
                     {"has_tokenizer", deployment.has_tokenizer}};
  // Names are a peer's: what is not UTF-8 must not end the program.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace outrider::client
