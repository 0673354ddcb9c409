// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/field_count.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>

namespace outrider {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::CodedInputStream;
using Wire = google::protobuf::internal::WireFormatLite;

// A parser keeps as unknown what has a known number and the wrong wire type.
bool IsKnown(const FieldDescriptor* field, Wire::WireType wire) {
  if (field == nullptr) return false;
  if (wire == Wire::WIRETYPE_LENGTH_DELIMITED && field->is_packable()) {
    return true;
  }
  return wire == Wire::WireTypeForFieldType(
                     static_cast<Wire::FieldType>(field->type()));
}

class Counter {
 public:
  Counter(google::protobuf::io::ZeroCopyInputStream& bytes, int most)
      : input_(&bytes), most_(most) {}

  FieldCount Count(const Descriptor& type) {
    const bool is_over = !CountMessage(type);
    count_.is_malformed = is_over && count_.num_fields <= most_;
    return count_;
  }

 private:
  // False: the count is over, as there are too many or they are malformed.
  bool CountMessage(const Descriptor& type) {
    // Proto3 has no groups. What is in them is unknown, whatever its number.
    int num_groups = 0;
    while (const uint32_t tag = input_.ReadTag()) {
      if (++count_.num_fields > most_) return false;
      const Wire::WireType wire = Wire::GetTagWireType(tag);
      if (wire == Wire::WIRETYPE_END_GROUP) {
        if (--num_groups < 0) return false;
        continue;
      }
      const FieldDescriptor* const field =
          num_groups > 0 ? nullptr
                         : type.FindFieldByNumber(Wire::GetTagFieldNumber(tag));
      const bool is_known = IsKnown(field, wire);
      if (!is_known) count_.has_unknown = true;
      if (wire == Wire::WIRETYPE_START_GROUP) {
        ++num_groups;
      } else if (is_known && field->message_type() != nullptr) {
        if (!CountWithin(*field->message_type())) return false;
      } else if (!Wire::SkipField(&input_, tag)) {
        return false;
      }
    }
    return num_groups == 0 && input_.ConsumedEntireMessage();
  }

  bool CountWithin(const Descriptor& type) {
    int length = 0;
    if (!input_.ReadVarintSizeAsInt(&length)) return false;
    // The parser reads to the end of the inner message, PushLimit to that of
    // the outer.
    const int left = input_.BytesUntilLimit();
    if (left >= 0 && length > left) return false;
    const auto [limit, depth_left] =
        input_.IncrementRecursionDepthAndPushLimit(length);
    return depth_left >= 0 && CountMessage(type) &&
           input_.DecrementRecursionDepthAndPopLimit(limit);
  }

  CodedInputStream input_;
  const int most_;
  FieldCount count_;
};

}  // namespace

FieldCount CountFields(google::protobuf::io::ZeroCopyInputStream& bytes,
                       const Descriptor& type, int most) {
  return Counter(bytes, most).Count(type);
}

}  // namespace outrider
