// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_READ_ROPE_H_
#define OUTRIDER_CORE_MODEL_READ_ROPE_H_

#include "core/model/config_fields.h"
#include "core/model/model_config.h"

namespace outrider {

// rope_theta and rope_scaling of `config`, and under linear scaling and YaRN
// the context's length, which is max_position_embeddings until then.
// transformers 4 has rope_theta beside rope_scaling {"type" or "rope_type"};
// transformers 5 has both in rope_parameters. Problems are left in `fields`.
void ReadRope(ConfigFields& fields, ModelConfig& config);

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_READ_ROPE_H_
