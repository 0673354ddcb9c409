// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/open_torch_model.h"

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/open_library.h"
#include "core/base/status_macros.h"
#include "core/torch_model/torch_library.h"

namespace outrider {
namespace {

absl::StatusOr<TorchLibrary> Open(const std::string& library) {
  const absl::StatusOr<void*> found =
      OpenLibrary(library, OUTRIDER_TORCH_SYMBOL, LookFirst::kBesideProgram);
  if (absl::IsNotFound(found.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "what reads weights cannot be loaded (", found.status().message(),
        "); keep ", library,
        " in lib beside the program's folder, and libtorch where it was built, "
        "or in a folder of LD_LIBRARY_PATH"));
  }
  OUTRIDER_RETURN_IF_ERROR(found.status());
  return *reinterpret_cast<TorchLibraryFunction*>(*found)(CurrentLogFormat());
}

}  // namespace

absl::StatusOr<std::unique_ptr<CausalLm>> OpenTorchCausalLm(
    const CheckpointOptions& options) {
  return OpenTorchCausalLmBy(kTorchLibrary, options);
}

absl::StatusOr<std::unique_ptr<CausalLm>> OpenTorchCausalLmBy(
    const std::string& library, const CheckpointOptions& options) {
  OUTRIDER_ASSIGN_OR_RETURN(const TorchLibrary torch, Open(library));
  return torch.load(options);
}

absl::Status CheckTorchModel(const CheckpointOptions& options) {
  OUTRIDER_ASSIGN_OR_RETURN(const TorchLibrary torch, Open(kTorchLibrary));
  return torch.check(options);
}

}  // namespace outrider
