// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/gpu.h"

#include "core/kernels/cuda/runtime.h"

namespace outrider::kernels::cuda {
namespace {

class StreamGpu final : public Gpu {
 public:
  StreamGpu(int index, Stream stream, Stream fetches)
      : index_(index), stream_(stream), fetches_(fetches) {}
  ~StreamGpu() override {
    UseDevice(index_);
    DestroyStream(stream_);
    DestroyStream(fetches_);
  }

  std::string name() override {
    UseDevice(index_);
    return DeviceName();
  }
  std::string numerics() override {
    UseDevice(index_);
    return DeviceNumerics();
  }

  void* Allocate(size_t bytes) override {
    UseDevice(index_);
    return AllocateMemory(bytes);
  }
  void Free(void* memory) override {
    UseDevice(index_);
    FreeMemory(memory);
  }
  size_t AvailableBytes() override {
    UseDevice(index_);
    return AvailableMemory();
  }
  void* AllocatePinned(size_t bytes) override {
    UseDevice(index_);
    return cuda::AllocatePinned(bytes);
  }
  void FreePinned(void* memory) override {
    UseDevice(index_);
    cuda::FreePinned(memory);
  }

  void Upload(void* to, const void* from, size_t bytes) override {
    CopyToDevice(to, from, bytes, stream());
  }
  void Download(void* to, const void* from, size_t bytes) override {
    CopyToHost(to, from, bytes, stream());
  }
  void Copy(void* to, const void* from, size_t bytes) override {
    CopyOnDevice(to, from, bytes, stream());
  }
  void Zero(void* memory, size_t bytes) override {
    ZeroMemory(memory, bytes, stream());
  }
  void Run(const PackArgs& args) override { Pack(args, stream()); }
  void Run(const EmbedArgs& args) override { Embed(args, stream()); }
  void Run(const LinearArgs& args) override { Linear(args, stream()); }
  void RunRmsNorm(const NormArgs& args) override { RmsNorm(args, stream()); }
  void RunLayerNorm(const NormArgs& args) override {
    LayerNorm(args, stream());
  }
  void Run(const RotateStoreArgs& args) override {
    RotateStore(args, stream());
  }
  void Run(const AttentionArgs& args) override { Attention(args, stream()); }
  void Run(const CopyBlocksArgs& args) override { CopyBlocks(args, stream()); }
  void Run(const ScoreRowsArgs& args) override { ScoreRows(args, stream()); }
  void Run(const TopRowsArgs& args) override { TopRows(args, stream()); }
  void Run(const DrawNextArgs& args) override { DrawNext(args, stream()); }

  bool BeginCapture() override { return cuda::BeginCapture(stream()); }
  Graph EndCapture() override { return cuda::EndCapture(stream()); }
  void Run(Graph graph) override { LaunchGraph(graph, stream()); }
  void Destroy(Graph graph) override {
    UseDevice(index_);
    DestroyGraph(graph);
  }

  std::string Finish() override { return Synchronize(stream()); }

  Event MakeEvent() override {
    UseDevice(index_);
    return cuda::MakeEvent();
  }
  void Destroy(Event event) override {
    UseDevice(index_);
    DestroyEvent(event);
  }
  std::string Record(Event event) override {
    return RecordEvent(event, stream());
  }
  std::string Await(Event event) override {
    UseDevice(index_);
    return AwaitEvent(event);
  }

  void Fetch(void* to, const void* from, size_t bytes) override {
    UseDevice(index_);
    CopyToHost(to, from, bytes, fetches_);
  }
  std::string AwaitFetches() override {
    UseDevice(index_);
    return Synchronize(fetches_);
  }

 private:
  // A model's thread may be another one each time.
  Stream stream() const {
    UseDevice(index_);
    return stream_;
  }

  const int index_;
  const Stream stream_;
  const Stream fetches_;
};

}  // namespace

Gpu* OpenGpu(int index, std::string* error) {
  *error = OpenDevice(index);
  if (!error->empty()) return nullptr;
  Stream stream = nullptr, fetches = nullptr;
  std::string failure = MakeStream(&stream);
  if (failure.empty()) failure = MakeStream(&fetches);
  if (failure.empty()) return new StreamGpu(index, stream, fetches);
  if (stream != nullptr) DestroyStream(stream);
  *error = "the device makes no stream: " + failure;
  return nullptr;
}

extern "C" __attribute__((visibility("default"))) Gpu* OUTRIDER_OPEN_GPU(
    int index, std::string* error) {
  return OpenGpu(index, error);
}

}  // namespace outrider::kernels::cuda
