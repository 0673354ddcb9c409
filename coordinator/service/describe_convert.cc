// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/describe_convert.h"

namespace outrider {

v1::GenerationServiceDescribeResponse ToProto(const NodePool::Overview& nodes) {
  v1::GenerationServiceDescribeResponse response;
  for (const NodeDescription& node : nodes.verifiers) {
    *response.add_verifiers() = ToProto(node);
  }
  for (const NodeDescription& node : nodes.drafters) {
    *response.add_drafters() = ToProto(node);
  }
  for (const std::string& problem : nodes.refused_verifiers) {
    response.add_refused_verifiers(problem);
  }
  for (const std::string& problem : nodes.refused_drafters) {
    response.add_refused_drafters(problem);
  }
  return response;
}

}  // namespace outrider
