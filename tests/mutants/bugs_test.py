#!/usr/bin/env python3
"""bugs_test.py - what bugs.py puts into a source, and what it refuses; where plant may copy to, and what run runs alone."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bugs  # noqa: E402

HERE = bugs.here

SOURCE = """// a.cpp
#include "a.hpp"
int f(int n, int m) {
  int sum = 0;
#pragma unroll 4
  for (int i = 0; i < n; ++i) sum += i;  // n terms
  for (int i = 0; i < m; ++i)
    sum +=  /* spread */ i * 2;
  return sum > 9 ? 9 : sum;
}
"""


def block(name, *lines, key="bug", file="a.cpp", needs="cpu"):
    return f"{key}: {name}\nwhat: something\nneeds: {needs}\nkilled by: test: case\nin: {file}\n" + "\n".join(lines) + "\n\n"


class Bugs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.put("a.cpp", SOURCE)
        here, bugs.here = bugs.here, self.folder.name
        self.addCleanup(setattr, bugs, "here", here)

    def put(self, name, text):
        with open(os.path.join(self.folder.name, name), "w") as file:
            file.write(text)

    def planted(self, text):
        self.put("all.bugs", text)
        return bugs.plant(bugs.read(), self.folder.name)["a.cpp"]

    def refused(self, text, *parts):
        with self.assertRaises(bugs.Wrong) as raised:
            self.planted(text)
        for part in parts:
            self.assertIn(part, str(raised.exception))

    def test_an_expression(self):
        text = self.planted(block("nine", "- return sum > 9 ? 9 : sum;", "+ return sum > (BUG ? 8 : 9) ? 9 : sum;"))
        self.assertIn('return sum > (LOCKSTEP_MUTANT("nine") ? 8 : 9) ? 9 : sum;', text)
        self.assertIn('#include "tests/mutants/mutant.hpp"\n#include "a.hpp"', text)

    def test_spaces_lines_and_comments_do_not_matter(self):
        text = self.planted(block("spread", "- for (int i = 0;", "-     i < m; ++i) sum += i * 2;", "+ for (int i = BUG ? 1 : 0; i < m; ++i) sum += i * 2;"))
        self.assertIn('LOCKSTEP_MUTANT("spread") ? 1 : 0', text)
        self.assertIn("/* spread */", text)

    def test_an_insertion_and_device_code(self):
        self.assertIn('int sum = 0; if (LOCKSTEP_DEVICE_MUTANT("early")) return 0;\n', self.planted(block("early", "  int sum = 0;", "+ if (DEVICE_BUG) return 0;")))

    def test_behind_a_directive(self):
        text = self.planted(block("none", "  #pragma unroll 4", "+ if (!BUG)", "  for (int i = 0; i < n; ++i)"))
        self.assertIn('#pragma unroll 4\nif (!LOCKSTEP_MUTANT("none"))\n', text)

    def test_a_directive(self):
        self.assertIn('\n#include <vector>\n', self.planted(block("more", "+ #include <vector>", '  #include "a.hpp"', "  int f(", "- int n,", "+ int n = BUG,")))

    def test_two_in_one_line(self):
        line = "- return sum > 9 ? 9 : sum;"
        text = self.planted(block("a", line, "+ return sum > (BUG ? 8 : 9) ? 9 : sum;") + block("b", line, "+ return sum > 9 ? 9 : BUG ? 0 : sum;"))
        self.assertIn('return sum > (LOCKSTEP_MUTANT("a") ? 8 : 9) ? 9 : LOCKSTEP_MUTANT("b") ? 0 : sum;', text)

    def test_several_statements_at_one_place(self):
        text = self.planted(block("a", "  int sum = 0;", "+ if (BUG) n = 0;") + block("b", "  int sum = 0;", "+ if (BUG) m = 0;"))
        self.assertLess(text.index('"a"'), text.index('"b"'))

    def test_overlaps(self):
        line = "- return sum > 9 ? 9 : sum;"
        self.refused(block("a", line, "+ return sum > (BUG ? 8 : 9) ? 9 : sum;") + block("b", line, "+ return BUG ? sum : 0;"), "a.cpp", " a ", "b")
        self.refused(block("a", line, "+ return sum > 9 && !BUG ? 9 : sum;") + block("b", line, "+ return sum > 9 || BUG ? 9 : sum;"), "a.cpp", " a ", "b")

    def test_not_there_or_twice(self):
        self.refused(block("gone", "- return sum > 8;", "+ return BUG;"), "gone", "a.cpp", "0 places")
        self.refused(block("both", "- ++i", "+ i += BUG ? 2 : 1"), "both", "a.cpp", "2 places")
        self.refused(block("part", "- um", "+ BUG"), "part", "0 places")  # of a word
        self.refused(block("nowhere", "- int", "+ BUG", file="b.cpp"), "nowhere", "no b.cpp")

    def test_the_list(self):
        good = block("a", "- sum > 9", "+ sum > 9 && BUG")
        self.refused(good + good, "a is there twice")
        self.refused(block("a", "- sum > 9", "+ sum > 8"), "always there")
        self.refused(block("a", "- sum > 9", "+ BUG", needs="luck"), "a has no")
        self.refused("bug: a\nwhat: b\nneeds: cpu\n\n", "changes nothing")
        self.refused("sum > 9\n", "begin with")
        self.refused(good.replace("what:", "why:"), "neither a known key")

    def test_tenths(self):
        self.put("all.bugs", "".join(block(f"b{i}", "- sum > 9", "+ sum > 9 && BUG") for i in range(25)) + block("arm", "- sum > 9", "+ 1", key="arm"))
        listed = bugs.read()
        names = [[b.name for b in bugs.chosen(listed, [], str(i)) if not b.arms] for i in range(10)]
        self.assertEqual(sorted(sum(names, [])), sorted(f"b{i}" for i in range(25)))
        self.assertTrue(all(b in bugs.chosen(listed, [], "3") for b in listed if b.arms))
        self.assertRaises(bugs.Wrong, bugs.chosen, listed, ["nobody"], None)
        self.assertRaises(bugs.Wrong, bugs.chosen, listed, [], "10")

    def test_where_to(self):
        if subprocess.run(["git", "-C", bugs.root, "rev-parse"], capture_output=True).returncode != 0:
            self.skipTest("no git checkout")
        for folder, text in ("build-that-is-not-there", "the list has no bug nobody"), ("tests/planted", "name a folder that git ignores"):
            tried = subprocess.run([os.path.join(HERE, "plant"), os.path.join(bugs.root, folder), "--only", "nobody"], capture_output=True, text=True)
            self.assertEqual(tried.returncode, 1)
            self.assertIn(text, tried.stderr)

    def test_the_case_alone(self):
        loader = importlib.machinery.SourceFileLoader("run", os.path.join(HERE, "run"))
        run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
        loader.exec_module(run)

        def more(name, command, case):
            one = run.Test(name, command, {}, 9).alone(case)
            return one and one.command[len(command):]
        check = ["/b/tests/check/lockstep_check", "--gtest_filter=Ops/Rows.*/scan"]
        self.assertEqual(more("check scan", check, "scan/sum/f32/full/3/seed1 on cpu:auto"), ["--case", "scan/sum/f32/full/3/seed1"])
        self.assertEqual(more("check scan", check, "scan/sum/f32/full/3/seed1"), ["--case", "scan/sum/f32/full/3/seed1"])
        self.assertEqual(more("check scan", check, "Ops/Rows.EveryCpu/scan (died)"), ["--gtest_filter=Ops/Rows.EveryCpu/scan"])
        self.assertEqual(more("check runner", check, "scan/sum/f32/full/3/seed1 on cpu:auto"), None)
        self.assertEqual(more("modules", ["/b/modules_test"], "modules.empty_file"), ["--gtest_filter=modules.empty_file"])
        python = ["python3", "run.py", "/s/tests/python/test_rows.py"]
        self.assertEqual(more("python rows", python, "tests/python/test_rows.py::test_out[4]"), ["-k", "test_out"])
        self.assertEqual(more("python rows", python, "test_words.py::test_out"), None)
        self.assertEqual(more("oracle of the page", ["python3", "page.py"], "strides"), None)


unittest.main()
