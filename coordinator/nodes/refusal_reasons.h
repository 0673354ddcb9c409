// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_REFUSAL_REASONS_H_
#define OUTRIDER_COORDINATOR_NODES_REFUSAL_REASONS_H_

namespace outrider {

// The reasons (core/base/error_reason.h) by which a client of a coordinator
// tells failures of one code apart, besides INVALID_VALUE and POISON. Words are
// for people: they may change, and these may not. docs/README.md lists them.

// INVALID_ARGUMENT: the prompt has no room in the model's context. Metadata:
// `context_length`, and `num_tokens` or, where not all were counted,
// `least_num_tokens`.
inline constexpr char kContextLengthExceededReason[] =
    "CONTEXT_LENGTH_EXCEEDED";
// FAILED_PRECONDITION: the text is longer than the verifiers that are ready
// have memory for.
inline constexpr char kOutOfKvMemoryReason[] = "OUT_OF_KV_MEMORY";
// FAILED_PRECONDITION: no verifier here has the model of the stream.
inline constexpr char kModelNotServedReason[] = "MODEL_NOT_SERVED";
// FAILED_PRECONDITION: the verifier does not serve what the request has in
// `field` of the metadata.
inline constexpr char kNotServedReason[] = "NOT_SERVED";
// FAILED_PRECONDITION: the verifier does not serve what this coordinator's own
// flags ask for.
inline constexpr char kCoordinatorFlagsReason[] = "COORDINATOR_FLAGS";
// FAILED_PRECONDITION: a message to or from a node is larger than its receiver
// accepts.
inline constexpr char kMessageTooLargeReason[] = "MESSAGE_TOO_LARGE";

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_REFUSAL_REASONS_H_
