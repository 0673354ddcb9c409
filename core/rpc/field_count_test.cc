// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/field_count.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <initializer_list>
#include <string>

#include "gmock/gmock.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

// Field 1 is a number, 2 a text, and 3 are messages of two texts each.
using Counted = google::rpc::Status;

FieldCount CountOf(const std::string& bytes, int most = 100) {
  google::protobuf::io::ArrayInputStream stream(
      bytes.data(), static_cast<int>(bytes.size()), /*block_size=*/3);
  return CountFields(stream, *Counted::descriptor(), most);
}

void ExpectCount(const std::string& bytes, int num_fields, bool has_unknown) {
  const FieldCount count = CountOf(bytes);
  EXPECT_EQ(count.num_fields, num_fields);
  EXPECT_EQ(count.has_unknown, has_unknown);
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
}

TEST(FieldCountTest, BytesThatAreNoMessageEndTheCount) {
  EXPECT_LE(CountOf(Bytes({0xff, 0xff, 0xff, 0xff})).num_fields, 1);
  EXPECT_LE(CountOf(Bytes({0x1a, 0x7f})).num_fields, 1);
  EXPECT_LE(CountOf(Bytes({0x0c, 0x08})).num_fields, 1);  // ends no group
  EXPECT_LE(CountOf(Bytes({0, 0, 0, 0, 0, 0})).num_fields, 1);
}

}  // namespace
}  // namespace outrider
