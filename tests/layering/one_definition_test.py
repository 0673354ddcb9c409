#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No type and no function of ours is defined twice under one name; the rule is seen to fire."""
import pathlib
import unittest

import include_rules
import one_definition

ROOT = pathlib.Path(__file__).resolve().parents[2]


class RepositoryTest(unittest.TestCase):
    def test_defines_nothing_twice(self):
        files = {path: (ROOT / path).read_text("utf-8") for path in include_rules.source_paths(ROOT)}
        violations = list(one_definition.check_files(files))
        self.assertEqual("\n".join(map(str, violations)), "")

    def test_its_definitions_are_found(self):
        text = (ROOT / "core/json/json_fields.h").read_text("utf-8")
        names = [d.name for d in one_definition.definitions("x.h", text)]
        self.assertEqual(names, ["outrider::JsonFields"])


class PlantedFilesTest(unittest.TestCase):
    def found(self, *bodies):
        """The names that are defined twice where each body is a file of its own."""
        files = {f"{i}.h": f"namespace outrider {{\n{body}\n}}\n" for i, body in enumerate(bodies)}
        return [v.text.split("`")[1].removeprefix("outrider::") for v in one_definition.check_files(files)]

    def test_two_types_of_one_name_are_found(self):
        # Once core/model/json_fields.h and core/tokenizer/json_fields.h did so.
        for first, second in (("class A { int x_; };", "class A {\n public:\n  A();\n};"),
                              ("class A {};", "struct A final : public B { int x = {}; };"),
                              ("enum class A { kOne };", "class A {};"),
                              ("template <typename T> class A {};", "template <int N> struct A {};")):
            self.assertEqual(self.found(first, second), ["A"], second)

    def test_two_functions_of_one_name_and_the_same_parameters_are_found(self):
        self.assertEqual(self.found("inline int F(int a) { return a; }", "int F(int a) { return -a; }"), ["F( int a )"])
        self.assertEqual(self.found("void A::F() const {}", "void A::F() const { G({1}); }"), ["A::F( ) const"])
        member = "template <typename T> void A<T>::F() {}"
        self.assertEqual(self.found(member, member), ["A<T>::F( )"])

    def test_what_stays_in_its_file_is_not(self):
        for body in ("namespace { class A {}; }", "static int F() { return 1; }", "constexpr int kA[] = {1};",
                     "class A;", "int F(int a = int{});", "// class A {};", 'const char* const kA = "class A {};";',
                     "struct B%d { class A {}; };"):
            bodies = [body % i if "%" in body else body for i in range(2)]
            self.assertEqual(self.found(*bodies), [], body)

    def test_overloads_and_other_namespaces_are_not(self):
        self.assertEqual(self.found("void F(int a) {}", "void F(long a) {}"), [])
        self.assertEqual(self.found("void A::F() {}", "void A::F() const {}"), [])
        self.assertEqual(self.found("template <typename T> void A<T>::F() {}", "void B<int, C<T>>::F() {}"), [])
        self.assertEqual(self.found("namespace bench { class A {}; }", "class A {};"), [])
        self.assertEqual(self.found("A::A(int b) : b_(b), c_{b} {}", "A::~A() {}"), [])


if __name__ == "__main__":
    unittest.main()
