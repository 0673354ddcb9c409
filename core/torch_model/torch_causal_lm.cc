// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/torch_causal_lm.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <filesystem>
#include <new>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/kernels/dispatch.h"
#include "core/model/model_config.h"
#include "core/model/safetensors.h"
#include "core/torch_model/device.h"
#include "core/torch_model/kv_cache.h"
#include "core/torch_model/transformer.h"
#include "core/torch_model/weights.h"

namespace outrider {
namespace {

// The only place where torch's exceptions end. `function` returns a Status or
// a StatusOr.
template <typename Function>
auto CatchTorch(const std::string& what, Function function)
    -> decltype(function()) {
  const auto exhausted = [&what](absl::string_view detail) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": out of memory: ", detail));
  };
  try {
    const c10::InferenceMode guard;
    return function();
  } catch (const c10::OutOfMemoryError& error) {
    return exhausted(error.what_without_backtrace());
  } catch (const c10::Error& error) {
    const std::string detail = error.what_without_backtrace();
    // The CPU's allocator has no exception of its own.
    if (absl::StrContains(detail, "DefaultCPUAllocator")) {
      return exhausted(detail);
    }
    return absl::InternalError(absl::StrCat(what, ": ", detail));
  } catch (const std::bad_alloc&) {
    return exhausted("bad_alloc");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(what, ": ", error.what()));
  }
}

// The last component: of "models/a/" and "models/a" it is "a".
std::string DirectoryName(const std::string& directory) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(directory, error);
  path = path.lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

class TorchCausalLm final : public CausalLm {
 public:
  TorchCausalLm(ModelInfo info, Transformer&& transformer, KvCache&& cache)
      : info_(std::move(info)),
        transformer_(std::move(transformer)),
        cache_(std::move(cache)) {}

  const ModelInfo& info() const override { return info_; }
  std::vector<absl::StatusOr<LogitRows>> Extend(
      absl::Span<const Extension> batch) override;
  void Release(const SessionId& session) override { cache_.Release(session); }

 private:
  absl::Status Check(const Extension& extension) const;
  // Checked, cut, with room for its tokens.
  absl::StatusOr<Continuation> Prepare(const Extension& extension);
  // Runs the pass and advances the caches: one result for each continuation.
  std::vector<absl::StatusOr<LogitRows>> Run(
      absl::Span<const Continuation> pass);

  const ModelInfo info_;
  const Transformer transformer_;
  KvCache cache_;
};

absl::Status TorchCausalLm::Check(const Extension& extension) const {
  const int cached = cache_.Length(extension.session);
  const int64_t num_tokens = extension.tokens.size();
  if (extension.keep_length < 0 || extension.keep_length > cached) {
    return absl::InvalidArgumentError(
        absl::StrCat("keep_length ", extension.keep_length,
                     " is outside the cache of ", cached, " tokens"));
  }
  if (num_tokens == 0) return absl::InvalidArgumentError("no tokens");
  if (extension.keep_length + num_tokens > info_.context_length) {
    return absl::InvalidArgumentError(absl::StrCat(
        extension.keep_length + num_tokens,
        " tokens are more than the context length ", info_.context_length));
  }
  if (extension.num_rows < 0 || extension.num_rows > num_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_rows ", extension.num_rows, " is outside the ",
                     num_tokens, " tokens"));
  }
  for (const TokenId token : extension.tokens) {
    if (token < 0 || token >= info_.vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token ", token, " is outside the vocabulary of ", info_.vocab_size));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Continuation> TorchCausalLm::Prepare(
    const Extension& extension) {
  OUTRIDER_RETURN_IF_ERROR(Check(extension));
  const int length =
      extension.keep_length + static_cast<int>(extension.tokens.size());
  OUTRIDER_ASSIGN_OR_RETURN(
      SessionCache* const cache,
      CatchTorch("kv cache", [&]() -> absl::StatusOr<SessionCache*> {
        return cache_.Reserve(extension.session, extension.keep_length, length);
      }));
  return Continuation{.cache = cache,
                      .tokens = extension.tokens,
                      .num_logit_rows = extension.num_rows};
}

std::vector<absl::StatusOr<LogitRows>> TorchCausalLm::Run(
    absl::Span<const Continuation> pass) {
  const absl::StatusOr<at::Tensor> logits =
      CatchTorch("forward pass", [&]() -> absl::StatusOr<at::Tensor> {
        return transformer_.Forward(pass);
      });
  if (!logits.ok()) return {pass.size(), logits.status()};

  std::vector<absl::StatusOr<LogitRows>> results;
  int64_t first_row = 0;
  for (const Continuation& item : pass) {
    item.cache->length += static_cast<int>(item.tokens.size());
    LogitRows rows;
    if (item.num_logit_rows > 0) {
      const auto owner = std::make_shared<at::Tensor>(*logits);
      const float* begin =
          owner->const_data_ptr<float>() + first_row * info_.vocab_size;
      rows = LogitRows(std::shared_ptr<const float>(owner, begin),
                       item.num_logit_rows, info_.vocab_size);
    }
    first_row += item.num_logit_rows;
    results.push_back(std::move(rows));
  }
  return results;
}

std::vector<absl::StatusOr<LogitRows>> TorchCausalLm::Extend(
    absl::Span<const Extension> batch) {
  std::vector<absl::StatusOr<LogitRows>> results;
  std::vector<Continuation> pass;
  std::vector<size_t> members;  // of the batch, in the order of `pass`
  absl::flat_hash_set<SessionId> sessions;
  for (size_t i = 0; i < batch.size(); ++i) {
    absl::StatusOr<Continuation> prepared =
        sessions.insert(batch[i].session).second
            ? Prepare(batch[i])
            : absl::InvalidArgumentError("session twice in one batch");
    if (!prepared.ok()) {
      results.push_back(prepared.status());
      continue;
    }
    results.push_back(LogitRows());  // replaced below
    members.push_back(i);
    pass.push_back(*prepared);
  }
  if (pass.empty()) return results;

  std::vector<absl::StatusOr<LogitRows>> answers = Run(pass);
  for (size_t i = 0; i < members.size(); ++i) {
    // Which keys a failed pass has written is unknown: forget the session.
    if (!answers[i].ok()) cache_.Release(batch[members[i]].session);
    results[members[i]] = std::move(answers[i]);
  }
  return results;
}

absl::StatusOr<std::unique_ptr<const Ops>> MakeOps(const std::string& kernels,
                                                   at::Device device) {
  if (kernels == "aten") return MakeAtenOps();
  if (kernels == "auto") return device.is_cpu() ? MakeCpuOps() : MakeAtenOps();
  return absl::InvalidArgumentError(
      absl::StrCat("kernels \"", kernels, "\" is neither auto nor aten"));
}

absl::StatusOr<std::unique_ptr<CausalLm>> Load(
    const TorchCausalLmOptions& options) {
  if (options.max_cached_tokens < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_cached_tokens ", options.max_cached_tokens, " is negative"));
  }
  OUTRIDER_ASSIGN_OR_RETURN(const at::Device device,
                            OpenDevice(options.device));
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<const Ops> ops,
                            MakeOps(options.kernels, device));
  at::set_num_threads(1);  // our kernels use one; torch's idle ones would spin

  // The checkpoint first: a directory with another format often has no
  // config.json either, and the format is the better answer.
  OUTRIDER_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                            Checkpoint::Open(options.model_directory));
  OUTRIDER_ASSIGN_OR_RETURN(const ModelConfig config,
                            ReadModelConfig(options.model_directory));
  OUTRIDER_ASSIGN_OR_RETURN(const at::ScalarType dtype,
                            ChooseDtype(options.dtype, checkpoint, device));
  OUTRIDER_ASSIGN_OR_RETURN(ModelWeights weights,
                            LoadWeights(config, checkpoint, *ops,
                                        {.dtype = dtype, .device = device}));

  ModelInfo info;
  info.name = DirectoryName(options.model_directory);
  info.weights_hash = weights.hash;
  info.dtype = dtype == at::kFloat ? "float32" : "bfloat16";
  info.device = device.str();
  info.numerics = options.kernels == "auto" && device.is_cpu()
                      ? kernels::LevelName(kernels::BestLevel())
                      : "aten";
  info.vocab_size = config.vocab_size;
  info.context_length = config.context_length;
  info.eos_ids = config.eos_ids;
  return std::make_unique<TorchCausalLm>(
      std::move(info),
      Transformer(config, std::move(weights), std::move(ops), device),
      KvCache(config, {.dtype = dtype,
                       .device = device,
                       .max_cached_tokens = options.max_cached_tokens}));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CausalLm>> LoadTorchCausalLm(
    const TorchCausalLmOptions& options) {
  return CatchTorch(options.model_directory,
                    [&options] { return Load(options); });
}

absl::Status CheckTorchCausalLm(const std::string& model_directory) {
  return CatchTorch(model_directory, [&model_directory]() -> absl::Status {
    OUTRIDER_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                              Checkpoint::Open(model_directory));
    OUTRIDER_ASSIGN_OR_RETURN(const ModelConfig config,
                              ReadModelConfig(model_directory));
    return CheckWeights(config, checkpoint);
  });
}

}  // namespace outrider
