# SPDX-License-Identifier: Apache-2.0
"""The rules on .proto files, read from the descriptor set that protoc makes of them.

Descriptors are messages themselves; the few fields needed are decoded here, as
Python's protobuf package is not among what the build installs. Field numbers
are those of google/protobuf/descriptor.proto.
"""
import os
import re
import subprocess
import tempfile
from typing import NamedTuple

from violation import Violation

REPEATED = 3  # FieldDescriptorProto.Label
FIXED32, INTEGERS = 7, (3, 4, 5, 6, 7, 13, 15, 16, 17, 18)  # FieldDescriptorProto.Type
TIME_UNIT = re.compile(r".*_(ns|us|ms|nanos|micros|millis|seconds)$")


def check_tree(proto_root):
    """All violations in the .proto files below `proto_root`, the import root.

    Not in google/ and grpc/: names and numbers there are others'.
    """
    paths = sorted(p.relative_to(proto_root).as_posix() for p in proto_root.rglob("*.proto"))
    paths = [path for path in paths if not path.startswith(("google/", "grpc/"))]
    if not paths:
        return []
    files = [File(decode(data)) for data in decode(describe(proto_root, paths))[1]]
    violations = [v for file in files for v in check_file(file)]
    return sorted(violations + check_rpc_messages(files))


def describe(proto_root, paths):
    """A serialised FileDescriptorSet, comments included."""
    protoc = os.environ.get("PROTOC", "protoc")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "set")
        run = subprocess.run([protoc, "-I", proto_root, "--include_source_info",
                              f"--descriptor_set_out={out}", *paths],
                             cwd=proto_root, capture_output=True, text=True)
        if run.returncode != 0:
            raise RuntimeError(f"{protoc} refused the files:\n{run.stderr}")
        with open(out, "rb") as file:
            return file.read()


# ---- the wire format, as far as descriptors use it

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


class Fields(dict):
    """Field number → values in their order, varints as int and the rest as bytes."""

    def __missing__(self, number):
        return []

    def text(self, number):
        return self[number][0].decode() if self[number] else ""

    def number(self, number):
        return self[number][0] if self[number] else 0


def decode(data):
    fields, at = Fields(), 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            value, at = varint(data, at)
        elif wire_type == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            size = {1: 8, 5: 4}[wire_type]
            value, at = data[at:at + size], at + size
        fields.setdefault(number, []).append(value)
    return fields


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return tuple(values)


# ---- what a file declares

class Item(NamedTuple):
    """One declaration: its kind, full name, descriptor, line and comment."""
    kind: str
    name: str
    fields: Fields
    line: int
    comment: str


class File:
    def __init__(self, fields):
        self.path, self.package = fields.text(1), fields.text(2)
        self.syntax = fields.text(12)
        self._places = {}
        for info in fields[9]:
            for data in decode(info)[1]:
                place = decode(data)
                at = packed(place[1][0]) if place[1] else ()
                span = packed(place[2][0])
                comment = (place.text(3) + place.text(4)).strip()
                self._places[at] = (span[0] + 1, comment)
        self.items = list(self._walk(fields))

    def line(self, at):
        return self._places.get(at, (1, ""))[0]

    def _item(self, kind, name, fields, at):
        return Item(kind, name, fields, *self._places.get(at, (1, "")))

    def _walk(self, fields):
        for i, data in enumerate(fields[4]):
            yield from self._walk_message(decode(data), (4, i), "")
        for i, data in enumerate(fields[5]):
            yield from self._walk_enum(decode(data), (5, i), "")
        for i, data in enumerate(fields[6]):
            service = decode(data)
            yield self._item("service", service.text(1), service, (6, i))
            for j, method in enumerate(service[2]):
                method = decode(method)
                yield self._item("rpc", f"{service.text(1)}.{method.text(1)}", method, (6, i, 2, j))

    def _walk_message(self, message, at, scope):
        if message[7] and decode(message[7][0]).number(7):
            return  # the entry type of a map, which nobody wrote
        name = scope + message.text(1)
        yield self._item("message", name, message, at)
        for i, data in enumerate(message[2]):
            field = decode(data)
            yield self._item("field", f"{name}.{field.text(1)}", field, (*at, 2, i))
        for i, data in enumerate(message[3]):
            yield from self._walk_message(decode(data), (*at, 3, i), name + ".")
        for i, data in enumerate(message[4]):
            yield from self._walk_enum(decode(data), (*at, 4, i), name + ".")

    def _walk_enum(self, enum, at, scope):
        name = scope + enum.text(1)
        yield self._item("enum", name, enum, at)
        for i, data in enumerate(enum[2]):
            value = decode(data)
            yield self._item("enum value", f"{name}.{value.text(1)}", value, (*at, 2, i))


# ---- the rules

def check_file(file):
    folder = file.path.rpartition("/")[0]
    if file.package != folder.replace("/", ".") or not re.fullmatch(r"outrider\.v\d+", file.package):
        yield Violation(file.path, file.line((2,)), "package",
                        f"package `{file.package}` in folder `{folder}`; outrider.v1 is in outrider/v1")
    if file.syntax != "proto3":
        yield Violation(file.path, 1, "syntax", "the syntax is not proto3")
    for item in file.items:
        if not item.comment:
            yield Violation(file.path, item.line, "comment", f"{item.kind} `{item.name}` has no comment")
        for rule, text in check_item(item):
            yield Violation(file.path, item.line, rule, text)


def check_item(item):
    """(rule, text) for each rule that one declaration breaks by itself."""
    if item.kind == "service" and not item.name.endswith("Service"):
        yield "service", f"service `{item.name}` does not end in Service"
    elif item.kind == "enum":
        name = item.fields.text(1)
        prefix = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper() + "_"
        values = [decode(data) for data in item.fields[2]]
        if values[0].number(2) != 0 or values[0].text(1) != prefix + "UNSPECIFIED":
            yield "enum-zero", f"enum `{name}` does not start at {prefix}UNSPECIFIED = 0"
        for value in values:
            if not value.text(1).startswith(prefix):
                yield "enum-prefix", f"enum value `{value.text(1)}` does not start with {prefix}"
    elif item.kind == "field":
        yield from check_field(item.fields)


def check_field(field):
    name, label, kind = field.text(1), field.number(4), field.number(5)
    if label == REPEATED and not name.endswith("s"):
        yield "plural", f"repeated field `{name}` is not a plural"
    if kind in INTEGERS and TIME_UNIT.match(name):
        yield "duration", f"`{name}` is an integer of a time unit; google.protobuf.Duration says it"
    if label == REPEATED and kind in INTEGERS and name.endswith(("tokens", "token_ids")) and kind != FIXED32:
        yield "token-ids", f"`{name}`: token ids are repeated fixed32; a varint's size tells its value"


def check_rpc_messages(files):
    """Each RPC has request and response messages of its own, named after it.

    This is buf's RPC_REQUEST_STANDARD_NAME: the service's name comes before, where
    two services have a method of one name.
    """
    violations, users = [], {}
    for file in files:
        for rpc in (item for item in file.items if item.kind == "rpc"):
            service, method = rpc.name.split(".")
            for number, suffix in ((2, "Request"), (3, "Response")):
                message = rpc.fields.text(number).rpartition(".")[2]
                if message not in (method + suffix, service + method + suffix):
                    violations.append(Violation(file.path, rpc.line, "rpc-message",
                                                f"rpc `{rpc.name}` has `{message}`, not {method}{suffix}"))
                users.setdefault(message, []).append((file, rpc))
    for message, uses in users.items():
        for file, rpc in uses[1:]:
            violations.append(Violation(file.path, rpc.line, "rpc-message",
                                        f"rpc `{rpc.name}` shares `{message}` with `{uses[0][1].name}`"))
    return violations
