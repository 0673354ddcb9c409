// SPDX-License-Identifier: Apache-2.0
#include "core/node/node_flags.h"

#include <CLI/CLI.hpp>

#include "core/base/available_cores.h"
#include "core/base/flag_checks.h"
#include "core/node/kv_memory.h"

namespace outrider {
namespace {

// The longest pass of a GPU takes some hundredths of that.
constexpr std::chrono::seconds kMostPass(300);

void AddModelFlags(CLI::App& app, NodeFlags& flags) {
  app.option_defaults()->group("Model");
  app.add_option("--model", flags.model,
                 "Hugging Face model directory: config.json, *.safetensors, "
                 "tokenizer.json; needed without --simulate")
      ->type_name("DIR");
  app.add_option("--expect-weights", flags.expected_weights,
                 "SHA-256 of the weights, as a node logs it at its start: end "
                 "at once where --model has others; may be repeated")
      ->type_name("HASH")
      ->check(&WhyNoHash);
  app.add_option("--device", flags.device, "cpu, cuda or cuda:N")
      ->capture_default_str();
  app.add_option("--dtype", flags.dtype,
                 "float32, bfloat16, float16, or auto: bfloat16 where the "
                 "checkpoint has it, else float32, which loses nothing of a "
                 "float16; on a GPU, which has no float32, that of the "
                 "checkpoint")
      ->check(OneOf({"auto", "float32", "bfloat16", "float16"}))
      ->capture_default_str();
  app.add_option(
         "--kernels", flags.kernels,
         "a CPU's instructions, which the last bits of logits follow: "
         "portable, avx2, avx512, avx512_bf16, amx_bf16 (the name that "
         "Describe reports, for a pool of unlike machines), auto: the "
         "fastest by a measurement at start, or aten: torch's own, as a "
         "reference, on one thread whatever --threads says")
      ->check(OneOf({"auto", "portable", "avx2", "avx512", "avx512_bf16",
                     "amx_bf16", "aten"}))
      ->capture_default_str();
  app.add_option(
         "--threads", flags.threads,
         "threads of a pass; 0: the cores that this process may use, which "
         "is right for one node a machine; two share them by halves")
      ->check(WholeNumberIn(0, 1024))
      ->capture_default_str();
}

void AddSessionFlags(CLI::App& app, NodeFlags& flags) {
  app.option_defaults()->group("Sessions");
  app.add_option("--max-draft-tokens", flags.max_draft_tokens,
                 "most draft tokens of a request")
      ->check(WholeNumberIn(0, 1024))
      ->capture_default_str();
  app.add_option("--kv-cache-memory", flags.kv_cache_memory,
                 "keys and values of all sessions: bytes like 4GiB, a share "
                 "like 80% of what the device has left, or auto: half of that "
                 "on a CPU, 90% on a GPU, where graphs come first. A token "
                 "takes 2 x layers x KV heads x "
                 "head size x bytes of the dtype; docs/sizing.md has more")
      ->check([](const std::string& text) {
        const auto memory = ParseKvMemory(text);
        return memory.ok() ? std::string()
                           : std::string(memory.status().message());
      })
      ->capture_default_str();
  app.add_option("--prefix-cache", flags.prefix_cache,
                 "which sessions share what they begin with, cached once and "
                 "kept while memory allows: salted, those whose requests have "
                 "the same cache_salt; all, those without one too, where all "
                 "requests are one tenant's; off")
      ->check(OneOf({"salted", "all", "off"}))
      ->capture_default_str();
  app.add_option("--prefill-chunk", flags.scheduling.prefill_chunk,
                 "rows of a pass up to which prompts join the running "
                 "sessions. Where these leave too little, prompts have so many "
                 "rows more, or two thirds of theirs: in every second pass, or "
                 "in each for a stream that has begun")
      ->check(WholeNumberIn(16, 1 << 16))
      ->capture_default_str();
  app.add_option("--max-queue-length", flags.scheduling.max_queue_length,
                 "calls that may wait or be served before openings are told to "
                 "come later")
      ->check(WholeNumberIn(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--max-sessions", flags.scheduling.sessions.max_sessions,
                 "sessions kept; further ones are told to try again later")
      ->check(WholeNumberIn(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--lease-seconds", flags.lease_seconds,
                 "a session that had no call for this long is forgotten")
      ->check(WholeNumberIn(1, 86400))
      ->capture_default_str();
  app.add_option("--max-pass-seconds", flags.max_pass_seconds,
                 "a pass that takes longer hangs: the node turns NOT_SERVING "
                 "and its process ends; 0: 300 on a GPU, any time on a CPU")
      ->check(WholeNumberIn(0, 86400))
      ->capture_default_str();
}

}  // namespace

int NodeFlags::NumThreads() const {
  return threads > 0 ? threads : AvailableCores();
}

std::chrono::seconds NodeFlags::MaxPass() const {
  if (max_pass_seconds > 0) return std::chrono::seconds(max_pass_seconds);
  return device == "cpu" ? std::chrono::seconds(0) : kMostPass;
}

int64_t NodeFlags::MaxCalls() const {
  // Beside what waits to be opened, each session has a call and one more, which
  // takes its place.
  return int64_t{scheduling.max_queue_length} +
         2 * int64_t{scheduling.sessions.max_sessions};
}

CheckpointOptions NodeFlags::Checkpoint() const {
  return {.model_directory = model,
          .device = device,
          .dtype = dtype,
          .kernels = kernels,
          .num_threads = NumThreads()};
}

void AddNodeFlags(CLI::App& app, NodeFlags& flags) {
  AddModelFlags(app, flags);
  flags.server.rpc.is_node = true;
  AddServerFlags(app, flags.server);
  AddSessionFlags(app, flags);
  app.option_defaults()->group("Instead of serving");
  CLI::Option* const measure = app.add_flag(
      "--measure", flags.measure,
      "serve nothing: time the model inside this process and print");
  app.add_flag("--json", flags.json, "with --measure: print JSON")
      ->needs(measure);
  AddSimulationFlags(app, app.get_option("--model"), flags.simulation);
}

}  // namespace outrider
