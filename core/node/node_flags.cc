// SPDX-License-Identifier: Apache-2.0
#include "core/node/node_flags.h"

namespace outrider {

void AddNodeFlags(CLI::App& app, NodeFlags& flags) {
  app.option_defaults()->group("Model");
  CLI::Option* const model = app.add_option(
      "--model", flags.model,
      "Hugging Face model directory: config.json, *.safetensors, "
      "tokenizer.json; needed without --simulate");
  model->type_name("DIR");
  app.add_option("--device", flags.device, "cpu, cuda or cuda:N")
      ->capture_default_str();
  app.add_option("--dtype", flags.dtype,
                 "float32, bfloat16, or auto: bfloat16 where the checkpoint "
                 "has it and the device computes with it; else float32, "
                 "which loses nothing of a float16")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16"}))
      ->capture_default_str();
  flags.server.rpc.is_node = true;
  AddServerFlags(app, flags.server);
  app.option_defaults()->group("Sessions");
  app.add_option("--max-draft-tokens", flags.max_draft_tokens,
                 "most draft tokens of a request")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--max-sessions", flags.sessions.max_sessions,
                 "caches kept; beyond, the longest idle one is evicted")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--max-cached-tokens", flags.sessions.max_cached_tokens,
                 "tokens cached over all sessions; 0: as many as fit")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app.add_option("--lease-seconds", flags.lease_seconds,
                 "a cache that nobody used for this long is freed")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_option("--max-queue-length", flags.max_queue_length,
                 "calls that may wait for the model; others are told to come "
                 "later")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.option_defaults()->group("Instead of serving");
  app.add_flag("--measure", flags.measure,
               "serve nothing: time the model inside this process and print");
  app.add_flag("--json", flags.json, "with --measure: print JSON");
  AddSimulationFlags(app, model, flags.simulation);
}

}  // namespace outrider
