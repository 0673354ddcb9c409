// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "core/tokenizer/fingerprint.h"

namespace outrider {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json SmallFile() {
  return json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 4, "content": "<s>", "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "post_processor": {
      "type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                 {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]}}
    },
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "unk_token": "a",
              "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3},
              "merges": [["a", "b"]]}
  })");
}

// SmallFile with the value at `pointer` replaced.
absl::StatusOr<TokenizerSpec> With(const std::string& pointer,
                                   const std::string& value) {
  json file = SmallFile();
  file[json::json_pointer(pointer)] = json::parse(value);
  return ParseTokenizerJson(file.dump());
}

std::string ErrorWith(const std::string& pointer, const std::string& value) {
  return With(pointer, value).status().ToString();
}

// Says what is the matter, and does not only name it.
MATCHER(HasAVerb, "") {
  static const auto* const kVerbs = new absl::flat_hash_set<std::string>(
      {"is", "are", "has", "have", "occurs", "adds", "does", "must",
       "contradicts"});
  const std::vector<std::string> words = absl::StrSplit(arg, ' ');
  return absl::c_any_of(
      words, [](const auto& word) { return kVerbs->contains(word); });
}

TEST(TokenizerJsonTest, ReadsEveryPart) {
  const auto spec = ParseTokenizerJson(SmallFile().dump());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(spec->bpe.tokens, ElementsAre("a", "b", "ab", "c"));
  ASSERT_EQ(spec->bpe.merges.size(), 1u);
  EXPECT_EQ(spec->bpe.merges[0].merged, 2);
  EXPECT_EQ(spec->bpe.unknown, 0);
  ASSERT_EQ(spec->added_tokens.size(), 1u);
  EXPECT_TRUE(spec->added_tokens[0].special);
  EXPECT_FALSE(spec->added_tokens[0].normalized);
  EXPECT_THAT(spec->prefix, ElementsAre(4));
  EXPECT_THAT(spec->suffix, ElementsAre());
  EXPECT_EQ(spec->pretokenizer.pattern, SplitPattern::kGpt2);
}

TEST(TokenizerJsonTest, TheSpellingOfAFileDoesNotChangeItsFingerprint) {
  const std::string fingerprint =
      FingerprintOf(ParseTokenizerJson(SmallFile().dump()).value());
  EXPECT_EQ(FingerprintOf(ParseTokenizerJson(SmallFile().dump(2)).value()),
            fingerprint);
  EXPECT_EQ(FingerprintOf(With("/model/merges", R"(["a b"])").value()),
            fingerprint);
  EXPECT_EQ(FingerprintOf(
                With("/model/merges", R"(["#version: 0.2", "a b"])").value()),
            fingerprint);
  EXPECT_EQ(FingerprintOf(With("/version", R"("2.0")").value()), fingerprint);
  EXPECT_EQ(FingerprintOf(With("/model/dropout", "0.0").value()), fingerprint);
  EXPECT_NE(FingerprintOf(With("/model/fuse_unk", "true").value()),
            fingerprint);
}

TEST(TokenizerJsonTest, WhatIsNotKnownIsRefusedByName) {
  const std::vector<std::vector<std::string>> cases = {
      {"/model/type", R"("Unigram")", "Unigram"},
      {"/model/dropout", "0.1", "dropout"},
      {"/model/end_of_word_suffix", R"("</w>")", "end_of_word_suffix"},
      {"/model/novelty", "1", "novelty"},
      {"/novelty", "1", "novelty"},
      {"/truncation", "{}", "truncation"},
      {"/padding", "{}", "padding"},
      {"/model/byte_fallback", "true", "byte_fallback"},
      {"/normalizer", R"({"type":"Lowercase"})", "Lowercase"},
      {"/normalizer", R"({"type":"NFC","x":1})", "'x'"},
      {"/normalizer",
       R"({"type":"Replace","pattern":{"Regex":"a"},"content":""})", "Regex"},
      {"/normalizer",
       R"({"type":"Sequence","normalizers":[
           {"type":"Replace","pattern":{"String":"a"},"content":"aaaaa"},
           {"type":"Replace","pattern":{"String":"a"},"content":"aaaa"}]})",
       "20 times as long"},
      {"/normalizer",
       R"({"type":"Sequence","normalizers":[
           {"type":"Prepend","prepend":"a"},{"type":"Prepend","prepend":"a"},
           {"type":"Prepend","prepend":"a"},{"type":"Prepend","prepend":"a"},
           {"type":"Prepend","prepend":"a"},{"type":"Prepend","prepend":"a"},
           {"type":"Prepend","prepend":"a"},{"type":"Prepend","prepend":"a"},
           {"type":"Prepend","prepend":"a"}]})",
       "8 steps"},
      {"/pre_tokenizer", R"({"type":"Whitespace"})", "Whitespace"},
      {"/pre_tokenizer",
       R"({"type":"Split","pattern":{"Regex":"a"},"behavior":"Isolated"})",
       "Split"},
      {"/pre_tokenizer",
       R"({"type":"Sequence","pretokenizers":[{"type":"Punctuation"},
           {"type":"ByteLevel"}]})",
       "Punctuation before another part"},
      {"/pre_tokenizer",
       R"({"type":"Sequence","pretokenizers":[
           {"type":"Digits","individual_digits":true},
           {"type":"ByteLevel","add_prefix_space":true}]})",
       "Digits before anything but ByteLevel without add_prefix_space"},
      {"/pre_tokenizer",
       R"({"type":"Sequence","pretokenizers":[
           {"type":"Digits","individual_digits":true},
           {"type":"Metaspace","replacement":"_","prepend_scheme":"never"}]})",
       "Digits before anything but ByteLevel"},
      {"/pre_tokenizer",
       R"({"type":"Sequence","pretokenizers":[
           {"type":"Digits","individual_digits":true,"x":1},
           {"type":"ByteLevel","add_prefix_space":false}]})",
       "'x'"},
      {"/pre_tokenizer",
       R"({"type":"Sequence","pretokenizers":[
           {"type":"Split","behavior":"Isolated","pattern":{"Regex":)"
       R"("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|)"
       R"( ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"}},
           {"type":"Sequence","pretokenizers":[
            {"type":"Digits","individual_digits":true},
            {"type":"ByteLevel","add_prefix_space":false,
             "use_regex":false}]}]})",
       "a Split before anything but ByteLevel"},
      {"/pre_tokenizer",
       R"({"type":"Sequence","pretokenizers":[{"type":"Split",
           "pattern":{"Regex":"(a|a)*b"},"behavior":"Isolated"},
           {"type":"ByteLevel"}]})",
       "(a|a)*b"},
      {"/pre_tokenizer",
       R"({"type":"Sequence","pretokenizers":[{"type":"Split",
           "pattern":{"Regex":"a"},"behavior":"Removed"},
           {"type":"ByteLevel"}]})",
       "Removed"},
      {"/pre_tokenizer",
       R"({"type":"Metaspace","replacement":"_","prepend_scheme":"x"})", "'x'"},
      {"/post_processor", R"({"type":"RobertaProcessing"})", "Roberta"},
      {"/post_processor/single",
       R"([{"Sequence":{"id":"A"}},{"Sequence":{"id":"B"}}])", "sequence"},
      {"/decoder", R"({"type":"WordPiece"})", "WordPiece"},
      {"/decoder", R"({"type":"Sequence","decoders":[{"type":"CTC"}]})", "CTC"},
      {"/decoder",
       R"({"type":"Sequence","decoders":[{"type":"Fuse"},
           {"type":"ByteFallback"}]})",
       "order"},
      {"/decoder",
       R"({"type":"Sequence","decoders":[{"type":"Strip","content":" ",
           "start":1,"stop":0}]})",
       "order"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ErrorWith(c[0], c[1]),
                ::testing::AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr(c[2]),
                                 HasAVerb()));
  }
}

TEST(TokenizerJsonTest, WhatIsDamagedIsInvalid) {
  const std::vector<std::vector<std::string>> cases = {
      {"/model", "null"},
      {"/model", "[]"},
      {"/model/vocab", "null"},
      {"/model/vocab/a", "-1"},
      {"/model/vocab/a", "1"},        // the id of b
      {"/model/vocab/a", "4194304"},  // no vocabulary is so large
      {"/model/vocab/a", "0.5"},
      {"/model/merges", "{}"},
      {"/model/merges", R"(["a"])"},
      {"/model/merges", R"(["a b c"])"},
      {"/model/merges", R"([["a"]])"},
      {"/model/merges", R"([["a", 1]])"},
      {"/model/merges", R"([["a", "x"]])"},
      {"/model/merges", R"([["b", "a"]])"},  // "ba" is not a token
      {"/model/unk_token", R"("x")"},
      {"/model/fuse_unk", "1"},
      {"/added_tokens", "{}"},
      {"/added_tokens/0", "1"},
      {"/added_tokens/0/id", "5"},            // a hole
      {"/added_tokens/0/id", "3"},            // the id of c
      {"/added_tokens/0/content", R"("c")"},  // whose id is 3
      {"/added_tokens/1", R"({"id": 5, "content": "<s>"})"},
      {"/post_processor/special_tokens", "{}"},
      {"/post_processor/special_tokens/<s>/ids", "[99]"},
      {"/post_processor/single", "[]"},
      {"/decoder", "null"},
      {"/normalizer", R"({"type":"Replace","pattern":{"String":""},
                          "content":""})"},
      {"/pre_tokenizer",
       R"({"type":"Sequence","pretokenizers":[{"type":"Digits"},
           {"type":"ByteLevel","add_prefix_space":false}]})"},
      {"/pre_tokenizer", R"({"type":"Metaspace","replacement":"ab"})"},
      {"/pre_tokenizer", R"({"type":"Metaspace","replacement":""})"},
      {"/pre_tokenizer",
       R"({"type":"Metaspace","replacement":"_","add_prefix_space":false})"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ErrorWith(c[0], c[1]),
                ::testing::AllOf(HasSubstr("INVALID_ARGUMENT"), HasAVerb()))
        << c[0] << " " << c[1];
  }
}

// SmolLM2's own spelling, and the other kind of Digits.
TEST(TokenizerJsonTest, DigitsMayBeCutOffBeforeAByteLevelPattern) {
  for (const bool individual : {true, false}) {
    const json parts = {{{"type", "Digits"}, {"individual_digits", individual}},
                        {{"type", "ByteLevel"},
                         {"add_prefix_space", false},
                         {"trim_offsets", true},
                         {"use_regex", true}}};
    const auto spec =
        With("/pre_tokenizer",
             json{{"type", "Sequence"}, {"pretokenizers", parts}}.dump());
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->pretokenizer.kind, PretokenizerSpec::Kind::kByteLevel);
    EXPECT_EQ(spec->pretokenizer.pattern, SplitPattern::kGpt2);
    EXPECT_EQ(spec->pretokenizer.digits,
              individual ? Digits::kEachAlone : Digits::kRunsAlone);
  }
}

TEST(TokenizerJsonTest, HolesInTheVocabularyAreAllowed) {
  json file = SmallFile();
  file["model"]["vocab"]["c"] = 9;
  file["added_tokens"] = json::array();
  file["post_processor"] = nullptr;
  const auto spec = ParseTokenizerJson(file.dump());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->bpe.tokens.size(), 10u);
  EXPECT_FALSE(spec->bpe.tokens[3].has_value());
}

TEST(TokenizerJsonTest, AddedTokensCountOnFromTheHighestAddedId) {
  json file = SmallFile();
  file["model"]["vocab"] = {{"a", 0}, {"b", 1}, {"ab", 2}, {"<s>", 9}};
  file["added_tokens"][0]["id"] = 9;
  file["added_tokens"].push_back({{"id", 10}, {"content", "<t>"}});
  file["post_processor"] = nullptr;
  EXPECT_TRUE(ParseTokenizerJson(file.dump()).ok());
  file["added_tokens"][1]["id"] = 4;
  EXPECT_FALSE(ParseTokenizerJson(file.dump()).ok());
}

// The reference would give an added token the id 4, which a token has.
TEST(TokenizerJsonTest, AnAddedTokenMayNotFallOnATokenAfterAHole) {
  json file = SmallFile();
  file["model"]["vocab"] = {{"a", 0}, {"b", 1}, {"ab", 2}, {"c", 4}};
  EXPECT_THAT(ParseTokenizerJson(file.dump()).status().ToString(),
              HasSubstr("INVALID_ARGUMENT"));
}

TEST(TokenizerJsonTest, TemplatesOfASequenceAreNested) {
  json file = SmallFile();
  const json bos = file["post_processor"];
  json both = bos;
  both["single"].push_back({{"SpecialToken", {{"id", "<s>"}}}});
  file["post_processor"] = {
      {"type", "Sequence"},
      {"processors", {json{{"type", "ByteLevel"}}, bos, both}}};
  const auto spec = ParseTokenizerJson(file.dump());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(spec->prefix, ElementsAre(4, 4));
  EXPECT_THAT(spec->suffix, ElementsAre(4));
}

}  // namespace
}  // namespace outrider
