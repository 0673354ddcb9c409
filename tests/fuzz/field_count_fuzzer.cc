// SPDX-License-Identifier: Apache-2.0
// A request's fields are counted before it is parsed: the parser may make no
// more of them, and none that the count has not told is unknown.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/unknown_field_set.h>

#include <vector>

#include "core/rpc/field_count.h"
#include "core/rpc/parse_message.h"
#include "outrider/v1/verifier.pb.h"
#include "tests/fuzz/fuzz_input.h"

namespace outrider::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::UnknownFieldSet;

struct Made {
  int num_fields = 0;
  int num_unknown = 0;  // of these
};

void CountUnknown(const UnknownFieldSet& unknown, Made& made) {
  made.num_fields += unknown.field_count();
  made.num_unknown += unknown.field_count();
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto& field = unknown.field(i);
    if (field.type() == google::protobuf::UnknownField::TYPE_GROUP) {
      CountUnknown(field.group(), made);
    }
  }
}

// What may come packed is left out.
void CountMade(const Message& message, Made& made) {
  const Reflection& reflection = *message.GetReflection();
  CountUnknown(reflection.GetUnknownFields(message), made);
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->is_packable()) continue;
    const int size =
        field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    made.num_fields += size;
    if (field->message_type() == nullptr) continue;
    for (int i = 0; i < size; ++i) {
      CountMade(field->is_repeated()
                    ? reflection.GetRepeatedMessage(message, field, i)
                    : reflection.GetMessage(message, field),
                made);
    }
  }
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;           // NOLINT: a program of one function
  using namespace outrider::testing;  // NOLINT
  google::protobuf::io::ArrayInputStream bytes(data, static_cast<int>(size),
                                               /*block_size=*/7);
  const FieldCount count =
      CountFields(bytes, *v1::VerifyRequest::descriptor(), kMostFields);
  OUTRIDER_CHECK(count.num_fields <= kMostFields + 1);
  if (count.num_fields > kMostFields) return 0;
  v1::VerifyRequest request;
  const bool is_parsed = request.ParseFromArray(data, static_cast<int>(size));
  if (count.is_malformed) {
    OUTRIDER_CHECK(!is_parsed);
    return 0;
  }
  // What the parser made before it refused counts too.
  Made made;
  CountMade(request, made);
  OUTRIDER_CHECK(made.num_fields <= count.num_fields);
  OUTRIDER_CHECK(made.num_unknown == 0 || count.has_unknown);
  return 0;
}
