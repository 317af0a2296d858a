#!/usr/bin/env python3
"""options_test.py LOCKSTEP - lockstep explain's options: what is wrong is said in one line
that names the option, its value and what would be right; what is right draws."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv.pop(1)


def explain(*arguments):
    return subprocess.run([TOOL, "explain", *map(str, arguments)], capture_output=True, text=True, timeout=60)


class Options(unittest.TestCase):
    # arguments: what the message must name
    WRONG = {
        "": ["name an operation", "transpose, square_sum, stencil or shuffle", "--list"],
        "matmul": ["op", "matmul", "transpose"],
        "transpose --variant fast": ["--variant", "fast", "tiled_padded"],
        "transpose --warp 3": ["--warp", "3", "power of two"],
        "transpose --warp 64": ["--warp", "64", "1 to 32"],
        "transpose --warp 0": ["--warp", "0", "power of two"],
        "transpose --warp many": ["--warp", "many"],
        "transpose --classic --warp 4": ["--warp", "--classic"],
        "stencil --classic --segment 4": ["--segment", "--classic"],
        "transpose --segment 5": ["--segment", "5", "power of two"],
        "transpose --segment 4096": ["--segment", "4096", "1 to 1024"],
        "transpose --banks 12": ["--banks", "12", "power of two"],
        "transpose --banks 128": ["--banks", "128", "1 to 64"],
        "transpose --tile 6": ["--tile", "6", "power of two"],
        "transpose --tile 128": ["--tile", "128", "2 to 64"],
        "transpose --rows -1": ["--rows", "-1", "1 to 4096"],
        "transpose --columns 5000": ["--columns", "5000", "1 to 4096"],
        "transpose --rows 4096 --columns 4096": ["--rows and --columns", "16777216", "at most"],
        "transpose --element-bytes 3": ["--element-bytes", "3", "16"],
        "transpose --variant wide --rows 65": ["--rows", "65", "multiple of 64"],
        "transpose --variant wide --columns 32": ["--columns", "32", "multiple of 64"],
        "square_sum --n 0": ["--n", "0", "leave it out"],
        "transpose --rows 0": ["--rows", "0", "leave it out"],
        "transpose --banks 0": ["--banks", "0", "leave it out"],
        "stencil --radius 0": ["--radius", "0"],
        "square_sum --block 7": ["--block", "7", "serial is one thread"],
        "square_sum --variant serial --blocks 3": ["--blocks", "3", "serial is one thread"],
        "transpose --radius 4": ["--radius", "4", "of stencil, not of transpose"],
        "transpose --kind up": ["--kind", "up", "of shuffle, not of transpose"],
        "transpose --blocks 3": ["--blocks", "3", "of square_sum, not of transpose"],
        "transpose --n 5": ["--n", "5", "not of transpose"],
        "transpose --boundary wrap": ["--boundary", "wrap", "of stencil"],
        "stencil --rows 5": ["--rows", "5", "of transpose"],
        "shuffle --tile 8": ["--tile", "8", "of transpose"],
        "square_sum --operand 1": ["--operand", "1", "of shuffle"],
        "square_sum --n -5": ["--n", "-5", "1 to"],
        "square_sum --n 9999999": ["--n", "9999999", "1 to 1048576"],
        "square_sum --variant grid_stride --block 100": ["--block", "100", "power of two"],
        "square_sum --variant grid_stride --block 32": ["--block", "32", "64 to 1024"],
        "square_sum --variant grid_stride --blocks 5000": ["--blocks", "5000", "1 to 4096"],
        "square_sum --partial-bytes 5": ["--partial-bytes", "5", "4, 8 or 16"],
        "square_sum --element-bytes 1": ["--element-bytes", "1", "4 or 8"],
        "square_sum --variant shuffle --n 2048": ["--n", "2048", "2049 to"],
        "square_sum --variant shuffle --block 64": ["--block", "64", "leave it out"],
        "square_sum --variant shuffle --blocks 4": ["--blocks", "4", "leave it out"],
        "square_sum --variant shuffle --partial-bytes 4": ["--partial-bytes", "4", "leave it out"],
        "stencil --radius 17": ["--radius", "17", "1 to 16"],
        "stencil --boundary periodic": ["--boundary", "periodic", "wrap"],
        "stencil --boundary valid --n 8": ["--n", "8", "twice the radius"],
        "stencil --element-bytes 2": ["--element-bytes", "2", "4 or 8"],
        "stencil --block 8": ["--block", "8", "32 to 1024"],
        "stencil --variant global --sweeps 4": ["--sweeps", "4", "sweeps_registers, sweeps_streamed and sweeps_planes"],
        "shuffle --sweeps 4": ["--sweeps", "4", "of stencil"],
        "stencil --sweeps 0": ["--sweeps", "0", "leave it out"],
        "stencil --sweeps 33": ["--sweeps", "33", "2 to 32"],
        "stencil --variant sweeps_registers --radius 5": ["--radius", "5", "1 to 4"],
        "stencil --variant sweeps_registers --block 64": ["--block", "64", "leave it out"],
        "stencil --sweeps 8 --boundary valid --n 64": ["--n", "64", "twice the radius"],
        "stencil --variant sweeps_streamed --sweeps 9": ["--sweeps", "9", "2 to 8"],
        "stencil --variant sweeps_streamed --radius 2 --sweeps 5": ["--sweeps", "5", "2 to 4"],
        "stencil --variant sweeps_planes --sweeps 4": ["--sweeps", "4", "2 to 3"],
        "stencil --variant sweeps_planes --radius 2": ["--radius", "2", "radius 1"],
        "stencil --variant sweeps_planes --block 64": ["--block", "64", "8 warps"],
        "stencil --variant sweeps_planes --warp 2": ["--sweeps", "3", "wider warps"],
        "stencil --variant sweeps_planes --n 5000": ["--n", "5000", "1 to 1024"],
        "stencil --variant sweeps_planes --boundary valid --n 6": ["--n", "6", "twice the sweeps"],
        "shuffle --kind left": ["--kind", "left", "xor"],
        "shuffle --width 12": ["--width", "12", "power of two"],
        "shuffle --width 64": ["--width", "64", "1 to 32"],
        "shuffle --operand 32": ["--operand", "32", "0 to 31"],
        "shuffle --n 100": ["--n", "100", "multiple of --warp"],
        "shuffle --block 100": ["--block", "100", "whole warps"],
        "transpose --step 9": ["--step", "9", "1 to 4", "all"],
        "transpose --step first": ["--step", "first", "1 to 4"],
        "transpose --at-block 1": ["--at-block", "1", "0 to 0"],
        "transpose --at-block -1": ["--at-block", "-1"],
        "transpose --at-warp 8": ["--at-warp", "8", "0 to 7"],
        "transpose --svg /nowhere/at/all.svg": ["--svg", "/nowhere/at"],
        "transpose --html /nowhere/at/all.html": ["--html", "/nowhere/at"],
        "transpose --sgv x.svg": ["--sgv"],
    }

    def test_wrong(self):
        for arguments, named in self.WRONG.items():
            with self.subTest(arguments):
                r = explain(*arguments.split())
                self.assertEqual(r.returncode, 1 if "/nowhere" in arguments else 2, (r.stdout[-200:], r.stderr))
                self.assertEqual(r.stdout, "")
                self.assertTrue(r.stderr.startswith("lockstep explain: " if r.returncode == 2 else "lockstep: "), r.stderr)
                self.assertEqual(r.stderr.count("\n"), 1, r.stderr)
                for word in named:
                    self.assertIn(word, r.stderr)

    def test_every_lesson_draws(self):
        lines = explain("--list").stdout.splitlines()
        rows = {line.split()[0] for line in lines}
        taught = [f"A{k}" for k in range(1, 6)] + [f"B{k}" for k in range(1, 11)] + [f"C{k}" for k in range(1, 8)]
        self.assertLessEqual({*taught, "D1-D4"}, rows)
        for line in lines:
            row, op, variant = line.split()
            for more in ([], ["--classic"]):
                with self.subTest(line, more=more):
                    r = explain(op, "--variant", variant, *more)
                    self.assertEqual(r.returncode, 0, r.stderr)
                    self.assertIn(f"{op} / {variant}", r.stdout)
                    self.assertIn("beside the rule", r.stdout)
                    self.assertNotIn("differs", r.stdout)  # what is counted is what is taught

    def test_files_and_json(self):
        with tempfile.TemporaryDirectory() as folder:
            svg, page = pathlib.Path(folder, "a.svg"), pathlib.Path(folder, "a.html")
            r = explain("transpose", "--classic", "--svg", svg, "--html", page)
            self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "", ""))
            self.assertTrue(svg.read_text().startswith("<svg"))
            self.assertTrue(page.read_text().startswith("<!doctype html>"))
        j = json.loads(explain("transpose", "--classic", "--json").stdout)
        self.assertEqual(len(j["requests"]), 16)
        self.assertEqual(sum(r["met"] for r in j["requests"]), 24)

    def test_few_elements(self):
        """Less than a warp, or not a whole one, of everything that takes --n: the one warp there is is drawn."""
        for arguments in ("square_sum --variant serial --n 1", "square_sum --variant grid_stride --n 5", "stencil --n 3 --boundary wrap",
                          "stencil --variant shared_constant --n 33", "stencil --variant wide --n 40 --radius 16", "shuffle --n 32",
                          "transpose --rows 1 --columns 1", "transpose --variant tiled --rows 33 --columns 5"):
            with self.subTest(arguments):
                r = explain(*arguments.split())
                self.assertEqual((r.returncode, r.stderr), (0, ""))

    def test_sweeps_draw_what_is_computed_twice(self):
        """Lanes of two warps over the same points, fewer of them after each sweep, and each point written by one."""
        text = explain("stencil", "--sweeps", 4, "--radius", 2).stdout
        self.assertIn("stencil / sweeps_registers", text)
        drawn = [line[18:] for line in text.splitlines() if re.match(r"  .{8} warp [01] ", line)]
        self.assertEqual(len(drawn), 12)
        for sweep in range(5):
            left, right = drawn[2 * sweep], drawn[2 * sweep + 1]
            twice = sum(a != "." and b != "." for a, b in zip(left, right))
            self.assertEqual(twice, 32 - 2 * 2 * sweep)
        written = sum(a != "." and b != "." for a, b in zip(drawn[10], drawn[11]))
        self.assertEqual((written, all(a != "." or b != "." for a, b in zip(drawn[10], drawn[11]))), (0, True))
        j = json.loads(explain("stencil", "--variant", "sweeps_streamed", "--json").stdout)
        self.assertEqual(len(j["sketches"]), 2)

    def test_sweeps_of_a_cube(self):
        """A plane of each sweep a step, two behind the sweep before; a block writes what the last one ends."""
        text = explain("stencil", "--variant", "sweeps_planes").stdout
        table = [line.split() for line in text.splitlines() if re.fullmatch(r"  +\d+( +(\d+|\.)){5}", line)]
        self.assertEqual(len(table), 14)
        for step, arrives, *ends, written in table:
            self.assertEqual(ends[2], written)
            for sweep, plane in enumerate(ends, 1):
                self.assertIn(plane, (".", str(int(step) - 2 * sweep + 1)))
        self.assertEqual([line[-1] for line in table if line[-1] != "."], [str(plane) for plane in range(9)])
        j = json.loads(explain("stencil", "--variant", "sweeps_planes", "--json").stdout)
        self.assertEqual(len(j["sketches"]), 3)
        self.assertEqual(explain("stencil", "--variant", "sweeps_planes", "--n", 5).returncode, 0)

    def test_operands_any_number_for_idx(self):
        self.assertEqual(explain("shuffle", "--kind", "idx", "--operand", "-29").returncode, 0)
        self.assertEqual(explain("shuffle", "--kind", "idx", "--operand", "100").returncode, 0)


if __name__ == "__main__":
    unittest.main()
