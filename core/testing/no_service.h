// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_NO_SERVICE_H_
#define OUTRIDER_CORE_TESTING_NO_SERVICE_H_

#include <vector>

#include "core/rpc/rpc_service.h"

namespace outrider::testing {

// A server that has this has nothing but what all servers have.
class NoService final : public RpcService {
 public:
  std::vector<RpcMethod> Methods() override { return {}; }
};

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_NO_SERVICE_H_
