// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/torch_causal_lm.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <filesystem>
#include <new>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/available_memory.h"
#include "core/base/check.h"
#include "core/base/freed_memory.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/cuda_model/open_gpu.h"
#include "core/kernels/choose_level.h"
#include "core/model/check_extension.h"
#include "core/model/model_config.h"
#include "core/model/ragged_pass.h"
#include "core/model/safetensors.h"
#include "core/torch_model/device.h"
#include "core/torch_model/kv_blocks.h"
#include "core/torch_model/load_cuda.h"
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
  TorchCausalLm(ModelInfo info, Transformer&& transformer, KvBlocks&& kv)
      : info_(std::move(info)),
        transformer_(std::move(transformer)),
        kv_(std::move(kv)) {}

  const ModelInfo& info() const override { return info_; }
  int64_t AvailableKvBytes() const override { return kv_.AvailableBytes(); }
  absl::Status AllocateKvBlocks(int num_blocks) override;
  std::unique_ptr<PendingPass> Launch(
      absl::Span<const Extension> batch) override;

 private:
  absl::Status Check(const Extension& extension) const;
  absl::StatusOr<std::vector<LogitRows>> Run(absl::Span<const Extension> pass);

  const ModelInfo info_;
  const Transformer transformer_;
  KvBlocks kv_;
};

absl::Status TorchCausalLm::AllocateKvBlocks(int num_blocks) {
  const int64_t available = kv_.AvailableBytes();
  if (num_blocks > available / kv_.block_bytes()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        num_blocks, " KV blocks of ", kv_.block_bytes(), " bytes: ", available,
        " bytes are available on ", info_.device));
  }
  return CatchTorch("kv blocks", [&] {
    kv_.Allocate(num_blocks);
    return absl::OkStatus();
  });
}

absl::Status TorchCausalLm::Check(const Extension& extension) const {
  for (const KvBlockId block : extension.blocks) {
    OUTRIDER_CHECK(block >= 0 && block < kv_.num_blocks())
        << "block " << block << " of " << kv_.num_blocks();
  }
  return CheckExtension(extension, info_);
}

absl::StatusOr<std::vector<LogitRows>> TorchCausalLm::Run(
    absl::Span<const Extension> pass) {
  for (const Extension& extension : pass) {
    if (!extension.copied_block.has_value()) continue;
    kv_.Copy(*extension.copied_block, CopyTarget(extension));
  }
  OUTRIDER_ASSIGN_OR_RETURN(
      const at::Tensor logits,
      CatchTorch("forward pass", [&]() -> absl::StatusOr<at::Tensor> {
        return transformer_.Forward(pass, kv_);
      }));
  if (!logits.defined()) return RowsOfEach(pass, info_.vocab_size, nullptr);
  const auto owner = std::make_shared<at::Tensor>(logits);
  return RowsOfEach(pass, info_.vocab_size,
                    {owner, owner->const_data_ptr<float>()});
}

std::unique_ptr<PendingPass> TorchCausalLm::Launch(
    absl::Span<const Extension> batch) {
  CheckedPass pass(
      batch, [this](const Extension& extension) { return Check(extension); });
  absl::StatusOr<std::vector<LogitRows>> rows = std::vector<LogitRows>();
  if (!pass.extensions().empty()) rows = Run(pass.extensions());
  return std::make_unique<PassThatRan>(pass.Results(std::move(rows)));
}

// What the options alone say of it.
absl::Status CheckKernels(const CheckpointOptions& options,
                          const Device& device) {
  if (options.num_threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.num_threads, " threads: at least one is needed"));
  }
  if (!device.is_cpu() && options.kernels != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("kernels \"", options.kernels,
                     "\" are those of a CPU, not of ", device.name()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<const Ops>> MakeOps(
    const CheckpointOptions& options, const Device& device) {
  // They leave the weights as they are, which a GPU needs.
  if (options.kernels == "aten" || !device.is_cpu()) return MakeAtenOps();
  OUTRIDER_ASSIGN_OR_RETURN(const kernels::Level level,
                            kernels::LevelByName(options.kernels));
  return MakeCpuOps(level, options.num_threads);
}

// A directory's files, and what its weights become on a device.
struct Files {
  Checkpoint checkpoint;
  ModelConfig config;
  at::ScalarType dtype;

  // They fit each other and the device, as far as they say what they have.
  static absl::StatusOr<Files> Open(const CheckpointOptions& options,
                                    const Device& device) {
    // The checkpoint first: a directory with another format often has no
    // config.json either, and the format is the better answer.
    OUTRIDER_ASSIGN_OR_RETURN(Checkpoint checkpoint,
                              Checkpoint::Open(options.model_directory));
    OUTRIDER_ASSIGN_OR_RETURN(ModelConfig config,
                              ReadModelConfig(options.model_directory));
    if (!device.is_cpu()) {
      OUTRIDER_RETURN_IF_ERROR(CudaTransformer::Check(config));
    }
    OUTRIDER_ASSIGN_OR_RETURN(const at::ScalarType dtype,
                              ChooseDtype(options.dtype, checkpoint, device));
    return Files{std::move(checkpoint), std::move(config), dtype};
  }
};

// Or a process that the system kills for its memory, minutes later, would have
// said nothing of it. It may go well: what is available is an estimate.
void WarnOfLittleMemory(const Files& files) {
  const int64_t needed = WeightBytes(files.checkpoint, files.dtype);
  const int64_t available = AvailableMemory();
  if (available == 0 || needed <= available) return;
  constexpr double kGibibyte = 1 << 30;
  OUTRIDER_LOG(kWarning) << absl::StrFormat(
      "the weights take %.4g GiB in %s, and %.4g GiB of memory are available: "
      "to load them may end this process",
      static_cast<double>(needed) / kGibibyte, DtypeName(files.dtype),
      static_cast<double>(available) / kGibibyte);
}

absl::StatusOr<std::unique_ptr<CausalLm>> Load(
    const CheckpointOptions& options, const std::string& cuda_library) {
  OUTRIDER_ASSIGN_OR_RETURN(const Device device, ParseDevice(options.device));
  OUTRIDER_RETURN_IF_ERROR(CheckKernels(options, device));
  std::shared_ptr<Gpu> gpu;
  if (!device.is_cpu()) {
    OUTRIDER_ASSIGN_OR_RETURN(gpu, OpenGpu(device.gpu, cuda_library));
  }
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<const Ops> ops,
                            MakeOps(options, device));
  at::set_num_threads(1);  // torch's idle ones would spin

  OUTRIDER_ASSIGN_OR_RETURN(const Files files, Files::Open(options, device));
  WarnOfLittleMemory(files);
  const ModelConfig& config = files.config;
  OUTRIDER_ASSIGN_OR_RETURN(
      ModelWeights weights,
      LoadWeights(config, files.checkpoint, *ops, {.dtype = files.dtype}));

  ModelInfo info;
  info.name = DirectoryName(options.model_directory);
  info.weights_hash = weights.hash;
  info.dtype = DtypeName(files.dtype);
  info.device = device.name();
  info.vocab_size = config.vocab_size;
  info.context_length = config.context_length;
  info.eos_ids = config.eos_ids;
  if (gpu != nullptr) {
    auto model =
        MoveToGpu(std::move(gpu), std::move(info), config, std::move(weights));
    ReturnFreedMemory();  // the host's copy
    return model;
  }
  info.numerics = ops->numerics();
  KvBlocks kv(config, files.dtype);
  info.kv_block_bytes = kv.block_bytes();
  return std::make_unique<TorchCausalLm>(
      std::move(info), Transformer(config, std::move(weights), std::move(ops)),
      std::move(kv));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CausalLm>> LoadTorchCausalLm(
    const CheckpointOptions& options) {
  return LoadTorchCausalLmBy(kCudaLibrary, options);
}

absl::StatusOr<std::unique_ptr<CausalLm>> LoadTorchCausalLmBy(
    const std::string& cuda_library, const CheckpointOptions& options) {
  return CatchTorch(options.model_directory,
                    [&] { return Load(options, cuda_library); });
}

absl::Status CheckTorchCausalLm(const CheckpointOptions& options) {
  return CatchTorch(options.model_directory, [&options]() -> absl::Status {
    OUTRIDER_ASSIGN_OR_RETURN(const Device device, ParseDevice(options.device));
    OUTRIDER_RETURN_IF_ERROR(CheckKernels(options, device));
    OUTRIDER_ASSIGN_OR_RETURN(const Files files, Files::Open(options, device));
    return CheckWeights(files.config, files.checkpoint);
  });
}

}  // namespace outrider
