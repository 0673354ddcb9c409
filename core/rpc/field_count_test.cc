// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/field_count.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <initializer_list>
#include <string>

#include "gmock/gmock.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "outrider/v1/verifier.pb.h"

namespace outrider {
namespace {

// Field 1 is a number, 2 a text, and 3 are messages of two texts each.
using Counted = google::rpc::Status;

template <typename Message = Counted>
FieldCount CountOf(const std::string& bytes, int most = 100) {
  google::protobuf::io::ArrayInputStream stream(
      bytes.data(), static_cast<int>(bytes.size()), /*block_size=*/3);
  return CountFields(stream, *Message::descriptor(), most);
}

void ExpectCount(const std::string& bytes, int num_fields, bool has_unknown) {
  const FieldCount count = CountOf(bytes);
  EXPECT_EQ(count.num_fields, num_fields);
  EXPECT_EQ(count.has_unknown, has_unknown);
  EXPECT_FALSE(count.is_malformed);
  // The parser has the same view of what is unknown.
  Counted message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  const size_t whole = message.ByteSizeLong();
  message.DiscardUnknownFields();
  EXPECT_EQ(message.ByteSizeLong() < whole, has_unknown);
}

TEST(FieldCountTest, FieldsOfMessagesWithinCountToo) {
  Counted message;
  ExpectCount(message.SerializeAsString(), 0, false);
  message.set_code(5);
  message.set_message("long enough to be cut");
  ExpectCount(message.SerializeAsString(), 2, false);
  message.add_details()->set_type_url("a");
  message.add_details()->set_type_url("bcdef");
  message.mutable_details(1)->set_value("long enough as well");
  message.add_details();
  ExpectCount(message.SerializeAsString(), 8, false);
}

std::string Bytes(std::initializer_list<int> bytes) {
  return std::string(bytes.begin(), bytes.end());
}

TEST(FieldCountTest, UnknownFieldsCountAndAreTold) {
  ExpectCount(Bytes({0x2a, 1, 'x'}), 1, true);           // no such number
  ExpectCount(Bytes({0x1a, 3, 0x2a, 1, 'x'}), 2, true);  // within a message
  ExpectCount(Bytes({0x10, 5}), 1, true);  // of another type than known
  ExpectCount(Bytes({0x0d, 1, 2, 3, 4}), 1, true);  // likewise
  ExpectCount(Bytes({0x18, 5}), 1, true);           // a number for a message
}

// What is within has numbers of what is known, and is no message for it.
TEST(FieldCountTest, AGroupIsUnknownWithAllThatIsInIt) {
  ExpectCount(Bytes({0x1b, 0x1a, 2, 0xff, 0xff, 0x1c}), 3, true);
  ExpectCount(Bytes({0x23, 0x1b, 0x08, 1, 0x1c, 0x24, 0x1a, 0}), 6, true);
}

TEST(FieldCountTest, NoMoreIsCountedThanIsAskedFor) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += Bytes({0x1a, 0});
  EXPECT_EQ(CountOf(bytes, 999).num_fields, 1000);
  EXPECT_EQ(CountOf(bytes, 1000).num_fields, 1000);
  EXPECT_EQ(CountOf(bytes, 10).num_fields, 11);
  const std::string within = Bytes({0x1a, 0xd0, 0x0f});
  EXPECT_EQ(CountOf(within + bytes, 10).num_fields, 11);
  EXPECT_FALSE(CountOf(within + bytes, 10).is_malformed);
}

void ExpectMalformed(std::initializer_list<int> bytes, int num_fields) {
  const FieldCount count = CountOf(Bytes(bytes));
  EXPECT_TRUE(count.is_malformed);
  EXPECT_EQ(count.num_fields, num_fields);
  EXPECT_FALSE(Counted().ParseFromString(Bytes(bytes)));
}

TEST(FieldCountTest, BytesThatAreNoMessageEndTheCount) {
  ExpectMalformed({0xff, 0xff, 0xff, 0xff}, 0);
  ExpectMalformed({0, 0, 0, 0, 0, 0}, 0);
  ExpectMalformed({0x12, 2, 'x'}, 1);           // cut off
  ExpectMalformed({0x12}, 1);                   // likewise
  ExpectMalformed({0x1a, 3, 0x0a, 2, 'x'}, 2);  // more than its message
  ExpectMalformed({0x1a, 1, 0, 0x08, 1}, 1);    // no tag
  ExpectMalformed({0x0c, 0x08, 1}, 1);          // ends no group
  ExpectMalformed({0x2b, 0x08, 1}, 2);          // a group without an end
  ExpectMalformed({0x1a, 1, 0x2b, 0x2c}, 2);    // likewise, in a message
  ExpectMalformed({0x0f, 0x08, 1}, 1);          // of no wire type
}

// The parser lets a message reach beyond the one around it, until it is over.
TEST(FieldCountTest, AMessageThatEndsAfterTheOneAroundItEndsTheCount) {
  // A header with the tag and the length of a cache delta, which comes then.
  std::string bytes = Bytes({0x0a, 5, 0x22, 0x83, 0x80, 0x80, 4, 0x0a, 1, 7});
  const std::string empty = Bytes({0x7a, 0});
  for (int i = 0; i < 4 << 20; ++i) bytes += empty;
  const FieldCount count = CountOf<v1::VerifyRequest>(bytes);
  EXPECT_TRUE(count.is_malformed);
  EXPECT_EQ(count.num_fields, 2);
}

}  // namespace
}  // namespace outrider
