#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The .proto files follow the project's rules; each rule is seen to fire. Needs protoc."""
import pathlib
import tempfile
import unittest

import proto_rules

ROOT = pathlib.Path(__file__).resolve().parents[2]

CLEAN = """syntax = "proto3";
package outrider.v1;

import "google/protobuf/duration.proto";

// Does things.
service ThingService {
  // Does one.
  rpc Do(DoRequest) returns (DoResponse);
}

// What to do.
message DoRequest {
  // Token ids.
  repeated fixed32 tokens = 1;
  google.protobuf.Duration compute_time = 2;  // On the node.
  // A map makes a message of its own.
  map<string, int64> counts = 3;
  // How.
  Mode mode = 4;
  // How it may be done.
  enum Mode {
    MODE_UNSPECIFIED = 0;  // Refused.
    MODE_FAST = 1;         // The only way.
  }
}

// What came of it.
message DoResponse {}
"""

OTHER_SERVICE = """// Does one thing as well.
service OtherService {
  // Does it.
  rpc Do(OtherServiceDoRequest) returns (OtherServiceDoResponse);
}
// What to do.
message OtherServiceDoRequest {}
// What came of it.
message OtherServiceDoResponse {}
"""


class RepositoryTest(unittest.TestCase):
    def test_breaks_no_rule(self):
        self.assertTrue(list((ROOT / "proto").rglob("*.proto")))
        violations = proto_rules.check_tree(ROOT / "proto")
        if violations:
            self.fail(f"{len(violations)} violation(s)\n" + "\n".join(map(str, violations)))


class PlantedProtoTest(unittest.TestCase):
    """Each case changes one thing of a clean file and says what must be found where."""

    def expect(self, *rules, at="", old="", new="", path="outrider/v1/thing.proto"):
        """Exactly these violations, all on the line that starts with `at`."""
        self.assertIn(old, CLEAN)
        text = CLEAN.replace(old, new, 1) if old else CLEAN
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True)
            file.write_text(text)
            found = proto_rules.check_tree(pathlib.Path(folder))
        self.assertEqual([v.rule for v in found], list(rules), found)
        for violation in found:
            line = text.splitlines()[violation.line - 1].strip()
            self.assertTrue(line.startswith(at), f"{violation}: found at `{line}`")

    def test_a_clean_file_passes(self):
        self.expect()

    def test_the_package_is_that_of_the_folder(self):
        self.expect("package", at="package", path="outrider/v2/thing.proto")
        self.expect("package", at="package", old="outrider.v1", new="outrider")

    def test_a_file_is_proto3(self):
        proto2 = (CLEAN.replace("proto3", "proto2").replace("  google.p", "  optional google.p")
                  .replace("  Mode", "  optional Mode"))
        self.expect("syntax", at="syntax", old=CLEAN, new=proto2)

    def test_a_service_ends_in_service(self):
        self.expect("service", at="service Thing", old="ThingService", new="Thing")

    def test_an_rpc_has_messages_named_after_it(self):
        self.expect("rpc-message", "rpc-message", at="rpc Undo", old="rpc Do(", new="rpc Undo(")

    def test_two_rpcs_do_not_share_a_message(self):
        other = OTHER_SERVICE.replace("OtherServiceDoRequest)", "DoRequest)")
        self.expect("rpc-message", at="rpc Do(DoRequest) returns (DoResponse)",
                    old="// Does things.\n", new=other + "// Does things.\n")

    def test_an_rpc_message_may_carry_the_name_of_its_service(self):
        self.expect(old="// Does things.\n", new=OTHER_SERVICE + "// Does things.\n")

    def test_an_enum_starts_at_unspecified(self):
        self.expect("enum-zero", at="enum Mode", old="MODE_UNSPECIFIED", new="MODE_NONE")

    def test_enum_values_carry_the_name_of_their_enum(self):
        self.expect("enum-prefix", at="enum Mode", old="MODE_FAST", new="FAST")

    def test_a_repeated_field_is_a_plural(self):
        self.expect("plural", at="repeated", old="tokens = 1", new="token = 1")

    def test_a_duration_is_no_integer(self):
        self.expect("duration", at="int64 compute_ms",
                    old="google.protobuf.Duration compute_time", new="int64 compute_ms")

    def test_token_ids_have_a_fixed_width(self):
        self.expect("token-ids", at="repeated uint32",
                    old="repeated fixed32", new="repeated uint32")

    def test_every_declaration_has_a_comment(self):
        for comment, at in (("// Does things.\n", "service"), ("  // Does one.\n", "rpc"),
                            ("// What to do.\n", "message DoRequest"), ("  // Token ids.\n", "repeated"),
                            ("  // On the node.", "google"), ("  // How.\n", "Mode mode"),
                            ("  // How it may be done.\n", "enum Mode"), ("  // Refused.", "MODE_UNSPECIFIED")):
            with self.subTest(comment=comment):
                self.expect("comment", at=at, old=comment)

    def test_a_violation_reads_as_file_line_rule(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "outrider/v1/a.proto"
            file.parent.mkdir(parents=True)
            file.write_text('syntax = "proto3";\npackage outrider.v1;\nmessage A {}\n')
            found = [str(v) for v in proto_rules.check_tree(pathlib.Path(folder))]
        self.assertEqual(found, ["outrider/v1/a.proto:3: [comment] message `A` has no comment"])


if __name__ == "__main__":
    unittest.main()
