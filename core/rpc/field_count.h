// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_FIELD_COUNT_H_
#define OUTRIDER_CORE_RPC_FIELD_COUNT_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

namespace outrider {

// What a message's bytes have in them. A field of two bytes may become an
// object of 32, whose making takes a hundred times as long as reading these:
// so fields are counted before any is made.
struct FieldCount {
  int num_fields = 0;        // with those of messages within; packed ones are 1
  bool has_unknown = false;  // such as this program has no names for
  // The count ended where the bytes turned out to be no message of the type.
  // They are not for a parser, which may read on for long before it refuses.
  bool is_malformed = false;
};

// Counts to no more than one above `most`. What is not malformed may be no
// message yet, as a text that is no UTF-8: a parser tells. Of such it makes no
// more fields than were counted.
FieldCount CountFields(google::protobuf::io::ZeroCopyInputStream& bytes,
                       const google::protobuf::Descriptor& type, int most);

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_FIELD_COUNT_H_
