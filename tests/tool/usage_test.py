#!/usr/bin/env python3
"""usage_test.py LOCKSTEP SOURCE - what the program says to those who are new to it: help, errors, progress, next steps; and
that texts from files neither reach the terminal as control characters nor cost time or memory."""
import json
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

TOOL, SOURCE = sys.argv.pop(1), sys.argv.pop(1)


def run(*args, **more):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LOCKSTEP_") or k == "LOCKSTEP_MUTANT"}  # a planted bug stays awake
    return subprocess.run([TOOL, *map(str, args)], capture_output=True, env=environment, timeout=120, **more)


class Usage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def save(self, name, array):
        np.save(self.path(name), array)
        return self.path(name)

    def results(self, name, rows, **meta):
        row = {"name": "transpose/b4/64x64", "backend": "cpu", "source": "lockstep", "variant": "tiled", "cold": False, "noise": 0.03, "median_ms": 1}
        meta = {"devices": {"cpu": {"name": "A", "detail": "2 threads"}}, "threads": 2, **meta}
        with open(self.path(name), "w") as f:
            json.dump({"meta": meta, "limits": {}, "benchmarks": [{**row, **more} for more in rows]}, f)
        return self.path(name)

    def usage_error(self, *args):
        r = run(*args)
        self.assertEqual((r.returncode, r.stderr.count(b"\n")), (2, 1), (args, r.stderr))
        return r.stderr.decode()

    def commands(self, *path):
        """Every command and operation, from help itself."""
        text = run(*path, "--help").stdout.decode()
        yield path, text
        if found := re.search("(?i)subcommands:", text):
            for line in text[found.end():].splitlines():
                if name := re.match(r"  ([a-z_]+)( |$)", line):
                    yield from self.commands(*path, name[1])

    def test_help_fits_100_columns(self):
        seen = 0
        for path, text in self.commands():
            seen += 1
            for line in text.splitlines():
                self.assertLessEqual(len(line), 100, (path, line))
        self.assertGreater(seen, 20)

    def test_usage_errors_name_the_command(self):
        for path in (("bench",), ("run", "reduce"), ("explain",), ("import",), ("verify",)):
            self.assertTrue(self.usage_error(*path, "--nonsense").startswith(f"lockstep {' '.join(path)}: "), path)
        self.assertTrue(self.usage_error("nonsense").startswith("lockstep: "))
        said = self.usage_error("bench", "--first", "3")
        self.assertTrue(said.startswith("lockstep bench: --first is of a sample"), said)

    def test_errors_name_options(self):
        a, i = self.save("a.npy", np.zeros((4, 6), "f4")), self.save("i.npy", np.zeros((4, 6), "i4"))
        falling = self.save("o.npy", np.array([0, 5, 3]))
        stencil = ("run", "stencil", a, "-o", self.path("out.npy"), "--radius")
        for option, *call in (("--coefficients: their number", *stencil, 1, "--coefficients=1"), ("--radius", *stencil, 40, "--coefficients=1"),
                              ("--coefficients[0]", *stencil, 1, "--form", "antisymmetric", "--coefficients=1,2,3"),
                              ("--sweeps", *stencil, 1, "--coefficients=1,1,1,1,1", "--sweeps", 0),
                              ("--width", "run", "shuffle", self.save("w.npy", np.zeros(32, "f4")), "--kind", "up", "--operand", 1, "--width", 5, "-o", self.path("out.npy")),
                              ("--operand", "run", "shuffle", self.path("w.npy"), "--kind", "up", "--operand", -1, "-o", self.path("out.npy")),
                              ("the array's length", "run", "shuffle", a, "--kind", "up", "--operand", 1, "-o", self.path("out.npy")),
                              ("--result", "run", "square_sum", i, "--result", "f32"), ("--offsets[2]", "run", "reduce", a, "--offsets", falling),
                              ("--correction", "run", "sums", a, "--kind", "meanvar", "--correction", -1),                               ("--eps", "run", "normalize", a, "--kind", "layer", "--eps", -1, "-o", self.path("out.npy")),
                              ("--scale", "run", "normalize", a, "--kind", "softmax", "--scale", 0, "-o", self.path("out.npy")),
                              ("the array's type", "run", "map", i, "--function", "exp", "-o", self.path("out.npy"))):
            said = self.usage_error(*call)
            self.assertRegex(said.split(": ", 1)[1], "^" + re.escape(option) + r"( \([a-z]+\))? is ", said)
            self.assertNotIn("LOCKSTEP_", said)
        for option, value in (("--isa", "sse"), ("--variant", "x"), ("--backend", "x")):
            said = self.usage_error("run", "transpose", a, "-o", self.path("out.npy"), option, value)
            self.assertIn(f": {option}", said)
            self.assertNotIn("options.", said)

    def test_axes_of_length_1_count_for_nothing(self):
        """Arrays of more than 8 axes are taken where no more are left, in C and in Fortran order, as in Python."""
        values = np.random.default_rng(3)
        for shape in ((1,) * 9, (1,) * 7 + (2, 3), (2,) * 4 + (1,) * 6 + (3,), (2, 1) * 6, (2,) * 10):
            for order in ("C", "F"):
                x = np.asarray(values.integers(-9, 9, shape).astype("f4"), order=order)
                source, out, rank = self.save("x.npy", x), self.path("out.npy"), len(shape)
                calls = [("permute", tuple(range(3, rank)) + (0, 1, 2), lambda axes: x.transpose(axes)), ("permute", tuple(range(rank)), lambda axes: x.transpose(axes)),
                         ("convert", tuple(range(3, rank)) + (0, 1, 2), lambda axes: x.transpose(axes)), ("permute", tuple(range(rank))[::-1], lambda axes: x.transpose(axes)),
                         ("reduce_axes", (0,), lambda axes: x.sum(axes)), ("reduce_axes", (0, 1, 2), lambda axes: x.sum(axes)), ("reduce_axes", (rank - 1, 1), lambda axes: x.sum(axes)),
                         ("reduce_axes", tuple(range(0, rank, 2)), lambda axes: x.sum(axes))]
                for op, axes, wanted in calls:
                    r = run("run", op, source, "-o", out, "--axes", ",".join(map(str, axes)))
                    if r.returncode:
                        self.assertEqual(rank, 10, (op, shape, order, axes, r.stderr))
                        self.assertIn(b"do not merge; do it in two steps", r.stderr)
                        continue
                    got = np.load(out)
                    self.assertEqual(got.shape, wanted(axes).shape, (op, shape, order, axes))
                    np.testing.assert_array_equal(got, wanted(axes), err_msg=str((op, shape, order, axes)))
        source = self.save("x.npy", np.zeros((2,) * 3))
        self.assertIn("--axes has 0 twice", self.usage_error("run", "reduce_axes", source, "--axes", "0,0"))
        one = self.save("x.npy", np.array(5.0))
        self.assertEqual(run("run", "permute", one, "-o", self.path("out.npy")).returncode, 0)
        self.assertEqual(np.load(self.path("out.npy")).shape, ())

    def test_probe_from_says_what_it_wants(self):
        wanted = "give it a file that lockstep probe --json FILE wrote"
        for file, kind in ((self.save("x.npy", np.zeros(3)), "is a .npy array"), (self.results("b.json", [{}]), "no readings but results of lockstep bench"), (__file__, "is no JSON")):
            said = self.usage_error("probe", "--from", file)
            self.assertIn(kind, said)
            self.assertIn(wanted, said)

    def test_no_control_characters_from_files(self):
        bad = "case\x1b]0;owned\x07\x1b[2J"
        new = self.results("new.json", [{"name": bad, "variant": "\x1b[1mv", "auto": True}], memory="\x1b[31m")
        old = self.results("old.json", [{"name": bad, "variant": "u\x1b[m", "auto": True}], devices={"cpu": {"name": "\x1b[5mB", "detail": ""}})
        r = run("bench", "--from", new, "--compare", old)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn(b"case?]0;owned??[2J", r.stdout)
        self.assertNotIn(b"\x1b", r.stdout + r.stderr)
        with open(new) as f:
            text = f.read()
        with open(self.path("key.json"), "w") as f:
            f.write(text.replace('"cpu": {', '"c\\u001b[5mpu": {'))
        r = run("bench", "--from", self.path("key.json"), "--compare", old)
        self.assertEqual((r.returncode, b"\x1b" in r.stdout + r.stderr), (1, False), r.stderr)

    def test_expressions_cost_no_time_and_no_stack(self):
        long = "x" * 200_000
        rows = [{"name": name, **peer} for name in (long, "x" * 900) for peer in ({}, {"source": name})]
        begin = time.monotonic()
        for against in ("(x+x+)+y", "(x|xx)*y", "(((((((x*)*)*)*)*)*)*)*y", "x*" * 100 + "y"):
            file = self.results("sample.json", rows, sample={"seed": 1, "count": 1, "first": 0, "against": against}, devices={"cpu": {"name": "A", "detail": "L1d " + "9" * 200_000 + " KiB"}})
            r = run("bench", "--from", file, "--html", self.path("page.html"))
            self.assertIn(r.returncode, (0, 1), (against, r.stderr[-300:]))
        self.assertLess(time.monotonic() - begin, 60)
        for against, words in (("(x{100}){100}", "multiply to more than 1000"), ("(x)\\1", "references"), ("(" * 5000, "more than 1000 characters"), ("(", "no regular expression")):
            self.assertIn(words, self.usage_error("bench", "--from", file, "--against", against, "--html", self.path("page.html")))
        with open(self.path("deep.json"), "w") as f:
            f.write("[" * 1_000_000)
        self.assertEqual(run("bench", "--from", self.path("deep.json"), "--compare", file).returncode, 1)

    def test_expressions_choose(self):
        names = run("bench", "--preset", "ladder", "--list", "--filter", "^(transpose|stencil)/.*[0-9]{2}").stdout.decode().split("\n")[:-1]
        self.assertTrue(names)
        self.assertTrue(all(name.startswith(("transpose/", "stencil/")) for name in names), names)
        self.assertEqual(run("bench", "--list", "--filter", "^TRANSPOSE/").stdout, run("bench", "--list", "--filter", "^transpose/").stdout)

    def test_explain_shows_the_ptx(self):
        said = " ".join(run("explain", "square_sum", "--variant", "ptx_fma").stdout.decode().split())
        with open(os.path.join(SOURCE, "backends/cuda/square_sum/lessons.cu")) as f:
            kernel = f.read()
        shown = re.findall(r'"((?:fma|mad|add)[^"]*;)"', said)
        self.assertEqual(len(shown), 4, said)
        for instruction in shown:
            self.assertIn(instruction, kernel)

    def test_demo_ends_with_a_next_step(self):
        with open(self.path("p.pgm"), "wb") as f:
            f.write(b"P5 40 30 255\n" + bytes(range(200)) * 6)
        with open(self.path("t.csv"), "w") as f:
            f.write("1,2\n3,4\n")
        np.save(self.path("s.npy"), np.zeros(5000, "f4"))
        r = run("demo", "--quick", "--backend", "cpu", "--picture", self.path("p.pgm"), "--signal", self.path("s.npy"), "--table", self.path("t.csv"), "--text", self.path("t.csv"))
        self.assertEqual(r.returncode, 0, r.stderr)
        next_steps = r.stdout.decode().split("Next: ")[1]
        for command in re.findall(r"lockstep (\w+)", next_steps):
            self.assertEqual(run(command, "--help").returncode, 0, command)
        self.assertGreaterEqual(next_steps.count("\n"), 3)

    def test_bench_warns_on_a_busy_machine(self):
        bench = ("bench", "--backend", "cpu", "--case", "transpose/b4/8x8", "--seconds", "0.01")
        cores = os.cpu_count()
        before = os.getloadavg()[0]
        said = b"this machine is busy" in run(*bench).stdout
        after = os.getloadavg()[0]
        if (before > cores) != (after > cores):
            self.skipTest("the load crossed the number of processors meanwhile")
        self.assertEqual(said, before > cores)
        self.assertNotIn(b"busy", run(*bench, "--json").stdout)

    def test_verify_shows_progress(self):
        lines, end = pty.openpty()
        begin, seen = time.monotonic(), b""
        process = subprocess.Popen([TOOL, "verify", "--backend", "cpu", "--op", "permute", "--level", "full"], stdout=subprocess.DEVNULL, stderr=end, env={**os.environ, "TERM": "xterm"})
        try:
            while time.monotonic() - begin < 60 and not re.search(rb"permute on cpu ... [0-9.]+ s, [0-9]+ %", seen) and process.poll() is None:
                if select.select([lines], [], [], 0.2)[0]:
                    seen += os.read(lines, 4096)
        finally:
            process.kill()
            process.wait()
            os.close(end), os.close(lines)
        self.assertRegex(seen, rb"permute on cpu ... [0-9.]+ s, [0-9]+ %")


if __name__ == "__main__":
    unittest.main(verbosity=2)
