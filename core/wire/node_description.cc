// SPDX-License-Identifier: Apache-2.0
#include "core/wire/node_description.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/wire/field_convert.h"

namespace outrider {
namespace {

absl::Status CheckProtocol(const NodeDescription& node, absl::string_view who) {
  if (node.protocol_version < kProtocolVersion - 1 ||
      node.protocol_version > kProtocolVersion + 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("the ", who, " speaks protocol ", node.protocol_version,
                     ", this coordinator ", kProtocolVersion,
                     ": versions may be one apart; upgrade the older side"));
  }
  return absl::OkStatus();
}

}  // namespace

v1::NodeDescription ToProto(const NodeDescription& node) {
  v1::NodeDescription proto;
  proto.set_model_name(node.model_name);
  proto.set_weights_hash(node.weights_hash);
  proto.set_tokenizer_hash(node.tokenizer_hash);
  proto.set_vocab_size(node.vocab_size);
  proto.mutable_eos_ids()->Add(node.eos_ids.begin(), node.eos_ids.end());
  proto.set_context_length(node.context_length);
  proto.set_dtype(node.dtype);
  proto.set_device(node.device);
  proto.set_max_draft_tokens(node.max_draft_tokens);
  proto.set_protocol_version(node.protocol_version);
  proto.set_build(node.build);
  for (const ReplyFormat format : node.reply_formats) {
    proto.add_reply_formats(ToProto(format));
  }
  proto.set_draft_strategy(node.draft_strategy);
  proto.set_simulated(node.is_simulated);
  for (const RuleKind rule : node.rules) {
    proto.add_acceptance_rules(ToProto(rule));
  }
  proto.set_kv_cache_tokens(node.kv_cache_tokens);
  proto.set_kv_cache_bytes(node.kv_cache_bytes);
  proto.set_numerics(node.numerics);
  proto.set_prefix_cache(node.prefix_cache);
  if (node.activity) *proto.mutable_activity() = ToProto(*node.activity);
  proto.set_max_outcomes(node.max_outcomes);
  return proto;
}

NodeDescription FromProto(const v1::NodeDescription& proto) {
  NodeDescription node = {
      .model_name = proto.model_name(),
      .weights_hash = proto.weights_hash(),
      .tokenizer_hash = proto.tokenizer_hash(),
      .vocab_size = static_cast<int>(proto.vocab_size()),
      .eos_ids = {proto.eos_ids().begin(), proto.eos_ids().end()},
      .context_length = static_cast<int>(proto.context_length()),
      .dtype = proto.dtype(),
      .device = proto.device(),
      .max_draft_tokens = static_cast<int>(proto.max_draft_tokens()),
      .protocol_version = static_cast<int>(proto.protocol_version()),
      .build = proto.build(),
      .draft_strategy = proto.draft_strategy(),
      .is_simulated = proto.simulated(),
      .numerics = proto.numerics(),
      .kv_cache_tokens = static_cast<int64_t>(proto.kv_cache_tokens()),
      .kv_cache_bytes = static_cast<int64_t>(proto.kv_cache_bytes()),
      .prefix_cache = proto.prefix_cache(),
      .max_outcomes = static_cast<int>(proto.max_outcomes())};
  if (proto.has_activity()) node.activity = FromProto(proto.activity());
  for (const int number : proto.reply_formats()) {
    const auto format = FromProto(static_cast<v1::ReplyFormat>(number));
    // Formats of newer nodes are not ours to use.
    if (format.ok()) node.reply_formats.push_back(*format);
  }
  if (!proto.acceptance_rules().empty()) node.rules.clear();
  for (const int number : proto.acceptance_rules()) {
    const auto rule = FromProto(static_cast<v1::AcceptanceRule>(number));
    const bool is_new =
        rule.ok() && std::find(node.rules.begin(), node.rules.end(), *rule) ==
                         node.rules.end();
    if (is_new) node.rules.push_back(*rule);
  }
  return node;
}

absl::Status CheckVerifier(const NodeDescription& verifier) {
  OUTRIDER_RETURN_IF_ERROR(CheckProtocol(verifier, "verifier"));
  if (verifier.vocab_size < 1 || verifier.context_length < 2) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the verifier describes a vocabulary of ", verifier.vocab_size,
        " and a context of ", verifier.context_length));
  }
  if (std::find(verifier.reply_formats.begin(), verifier.reply_formats.end(),
                ReplyFormat::kFull) == verifier.reply_formats.end()) {
    return absl::FailedPreconditionError(
        "the verifier does not serve REPLY_FORMAT_FULL");
  }
  return absl::OkStatus();
}

absl::Status CheckPair(const NodeDescription& drafter,
                       const NodeDescription& verifier) {
  OUTRIDER_RETURN_IF_ERROR(CheckProtocol(drafter, "drafter"));
  if (drafter.tokenizer_hash != verifier.tokenizer_hash) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the drafter's tokenizer (", drafter.model_name, ", ",
        drafter.tokenizer_hash.substr(0, 12), ") is not the verifier's (",
        verifier.model_name, ", ", verifier.tokenizer_hash.substr(0, 12),
        "): its token ids mean other text; use a drafter of the same family"));
  }
  // A padded head counts for nothing in a description, so that one tokenizer
  // has one size: a node that says otherwise is not what it says.
  if (drafter.vocab_size != verifier.vocab_size) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the drafter (", drafter.model_name, ") describes ", drafter.vocab_size,
        " tokens, the verifier (", verifier.model_name, ") ",
        verifier.vocab_size,
        " for the same tokenizer: give both the same tokenizer.json and the "
        "same build"));
  }
  return absl::OkStatus();
}

}  // namespace outrider
