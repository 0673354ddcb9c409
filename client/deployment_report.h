// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_DEPLOYMENT_REPORT_H_
#define OUTRIDER_CLIENT_DEPLOYMENT_REPORT_H_

#include <string>

#include "client/generation_client.h"

namespace outrider::client {

// A line a node, in columns, then what else there is to know. Where that is
// more than `width` columns, each node has a block of lines in place of one,
// and what is longer is wrapped; 0: any width.
std::string ToText(const Deployment& deployment, size_t width = 0);

// One JSON object, on one line: `verifiers` and `drafters`, with what each says
// of itself and has done (`activity`, or null), `refused_verifiers`,
// `refused_drafters`, `has_tokenizer`.
std::string ToJson(const Deployment& deployment);

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_DEPLOYMENT_REPORT_H_
