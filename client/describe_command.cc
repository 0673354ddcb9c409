// SPDX-License-Identifier: Apache-2.0
#include "client/describe_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/sampling/rule_names.h"
#include "core/wire/reply_format_names.h"

namespace outrider::client {
namespace {

using Row = std::array<std::string, 14>;

// Names rules as flags do. Greedy has none: it is rejection at temperature 0.
std::string RulesOf(const NodeDescription& node) {
  std::string names;
  for (const RuleKind rule : node.rules) {
    absl::StrAppend(&names, names.empty() ? "" : ",", NameOf(rule));
  }
  return names.empty() ? "-" : names;
}

// Only a verifier has reply formats.
std::string ReplyFormatsOf(const NodeDescription& node) {
  std::string names;
  for (const ReplyFormat format : node.reply_formats) {
    for (const auto& [name, named] : ReplyFormatNames()) {
      if (named != format) continue;
      absl::StrAppend(&names, names.empty() ? "" : ",", name);
    }
  }
  return names.empty() ? "-" : names;
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
          RulesOf(node),
          ReplyFormatsOf(node),
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

// Asks one coordinator after the other until one is there. Each has an equal
// share of the time that is left.
absl::StatusOr<Deployment> DescribeAny(const CoordinatorFlags& target,
                                       const CommandIo& io) {
  using Clock = std::chrono::steady_clock;
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(target.timeout_seconds));
  const std::vector<std::string> all = CoordinatorsOf(target);
  for (size_t i = 0;; ++i) {
    const auto share =
        (deadline - Clock::now()) / static_cast<int64_t>(all.size() - i);
    absl::StatusOr<Deployment> deployment =
        GenerationClient(all[i], target.tls)
            .Describe(std::chrono::ceil<std::chrono::milliseconds>(share));
    const bool is_down = absl::IsUnavailable(deployment.status()) ||
                         absl::IsDeadlineExceeded(deployment.status());
    if (!is_down || i + 1 == all.size()) return deployment;
    io.err << "outrider: " << all[i] << " does not answer, asking the next: "
           << deployment.status().message() << "\n";
  }
}

}  // namespace

void AddDescribeFlags(CLI::App& command, DescribeFlags& flags) {
  flags.target.timeout_seconds = 10;
  AddCoordinatorFlags(command, flags.target);
  command.footer("Example:\n  outrider describe --coordinator 127.0.0.1:7010");
}

std::string ToTable(const Deployment& deployment) {
  std::vector<Row> rows = {{"role", "model", "strategy", "dtype", "device",
                            "kernels", "vocabulary", "context", "KV tokens",
                            "prefixes", "max K", "rules", "replies", "build"}};
  for (const NodeDescription& node : deployment.verifiers) {
    rows.push_back(ToRow("verifier", node));
  }
  for (const NodeDescription& node : deployment.drafters) {
    rows.push_back(ToRow("drafter", node));
  }
  std::string table = Align(rows);
  for (const NodeDescription& node : deployment.verifiers) {
    table += ActivityOf("verifier", node);
    table += GpuActivityOf("verifier", node);
  }
  for (const NodeDescription& node : deployment.drafters) {
    table += ActivityOf("drafter", node);
    table += GpuActivityOf("drafter", node);
  }
  for (const auto* nodes : {&deployment.verifiers, &deployment.drafters}) {
    for (const NodeDescription& node : *nodes) {
      if (!node.is_simulated) continue;
      absl::StrAppend(&table, node.model_name,
                      " is simulated: a timing model, no weights\n");
    }
  }
  if (deployment.verifiers.empty()) {
    absl::StrAppend(&table, "no verifier is ready: nothing can be generated\n");
  }
  if (deployment.drafters.empty()) {
    absl::StrAppend(&table, "no drafter is ready: decoding is plain\n");
  }
  for (const std::string& refused : deployment.refused_verifiers) {
    absl::StrAppend(&table, "refused verifier: ", refused, "\n");
  }
  for (const std::string& refused : deployment.refused_drafters) {
    absl::StrAppend(&table, "refused drafter: ", refused, "\n");
  }
  if (!deployment.has_tokenizer) {
    absl::StrAppend(&table,
                    "no tokenizer: prompts are token ids (--prompt-tokens)\n");
  }
  return table;
}

int DescribeCommand(const DescribeFlags& flags, const CommandIo& io) {
  const CoordinatorFlags& target = flags.target;
  if (const absl::Status status = CheckCoordinatorFlags(target); !status.ok()) {
    return FailUsage(io.err, status);
  }
  const absl::StatusOr<Deployment> deployment = DescribeAny(target, io);
  if (!deployment.ok()) return FailCall(io.err, deployment.status());
  io.out << ToTable(*deployment);
  return Finish(io, kExitOk);
}

}  // namespace outrider::client
