#!/usr/bin/env python3
"""tool_test.py LOCKSTEP MODULES - the program as its users meet it: exit codes, messages,
JSON, files that cannot be read or written, round trips against NumPy."""
import csv
import json
import os
import shutil
import re
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

TOOL, MODULES = sys.argv.pop(1), sys.argv.pop(1)  # the program, and where lockstep-wrong.so is


def run(*args, **more):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LOCKSTEP_") or k in ("LOCKSTEP_BACKEND_PATH", "LOCKSTEP_MUTANT")}
    return subprocess.run([TOOL, *map(str, args)], capture_output=True, env=environment, timeout=120, **more)


class Tool(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = lambda name: os.path.join(self.folder.name, name)
        self.random = np.random.default_rng(7)

    def tearDown(self):
        leftovers = [f for f in os.listdir(self.folder.name) if not f.endswith((".npy", ".txt"))]
        self.folder.cleanup()
        self.assertEqual(leftovers, [], "temporary files were left behind")

    def save(self, name, a):
        np.save(self.path(name), a)
        return self.path(name)

    def ok(self, *args, **more):
        r = run(*args, **more)
        self.assertEqual(r.returncode, 0, (args, r.stderr))
        return r

    def fails(self, code, text, *args):
        r = run(*args)
        self.assertEqual(r.returncode, code, (args, r.stdout[-300:], r.stderr))
        self.assertIn(text, r.stderr.decode())
        self.assertEqual(r.stderr.count(b"\n"), 1, r.stderr)
        # A mistake on the command line names the subcommand.
        self.assertRegex(r.stderr, b"^lockstep( [a-z]+)?( [a-z_]+)?: " if code == 2 else b"^lockstep: ")

    def check_op(self, op, a, expected, *options):
        src, dst = self.save("in.npy", a), self.path("out.npy")
        self.ok("run", op, src, "-o", dst, *options)
        got = np.load(dst)
        self.assertEqual(got.shape, expected.shape)
        self.assertEqual(got.tobytes(), np.ascontiguousarray(expected).tobytes(), (op, options))

    def test_numbers_are_read_whole(self):
        """What is no number, or does not fit, is told with the option, the value and what to give."""
        src, out = self.save("in.npy", np.ones((4, 6), "f4")), os.devnull
        stencil = ["run", "stencil", src, "-o", out, "--coefficients=1,2,3,4,5"]
        shuffle = ["run", "shuffle", src, "-o", out, "--kind=xor"]
        number, whole = "a number", "a whole number"
        options = [
            (["run", "convert", src, "-o", out], "--scale", number), (["run", "reduce", src], "--axis", whole), (["run", "reduce", src], "--threads", whole),
            (["run", "scan", src, "-o", out], "--axis", whole), (stencil, "--radius", whole), ([*stencil, "--radius=1"], "--sweeps", whole),
            ([*stencil, "--radius=1"], "--value", number), ([*stencil, "--radius=1"], "--rank", whole), (shuffle, "--operand", whole),
            ([*shuffle, "--operand=1"], "--width", whole), (["run", "normalize", src, "-o", out, "--kind=l2"], "--eps", number),
            (["run", "sums", src, "--kind=meanvar"], "--correction", whole), (["verify"], "--seed", whole), (["verify"], "--most-elements", whole),
            (["verify"], "--threads", whole), (["bench", "--list"], "--seconds", number), (["bench", "--list"], "--count", whole),
            (["bench", "--list"], "--first", whole), (["bench", "--list"], "--sample", whole), (["explain", "transpose"], "--rows", whole),
            (["explain", "transpose"], "--tile", whole), (["explain", "transpose"], "--at-block", whole), (["export", src], "--low", number),
            (["export", src], "--width", whole), (["calibrate"], "--largest", number), (["tune"], "--threads", whole), (["demo"], "--threads", whole)]
        for command, option, wanted in options:
            for value in ("abc", "1e999", "99999999999999999999", ""):
                if value.startswith("999") and wanted == number:
                    continue
                with self.subTest(option=option, value=value):
                    text = f'{option} is "{value}"; give {wanted}' if value else f"{option} is given without a value"
                    self.fails(2, text, *command, f"{option}={value}")
        self.fails(2, '--threads is "-1"; give a whole number from 0 to 4096', "run", "reduce", src, "--threads=-1")
        self.fails(2, '--seconds is "nan"; give a number from 0 to 3600', "bench", "--list", "--seconds=nan")
        self.ok("run", "reduce", src, "--axis=-1", "-q")
        self.ok(*stencil, "--radius=1", "--boundary=constant", "--value=-inf")
        self.ok(*stencil, "--radius=1", "--boundary=constant", "--value=1e-320")

    def test_calibrate(self):
        """On a machine without a device the file changes nothing; it is written where the library looks."""
        environment = {**os.environ, "XDG_CACHE_HOME": self.folder.name}
        environment = {k: v for k, v in environment.items() if not k.startswith("LOCKSTEP_") or k in ("LOCKSTEP_BACKEND_PATH", "LOCKSTEP_MUTANT")}
        at = lambda *a: subprocess.run([TOOL, *a], capture_output=True, env=environment, timeout=120, text=True)
        path = os.path.join(self.folder.name, "lockstep", "calibration")
        before = json.loads(at("info", "--json").stdout)["model"]
        self.assertEqual((before["source"], before["path"]), ("built-in", path))
        self.assertIn("lockstep calibrate makes one", before["reason"])
        a = self.save("in.npy", np.arange(12, dtype="f4").reshape(3, 4))
        out = self.path("o.npy")
        self.assertEqual(at("run", "transpose", a, "-o", out, "-q").returncode, 0)
        wanted = np.load(out).tobytes()
        r = at("calibrate", "--largest", "20000", "--seconds", "0")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn(path + " written", r.stdout)
        self.assertEqual(json.loads(at("info", "--json").stdout)["model"], {"source": path, "path": path, "reason": ""})
        self.assertIn("auto chooses by the figures of " + path, at("info").stdout)
        self.assertEqual(at("run", "transpose", a, "-o", out, "-q").returncode, 0)
        self.assertEqual(np.load(out).tobytes(), wanted)
        os.chmod(path, 0o666)
        self.assertIn("anybody may write to it", at("info").stdout)
        other = self.path("mine.txt")
        r = at("calibrate", "--largest", "4096", "--seconds", "0", "-o", other)
        self.assertEqual(r.returncode, 0, r.stderr)
        with open(other) as f:
            self.assertEqual(f.readline(), "lockstep-calibration 3\n")
        environment["LOCKSTEP_CALIBRATION"] = "off"
        r = at("calibrate")
        self.assertEqual((r.returncode, r.stderr.count("\n")), (2, 1))
        self.assertIn("name one with -o", r.stderr)
        self.assertEqual(at("calibrate", "--largest", "5").returncode, 2)
        shutil.rmtree(os.path.dirname(path))

    def test_tune(self):
        """What tune measures is remembered where the library looks, listed by info, and changes no result."""
        environment = {**os.environ, "XDG_CACHE_HOME": self.folder.name}
        environment = {k: v for k, v in environment.items() if not k.startswith("LOCKSTEP_") or k == "LOCKSTEP_MUTANT"}
        at = lambda *a: subprocess.run([TOOL, *a], capture_output=True, env=environment, timeout=120, text=True)
        path = os.path.join(self.folder.name, "lockstep", "tuning")
        case = "reduce/sum/f32/rows/20x3000/seed1"
        before = json.loads(at("info", "--json").stdout)["tuning"]
        self.assertEqual((before["path"], before["choices"]), (path, []))
        self.assertIn("lockstep tune", before["reason"])
        r = at("tune", "--backend", "cpu", case)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertRegex(r.stdout, re.escape(f"{case} on cpu: tuned now: ") + r"\w+ [0-9.e+-]+ us, ")
        self.assertIn(f"1 remembered in {path}", r.stdout)
        self.assertIn("tuned before", at("tune", "--backend", "cpu", "--known", case).stdout)
        self.assertIn("tuned now", at("tune", "--backend", "cpu", case).stdout)
        now = json.loads(at("info", "--json").stdout)["tuning"]
        self.assertEqual((now["path"], now["reason"], len(now["choices"])), (path, "", 1))
        self.assertIn("reduce SUM F32 F64 2^4 of 2^11 rows", now["choices"][0])
        self.assertIn("plans take 1 rows chosen by measuring", at("info").stdout)
        self.assertEqual(at("tune", "--list").stdout, now["choices"][0] + "\n")
        r = at("verify", "--backend", "cpu", "--variant", "auto", "--case", case, "--way", "planned")
        self.assertEqual(r.returncode, 0, r.stdout)
        for wrong, text in ((["tune"], "name a case"), (["tune", "reduce/nothing"], "reduce/nothing"),
                            (["tune", "--backend", "abacus", case], "abacus"), (["tune", "--list", case], "--list")):
            r = at(*wrong)
            self.assertEqual((r.returncode, r.stderr.count("\n")), (2, 1), (wrong, r.stderr))
            self.assertIn(text, r.stderr)
        environment["LOCKSTEP_TUNING"] = "off"
        r = at("tune", "--backend", "cpu", case)
        self.assertEqual((r.returncode, r.stderr), (1, 'lockstep: LOCKSTEP_TUNING is "off"\n'))
        shutil.rmtree(os.path.dirname(path))

    def test_preset_crossover(self):
        out = self.path("c.txt")
        self.ok("bench", "--preset", "crossover", "--filter", "^shuffle.*n(352|1856)$", "--seconds", "0.001", "--json", out)
        with open(out) as f:
            rows = json.load(f)["benchmarks"]
        self.assertEqual({r["backend"] for r in rows if r["memory"] == "pageable"} >= {"cpu", "auto"}, True)
        for r in rows:
            self.assertEqual("over_better" in r, r["backend"] == "auto")
            self.assertGreater(r["median_ms"], 0)

    def test_exit_codes(self):
        a = self.save("in.npy", np.zeros((2, 3), "f4"))
        out = self.path("o.npy")
        self.ok("--version")
        self.ok("--help")
        self.ok("run", "transpose", "--help")
        # What is no command, no operation: the word itself, and those there are.
        self.fails(2, "name a command: info, run, verify")
        self.fails(2, '"nonsense" is no command; there are info, run, verify', "nonsense")
        self.fails(2, "name an operation of run: transpose, permute", "run")
        self.fails(2, '"nonsense" is no operation of run; there are transpose, permute', "run", "nonsense", a)
        self.fails(2, "input", "run", "transpose")
        self.fails(2, "-o", "run", "transpose", a)
        self.fails(2, "--axes", "run", "permute", a, "-o", out, "--axes", "0,0")
        self.fails(2, "--axes", "run", "permute", a, "-o", out, "--axes", "0,x")
        self.fails(2, "--reduction", "run", "reduce", a, "--reduction", "mean")
        self.fails(2, "--axis", "run", "reduce", a, "--axis", "5")
        self.fails(2, "--threads", "run", "reduce", a, "--threads", "-1")
        self.fails(2, "no variant", "run", "reduce", a, "--variant", "nonsense")
        for command in (("run", "reduce", a), ("verify", "--op", "shuffle"), ("bench",), ("demo",)):
            self.fails(2, '"nonsense", which is not a known backend', *command, "--backend", "nonsense")
        self.fails(2, "--isa", "run", "reduce", a, "--isa", "nonsense")
        self.fails(1, "No such file", "run", "transpose", self.path("none.npy"), "-o", out)
        self.fails(2, "multiple of 32", "run", "shuffle", a, "-o", out, "--kind", "idx", "--operand", "0")
        self.assertFalse(os.path.exists(out))

    def test_casts(self):
        a = self.random.standard_normal((5, 6, 7)).astype("f4")
        want = (a.transpose(2, 0, 1).astype("f8") * 0.1).astype("f2")
        for source in (a, np.asfortranarray(a)):
            self.check_op("convert", source, want, "--result", "f16", "--scale", "0.1", "--axes", "2,0,1")
        self.check_op("convert", a.astype("f8"), a, "--result", "f32")
        self.check_op("convert", a, a * np.float32(2), "--scale", "2")
        bits = (a.view("u4") >> 16).astype("u2")
        self.check_op("convert", bits, (bits.astype("u4") << 16).view("f4"), "--result", "f32", "--bf16")
        self.check_op("convert", np.arange(6), np.arange(6).astype("f2"), "--result", "f16")
        self.check_op("convert", np.array([1.75, -2.5, 300, np.nan], "f4"), np.array([1, -2, 127, 0], "i1"), "--result", "i8")
        self.fails(2, "no permutation of 0..2", "run", "convert", self.save("in.npy", a), "-o", self.path("o.npy"), "--axes", "0,0,1")

    def test_functions(self):
        a = np.abs(self.random.standard_normal((5, 6, 7))).astype("f4")
        want = np.sqrt(a).transpose(2, 0, 1).copy()
        for source in (a, np.asfortranarray(a)):
            self.check_op("map", source, want, "--function", "sqrt", "--axes", "2,0,1")
        self.check_op("map", a, np.exp(a.astype("g")).astype("f2"), "--function", "exp", "--result", "f16")
        self.check_op("map", a, (4 / a.astype("f8")).astype("f4"), "--function", "reciprocal", "--scale", "4")
        b = self.random.standard_normal((5, 6, 7)).astype("f4")
        gated = (np.sqrt(a.astype("f8")) * b).astype("f4").transpose(2, 0, 1).copy()
        self.check_op("map", a, gated, "--function", "sqrt", "--axes", "2,0,1", "--times", self.save("b.npy", b))
        src = self.save("in.npy", a)
        self.fails(2, "--times", "run", "map", src, "-o", self.path("o.npy"), "--function", "exp", "--times", self.save("c.npy", b[0]))
        self.fails(2, "--times is <f8, the input <f4", "run", "map", src, "-o", self.path("o.npy"), "--function", "exp", "--times",
                   self.save("c.npy", b.astype("f8")))
        self.fails(2, "--function", "run", "map", src, "-o", self.path("o.npy"))
        self.fails(2, "--function", "run", "map", src, "-o", self.path("o.npy"), "--function", "sine")
        self.fails(1, "map takes F16, BF16 and F32", "run", "map", self.save("d.npy", a.astype("f8")), "-o", self.path("o.npy"), "--function", "exp")

    def test_softmax(self):
        a = np.array([[0, 0, -np.inf, 0], [0, 0, 700, -np.inf]], "f4")
        third = np.float32(1 / 3)
        self.check_op("normalize", a, np.array([[third, third, 0, third], [np.float32(np.exp(-700.0)), np.float32(np.exp(-700.0)), 1, 0]], "f4"), "--kind", "softmax")
        self.ok("run", "normalize", self.save("in.npy", a), "-o", self.path("out.npy"), "--kind", "logsumexp", "--scale", "2", "--result", "f64")
        np.testing.assert_array_max_ulp(np.load(self.path("out.npy")), np.log(np.array([3, 1], "f8")) + [0, 1400], 2)  # L's bound
        labels = self.save("labels.npy", np.array([3, 2]))
        self.check_op("normalize", a, np.array([-np.log(3.0), 0], "f4"), "--kind", "picked", "--labels", labels)
        offsets = self.save("offsets.npy", np.array([0, 2, 2, 3]))
        self.check_op("normalize", np.zeros(3, "f4"), np.array([0.5, 0.5, 1], "f4"), "--kind", "softmax", "--offsets", offsets)
        self.check_op("normalize", np.zeros(3, "f4"), np.array([np.log(2.0), -np.inf, 0], "f4"), "--kind", "logsumexp", "--offsets", offsets)
        self.fails(2, "give offsets from 0 to 4", "run", "normalize", self.save("four.npy", a[0]), "-o", self.path("o.npy"), "--kind", "softmax", "--offsets", offsets)
        src, out = self.save("a.npy", a), self.path("o.npy")
        self.fails(2, "--offsets cut an array of 1 axis, this one has 2", "run", "normalize", src, "-o", out, "--kind", "softmax", "--offsets", offsets)
        self.fails(2, "--labels FILE.npy goes with --kind picked", "run", "normalize", src, "-o", out, "--kind", "picked")
        self.fails(2, "--labels FILE.npy goes with --kind picked", "run", "normalize", src, "-o", out, "--kind", "softmax", "--labels", labels)
        self.fails(2, "needs elements <i8", "run", "normalize", src, "-o", out, "--kind", "picked", "--labels", self.save("l4.npy", np.array([3, 2], "i4")))

    def test_gradients(self):
        """Of rows of mean square 1, so that all numbers are short."""
        ones, slopes = np.array([[1.0, -1], [1, -1]]), self.save("slopes.npy", np.array([[1.0, 2], [3, 5]]))
        out, of_weight, of_bias = self.path("o.npy"), self.path("of_weight.npy"), self.path("of_bias.npy")
        backward = ("--kind", "rms_backward", "--eps", "0", "--gradient", slopes)
        self.check_op("normalize", ones, np.array([[1.5, 1.5], [4, 4]]), *backward, "--weight-gradient", of_weight, "--bias-gradient", of_bias)
        self.assertEqual([np.load(of_weight).tolist(), np.load(of_bias).tolist()], [[4, -7], [4, 7]])
        rows = self.save("rows.npy", ones)
        self.fails(2, "--gradient FILE.npy goes with --kind rms_backward", "run", "normalize", rows, "-o", out, "--kind", "layer_backward")
        self.fails(2, "--gradient FILE.npy goes with --kind rms_backward", "run", "normalize", rows, "-o", out, "--kind", "rms", "--gradient", slopes)
        self.fails(2, "--bias-gradient goes with --kind", "run", "normalize", rows, "-o", out, "--kind", "rms", "--bias-gradient", of_bias)
        self.fails(2, "--weight-gradient is -", "run", "normalize", rows, "-o", out, *backward, "--weight-gradient", "-")
        self.fails(2, "--bias is", "run", "normalize", rows, "-o", out, *backward, "--bias", self.save("b.npy", ones[0]))
        self.fails(2, "--gradient is <f4, the input <f8", "run", "normalize", rows, "-o", out, *backward[:-1], self.save("g4.npy", ones.astype("f4")))

    def test_digest(self):
        """The formula of order.md for one word: two f4 of value 0 and 1."""
        words = [0x3F800000 << 32]
        x = (words[0] + 0x9E3779B97F4A7C15 + 16 * 3 * 0xC2B2AE3D27D4EB4F) % 2**64
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        x ^= x >> 31
        y = (x ^ x >> 32) * 0xD6E8FEB86659FD93 % 2**64
        src = self.save("two.npy", np.array([0, 1], "f4"))
        a = np.arange(12, dtype="i2").reshape(3, 4)
        said = self.ok("digest", src, self.save("c.npy", a), self.save("f.npy", np.asfortranarray(a))).stdout.decode().splitlines()
        self.assertEqual(said[0], f"{x:016x}{y ^ y >> 32:016x}  <f4 (2,)  {src}")
        self.assertEqual(said[1].split()[0], said[2].split()[0])
        self.fails(1, "nowhere.npy", "digest", self.path("nowhere.npy"))

    def test_movement(self):
        for dtype in ("u1", "f2", "i4", "f8", "c16"):
            a = self.random.integers(0, 200, (3, 37, 41)).astype(dtype)
            self.check_op("transpose", a, a.swapaxes(1, 2))
            self.check_op("permute", a, a.transpose(2, 0, 1), "--axes", "2,0,1")
            self.check_op("permute", a, a.transpose())
            f = np.asfortranarray(a)
            self.check_op("permute", f, a.transpose(1, 2, 0), "--axes", "1,-1,0")
            self.check_op("transpose", f, a.swapaxes(1, 2))
        warps = self.random.integers(-9, 9, (4, 32)).astype("i4")
        self.check_op("shuffle", warps, warps.reshape(-1, 2, 16)[:, :, ::-1].reshape(4, 32), "--kind", "xor", "--operand", "15")

    def test_numbers(self):
        a = self.random.integers(-1000, 1000, (5, 6, 7)).astype("i4")
        wide = a.astype("i8")
        for axis in (0, 1, 2):
            self.check_op("reduce", a, wide.sum(axis), "--axis", axis)
            self.check_op("reduce", a, a.max(axis), "--axis", axis, "--reduction", "max")
            self.check_op("reduce", a, a.argmin(axis), "--axis", axis, "--reduction", "argmin")
            self.check_op("square_sum", a, (wide * wide).sum(axis), "--axis", axis)
        offsets = self.save("offsets.npy", np.array([0, 3, 3, 200, 210]))
        flat = wide.ravel()
        self.check_op("reduce", a, np.array([flat[:3].sum(), 0, flat[3:200].sum(), flat[200:].sum()]), "--offsets", offsets)
        x = np.arange(50, dtype="f8") ** 2
        self.check_op("stencil", x, np.full(48, 2.0), "--radius", 1, "--coefficients=1,-2,1", "--boundary", "valid")
        self.check_op("stencil", np.tile(x, (3, 1)), np.full((3, 48), 2.0), "--radius", 1, "--form", "symmetric",
                      "--coefficients=-2,1", "--boundary", "valid", "--rank", 1)
        halves = self.save("halves.npy", np.array([0x3F80, 0x4000], "u2"))  # bfloat16 1.0, 2.0
        self.assertEqual(float(self.ok("run", "square_sum", halves, "--bf16").stdout), 5.0)
        self.assertEqual(int(self.ok("run", "square_sum", halves).stdout), 0x3F80**2 + 0x4000**2)

    def test_every_type(self):
        """Sums and extremes of each type that NumPy shares with lockstep; results as .npy, text and JSON."""
        for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?"):
            x = (np.arange(-35, 35).reshape(7, 10) % 100).astype(dtype)
            if dtype[0] == "u":
                x[3, 4] = np.iinfo(dtype).max - (1000 if dtype == "u8" else 0)  # whose row still fits
            total = "f8" if dtype[0] == "f" else "u8" if dtype == "u8" else "i8"
            self.check_op("reduce", x, x.astype(total).sum(axis=1), "--axis", 1)
            self.check_op("reduce", x, x.max(axis=0), "--reduction", "max", "--axis", 0)
            self.check_op("reduce", x, x.argmin(axis=1), "--reduction", "argmin", "--axis", 1)
            src = self.save("x.npy", x)
            most = self.ok("run", "reduce", src, "--reduction", "max").stdout
            self.assertEqual(float(most), float(x.max()), dtype)
            report = json.loads(self.ok("run", "reduce", src, "--reduction", "max", "--json").stdout)
            self.assertEqual((report["result"], report["dtype"]), (x.max(), np.dtype(dtype).str))
        x = np.arange(5000, dtype="f4") / 7
        self.check_op("reduce", x, x[:60].astype("f8").sum(keepdims=True).astype("f2"), "--offsets", self.save("o.npy", np.array([0, 60])), "--result", "f16")
        bits = self.ok("run", "reduce", self.save("x.npy", x[:3]), "--result", "bf16").stdout
        self.assertEqual(np.float32(bits.decode()), 0.427734375)  # of 0.42857...
        self.fails(2, "c8", "run", "reduce", self.save("c.npy", np.zeros(3, "c8")))

    def test_text_and_json(self):
        a = self.save("in.npy", np.arange(12, dtype="f8").reshape(3, 4))
        self.assertEqual(float(self.ok("run", "reduce", a).stdout), 66.0)
        self.assertEqual([float(x) for x in self.ok("run", "reduce", a, "--axis", "-1").stdout.split()], [6, 22, 38])
        report = json.loads(self.ok("run", "reduce", a, "--json").stdout)
        self.assertEqual((report["result"], report["dtype"], report["order"]), (66, "<f8", 1))
        self.assertTrue(report["backend"] and report["variant"])
        nan = self.save("n.npy", np.array([np.nan]))
        self.assertEqual(json.loads(self.ok("run", "reduce", nan, "--json").stdout)["result"], "nan")
        forced = json.loads(self.ok("run", "reduce", a, "--json", "--backend", "cpu", "--variant", "ref").stdout)
        self.assertEqual((forced["backend"], forced["variant"]), ("cpu", "ref"))
        info = json.loads(self.ok("info", "--json").stdout)
        cpu = next(b for b in info["backends"] if b["name"] == "cpu")
        self.assertTrue(cpu["usable"])
        for op in ("transpose", "permute", "square_sum", "reduce", "stencil", "shuffle"):
            self.assertEqual(cpu["variants"][op][-1]["flags"], ["reference"], op)
        self.assertNotIn(b"\033", self.ok("info").stdout)

    def test_files(self):
        a = self.random.random((30, 50))
        src = self.save("in.npy", a)
        self.ok("run", "transpose", src, "-o", src)  # onto itself
        np.testing.assert_array_equal(np.load(src), a.T)
        with open(src, "rb") as f:
            piped = self.ok("run", "transpose", "-", "-o", "-", input=f.read())
        self.assertEqual(piped.stdout[-a.nbytes:], a.tobytes())
        with subprocess.Popen([TOOL, "run", "reduce", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            p.stdin.write(bytes(4096))  # of a stream that does not end
            p.stdin.flush()
            self.assertEqual(p.wait(timeout=60), 1)
            self.assertIn(b"no .npy file", p.stderr.read())
        link = self.path("link.npy")
        os.symlink(src, link)
        self.ok("run", "transpose", src, "-o", link)
        self.assertTrue(os.path.islink(link))
        os.chmod(src, 0o640)
        self.ok("run", "transpose", src, "-o", src)
        self.assertEqual(os.stat(src).st_mode & 0o777, 0o640)
        self.ok("run", "transpose", src, "-o", "/dev/null")
        self.fails(1, "No space left", "run", "transpose", src, "-o", "/dev/full")
        with open("/dev/full", "wb") as full:
            r = subprocess.run([TOOL, "info"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(r.returncode, 1)
        self.assertIn(b"No space left", r.stderr)
        self.fails(1, "cannot write", "run", "transpose", src, "-o", self.path("no/such/folder.npy"))
        self.fails(2, "directory", "run", "transpose", src, "-o", self.folder.name)
        self.fails(1, "directory", "run", "transpose", self.folder.name, "-o", self.path("o.npy"))
        reader, writer = os.pipe()
        os.close(reader)  # nobody listens: no message, no success
        r = subprocess.run([TOOL, "info"], stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        self.assertEqual((r.returncode, r.stderr), (1, b""))

    def test_stencils_of_small_integers(self):
        """What import makes of a picture is computed with as it is: a stencil takes its integers as f4."""
        for dtype in ("u1", "i1", "u2", "i2", "?"):
            line = self.random.integers(0, 65536, 50).astype(dtype)
            wide = line.astype("f4")
            self.check_op("stencil", line, wide[2:] - wide[:-2], "--radius", "1", "--coefficients=-1,0,1", "--boundary", "valid")
        said = self.ok("run", "stencil", self.save("in.npy", line), "-o", self.path("o.npy"), "--radius", "1", "--coefficients=-1,0,1").stderr
        self.assertIn(b"stencil |b1(50,) as <f4 -> <f4(50,)", said)

    def test_stdout(self):
        """Where a file is written - is stdout, and --json alone too; it gets nothing else, and two cannot share it."""
        a = self.save("in.npy", np.arange(12, dtype="f4").reshape(3, 4))
        few = ("--backend", "cpu", "--case", "transpose/b4/8x8", "--seconds", "0.001")
        json_of = lambda *args: json.loads(self.ok(*args).stdout)
        self.assertEqual(json_of("run", "reduce", a, "--json")["result"], 66)
        self.assertEqual(json_of("info", "--json")["version"], json_of("info", "--json", "-")["version"])
        self.assertEqual(len(json_of("bench", *few, "--json")["benchmarks"]), 1)
        self.assertEqual(len(json_of("bench", "--json", *few)["benchmarks"]), 1)
        self.assertTrue(json_of("explain", "transpose", "--json"))
        self.assertTrue(json_of("bench", *few, "--nvbench", "-")["benchmarks"])
        self.assertTrue(json_of("probe", "--backend", "cpu", "--row", "H7", "--seconds", "0.001", "--threads", "2", "--json"))
        for command in (("bench", *few), ("explain", "transpose"), ("probe", "--backend", "cpu", "--row", "H7", "--seconds", "0.001", "--threads", "2")):
            page = self.ok(*command, "--html", "-").stdout
            self.assertTrue(page.startswith(b"<!doctype html>") and page.endswith(b"</html>\n"), command)
            self.fails(2, "both want stdout", *command, "--html", "-", "--json")
        self.assertTrue(self.ok("explain", "transpose", "--svg", "-").stdout.startswith(b"<svg"))
        self.assertTrue(self.ok("bench", *few, "--csv", "-").stdout.startswith(b"name,"))
        self.assertTrue(self.ok("export", a, "-o", "-").stdout.startswith(b"\x89PNG"))
        self.fails(2, "both want stdout", "run", "transpose", a, "-o", "-", "--json")
        # A file in place of stdout, which then has what it has without.
        out = self.path("j.txt")
        for command, says in ((("run", "reduce", a), b"66"), (("info",), b"lockstep "), (("bench", *few), b"transpose"), (("explain", "transpose"), b"")):
            self.assertIn(says, self.ok(*command, "--json=" + out).stdout)
            with open(out) as f:
                self.assertTrue(json.load(f))
            os.unlink(out)
        # What follows --json is the argument where there is one.
        self.assertEqual(json_of("run", "reduce", "--json", a)["result"], 66)
        self.fails(1, "--json: there is no folder", "run", "reduce", a, "--json=" + self.path("none/x"))

    def test_wrong_files(self):
        """What is no array of numbers is told what it is, and what to do with it."""
        for data, text in ((b"\x89PNG\r\n\x1a\n" + bytes(20), "is a PNG picture, no .npy file; make one of it: lockstep import"),
                           (b"\xff\xd8\xff\xe0" + bytes(20), "is a JPEG picture"), (b"RIFF" + bytes(20), "is a WAV sound"),
                           (b"", "is empty, no .npy file"), (b"PK\x03\x04" + bytes(20), "is an .npz archive, no .npy file; save one of its arrays"),
                           (b"\x1f\x8b" + bytes(20), "compressed by gzip"), (b"hello", "numpy.save writes one"), (b"\x93NUMPY\x01", "truncated")):
            with open(self.path("x.npy"), "wb") as f:
                f.write(data)
            self.fails(1, text, "run", "reduce", self.path("x.npy"))
        objects = self.path("o.npy")
        np.save(objects, np.array([1, "a", None], dtype=object), allow_pickle=True)
        self.fails(1, "holds Python objects", "run", "reduce", objects)
        self.fails(1, "big-endian", "run", "transpose", self.save("b.npy", np.zeros((2, 2), ">f8")), "-o", self.path("t.npy"))
        self.fails(1, "holds records", "run", "reduce", self.save("r.npy", np.zeros(3, [("a", "f4")])))
        self.fails(2, "leave --axis out", "run", "reduce", self.save("s.npy", np.array(3.0)), "--axis", "0")
        self.fails(1, "is a .npy array already", "import", self.save("a.npy", np.zeros(3)), "-o", self.path("t.npy"))
        open(self.path("e.npy"), "w").close()
        self.fails(1, "is empty", "import", self.path("e.npy"), "-o", self.path("t.npy"))
        self.fails(2, "reshape it with NumPy", "export", self.path("s.npy"), "-o", self.path("s.png"))

    def test_no_cuda_module(self):
        """Where there is none, its absence says how one is built."""
        if any(b["name"] == "cuda" for b in json.loads(self.ok("info", "--json").stdout)["backends"]):
            self.skipTest("there is a CUDA module")
        self.fails(2, "meson -Dcuda=enabled, which needs nvcc", "run", "reduce", self.save("a.npy", np.zeros(3)), "--backend", "cuda")

    def test_broken_inputs(self):
        with open(self.save("in.npy", np.arange(100.0)), "rb") as f:
            whole = f.read()
        for name, data, text in [("short", whole[:-1], "truncated"), ("long", whole + b"x", "goes on behind"), ("empty", b"", ".npy"),
                                 ("huge", whole.replace(b"(100,), }" + 7 * b" ", b"(1000000000000,)"), "broken")]:
            with open(self.path(name + ".npy"), "wb") as f:
                f.write(data)
            self.fails(1, text, "run", "reduce", self.path(name + ".npy"))
        self.fails(1, "big-endian", "run", "reduce", self.save("big.npy", np.arange(3, dtype=">f4")))
        self.fails(1, "type", "run", "transpose", self.save("text.npy", np.array([["ab"]])), "-o", self.path("o.npy"))

    def test_large_sparse_file(self):
        """More than 4 GiB through mmap: a hole, the last element set."""
        n = (1 << 32) + 4096
        path = self.path("large.npy")
        with open(path, "wb") as f:
            np.lib.format.write_array_header_1_0(f, {"descr": "<i4", "fortran_order": False, "shape": (n // 4,)})
            try:
                f.truncate(f.tell() + n)
            except OSError as error:
                self.skipTest(f"no sparse file: {error}")
            f.seek(-4, os.SEEK_END)
            f.write(b"\1\0\0\0")
        self.assertEqual(self.ok("run", "reduce", path).stdout, b"1\n")
        self.assertEqual(self.ok("run", "reduce", path, "--reduction", "argmax").stdout, b"%d\n" % (n // 4 - 1))

    def test_verify_options(self):
        """Nonsense is a usage error that names it; every option does what it says."""
        few = ("verify", "--backend", "cpu", "--op", "shuffle", "--most-elements", "96")
        for text, arguments in (("--op", ["--op", "foo"]), ("--most-elements", ["--most-elements", "-1"]), ("--most-elements", ["--most-elements", "0"]),
                                ("--seed", ["--seed", "-1"]), ("--seed", ["--seed", "18446744073709551615"]), ("--threads", ["--threads", "-1"]),
                                ("--isa", ["--isa", "foo"]), ("no such variant on cpu; there are auto, in_place_swapped", ["--backend", "cpu", "--variant", "nonsense"]),
                                ("there are auto, streamed, permuted, ref", [*few[1:], "--variant", "tiled"]),
                                ("host memory only", ["--backend", "cpu", "--memory", "device"]),
                                ("leaves it out", ["--case", "transpose/b4/3x3", "--op", "reduce"]),
                                ("-4 is not within", ["--case", "reduce/sum/f32/full/-4"]),
                                ("src_ld is 3", ["--case", "transpose/b4/8x9/ld3,9/inplace"])):
            self.fails(2, text, "verify", *arguments)
        r = self.ok(*few).stdout.decode()
        self.assertRegex(r.splitlines()[-1], r"^(\d+) of \1 runs equal$")
        every = self.ok(*few, "--variant", "ref").stdout.decode()
        self.assertIn(" ref ", every)
        self.assertNotIn("permuted", every)
        listed = self.ok("verify", "--list", "--op", "shuffle", "--most-elements", "96", "--seed", "7").stdout.decode().splitlines()
        self.assertGreater(len(listed), 100)
        self.assertTrue(all(re.match(r"shuffle/b[48]/\w+/.*/seed7$", name) for name in listed))
        self.ok("verify", "--backend", "cpu:0", "--case", listed[0])

    def test_verify_tells_bits_from_bounds(self):
        """Rows of an order of their own are within a bound, which is not equality, and are counted apart."""
        r = self.ok("verify", "--backend", "cpu", "--case", "stencil/f32/symmetric/nearest/r4/1000").stdout.decode()
        self.assertRegex(r, r" folded +1 of +1 within the bound \(own order\)")
        self.assertRegex(r, r" tiled +1 of +1 equal")
        self.assertRegex(r.splitlines()[-1], r"^(\d) of \1 runs equal, 1 of 1 within their bound$")
        alone = self.ok("verify", "--backend", "cpu", "--case", "stencil/f32/symmetric/nearest/r4/1000", "--variant", "folded").stdout.decode()
        self.assertEqual(alone.splitlines()[-1], "0 of 0 runs equal, 1 of 1 within their bound")

    def test_digest_runs_what_it_is_told(self):
        golden = self.ok("verify", "--digest", "--backend", "cpu").stdout
        self.assertEqual(self.ok("verify", "--digest", "--backend", "cpu", "--isa", "baseline", "--threads", "1").stdout, golden)
        trace = self.path("trace.txt")
        environment = {**os.environ, "LOCKSTEP_TRACE": trace}
        subprocess.run([TOOL, "verify", "--digest", "--backend", "cpu", "--isa", "baseline"], env=environment, check=True, capture_output=True)
        self.assertTrue(os.path.getsize(trace) > 0)
        self.fails(2, "--isa", "verify", "--digest", "--isa", "foo")
        self.fails(2, "--threads", "verify", "--digest", "--threads", "-7")
        for option, value in (("--op", "reduce"), ("--variant", "ref"), ("--case", "transpose/b4/3x3"), ("--memory", "front"), ("--way", "planned"),
                              ("--arithmetic", "1"), ("--seed", "2"), ("--level", "full"), ("--most-elements", "9")):
            self.fails(2, option, "verify", "--digest", option, value)

    def test_bench_variant(self):
        results = self.path("r.txt")
        one = ("bench", "--backend", "cpu", "--case", "transpose/b4/16x16", "--seconds", "0.001")
        for name in ("ref", "tiled"):
            self.ok(*one, "--variant", name, "--json", results)
            with open(results) as f:
                self.assertEqual([r["variant"] for r in json.load(f)["benchmarks"]], [name])
        self.fails(2, "--variant zzz: no such variant on cpu; there are auto, in_place_swapped", *one, "--variant", "zzz")
        self.fails(2, "--variant streams: no such variant", *one, "--variant", "streams")  # of another op
        self.fails(2, "--variant blocks: transpose no longer has this variant; use tiles", *one, "--variant", "blocks")
        self.fails(2, "give one of them", *one, "--variant", "ref", "--variants", "ref")
        self.fails(1, 'matches --variants "zzz"', *one, "--variants", "zzz")
        self.fails(2, "crossover", "bench", "--preset", "crossover", "--variant", "ref")
        for name in ("reduce/sum/f32/full/-4", "transpose/b4/99999999999999999999x9", "reduce/sum/f32/full/9223372036854775807",
                     "transpose/b4/8x8/batch99999999999999999999"):
            self.fails(2, name, "bench", "--backend", "cpu", "--case", name)

    def test_bench_pages(self):
        results, page = self.path("r.txt"), self.path("p.txt")
        with open(self.path("other.txt"), "w") as f:
            f.write("{}")
        self.fails(1, "No such file", "bench", "--from", results, "--html", page)
        self.fails(1, "no result of lockstep bench", "bench", "--from", self.path("other.txt"), "--html", page)
        self.fails(1, "no result of lockstep bench", "bench", "--compare", self.path("other.txt"))
        self.ok("bench", "--backend", "cpu", "--case", "transpose/b4/64x64", "--seconds", "0.01", "--json", results, "--html", page)
        with open(page, encoding="utf-8") as f:
            self.assertIn("64x64", f.read())
        self.fails(2, "--html", "bench", "--from", results)
        self.ok("bench", "--from", results, "--from", results, "--html", page)
        self.ok("bench", "--backend", "cpu", "--case", "transpose/b4/64x64", "--variants", "tiled|ref", "--seconds", "0.01",
                "--nvbench", self.path("n.txt"))
        with open(self.path("n.txt")) as f:
            data = json.load(f)
        self.assertEqual(data["meta"]["version"]["json"]["string"], "1.0.0")
        states = data["benchmarks"][0]["states"]
        self.assertEqual([a["value"] for s in states for a in s["axis_values"] if a["name"] == "variant"], ["tiled", "ref"])
        for state in states:
            values = {s["tag"]: float(s["data"][0]["value"]) for s in state["summaries"] if s["data"][0]["type"] != "string"}
            times = [values["nv/cpu_only/time/cpu/" + q] for q in ("q1", "median", "q3")]
            self.assertTrue(0 < times[0] <= times[1] <= times[2] < 1, times)
            self.assertAlmostEqual(values["nv/cpu_only/bw/global/bytes_per_second"] * times[1], 2 * 64 * 64 * 4, delta=1)
        self.fails(2, "--filter", "bench", "--filter", "(")
        self.fails(1, "none of these", "bench", "--backend", "cpu", "--case", "transpose/b4/8x8", "--seconds", "0.01", "--compare", results)
        self.fails(1, "No such file", "bench", "--from", results, "--html", self.path("none/p.html"))
        # What cannot be written is found out before anything is measured.
        for option in ("--json", "--csv", "--html", "--nvbench"):
            self.fails(1, f"{option}: there is no folder", "bench", "--preset", "full", option, self.path("none/f.txt"))
            self.fails(1, f"{option}: {self.folder.name} is a folder", "bench", "--preset", "full", option, self.folder.name)
        self.fails(2, "--from measures nothing", "bench", "--from", results, "--html", page, "--csv", self.path("c.txt"))
        for seconds in ("-1", "nan"):
            self.fails(2, "--seconds", "bench", "--seconds", seconds)
            self.fails(2, "--seconds", "calibrate", "--seconds", seconds)
        self.fails(1, 'on cpu: no case matches --filter "no such case"', "bench", "--backend", "cpu", "--filter", "no such case")

    def test_bench_wrong_results(self):
        """A backend that gets a bit wrong: its row is named, not timed, and the exit code is 1."""
        def bench(variants, *more):
            return subprocess.run([TOOL, "bench", "--backend", "wrong", "--case", "transpose/b4/24x40", "--seconds", "0.01", "--variants", variants,
                                   "--json", self.path("w.txt"), *more], capture_output=True, env={**os.environ, "LOCKSTEP_BACKEND_PATH": MODULES})
        for variants, code, timed in (("right", 0, ["right"]), ("wrong", 1, []), ("all", 1, ["right"])):
            r = bench(variants)
            self.assertEqual(r.returncode, code, (variants, r.stdout, r.stderr))
            with open(self.path("w.txt")) as f:
                found = json.load(f)
            self.assertEqual([row["variant"] for row in found["benchmarks"]], timed)
            self.assertEqual(len(found["wrong"]), code)
            self.assertEqual("transpose/b4/24x40 on wrong variant wrong: WRONG: bits differ" in r.stdout.decode(), bool(code))
        os.rename(self.path("w.txt"), self.path("before.txt"))
        self.assertEqual(bench("right", "--compare", self.path("before.txt")).returncode, 0)
        self.assertEqual(bench("all", "--compare", self.path("before.txt")).returncode, 1, "a comparison hides it")
        self.assertEqual(bench("wrong", "--no-verify").returncode, 0)

    def test_bench_compare(self):
        """Two files against one another: what is faster, slower, the same, unclear; other machines are named."""
        row = {"name": "transpose/b4/64x64", "backend": "cpu", "source": "lockstep", "variant": "tiled", "cold": False, "noise": 0.03}
        meta = {"devices": {"cpu": {"name": "A", "detail": "2 threads"}}, "threads": 2}

        def file(name, ms, more={}, meta=meta):
            rows = [{**row, "name": f"case{i}", "median_ms": m, **more} for i, m in enumerate(ms)]
            with open(self.path(name), "w") as f:
                json.dump({"meta": meta, "limits": {}, "benchmarks": rows}, f)
            return self.path(name)

        def words(r):
            return [line.split()[0] for line in r.stdout.decode().splitlines() if line.split()[0] in ("FAST", "SLOW", "SAME", "unclear")]
        old, new = file("old.txt", [1, 1, 1]), file("new.txt", [0.9, 1.02, 1.1, 5])
        r = run("bench", "--from", new, "--compare", old)
        self.assertEqual((r.returncode, words(r)), (1, ["FAST", "SAME", "SLOW"]), r.stderr)
        self.assertIn("1 have no earlier result; 0 earlier ones were not run", r.stdout.decode())
        r = run("bench", "--from", file("loud.txt", [1.19, 0.81, 1.3, 0.2], {"noise": 0.2}), "--compare", file("four.txt", [1, 1, 1, 1]))
        self.assertEqual((r.returncode, words(r)), (1, ["unclear", "unclear", "SLOW", "FAST"]), "noise hides no more than itself")
        # What auto ran is compared with what auto ran, whichever variant that is; named ones by their names.
        tiled, streams = {"auto": True}, {"auto": True, "variant": "streams"}
        for before, after, code in ((tiled, streams, 1), ({}, streams, 1), ({}, {"variant": "streams"}, None), ({"auto": False}, tiled, 1)):
            r = run("bench", "--from", file("after.txt", [2], after), "--compare", file("before.txt", [1], before))
            if code is None:
                self.assertIn("none of these", r.stderr.decode())
                continue
            self.assertEqual((r.returncode, words(r)), (code, ["SLOW"]), (before, after, r.stderr))
            self.assertEqual("(was tiled)" in r.stdout.decode(), after is streams)
        r = self.ok("bench", "--from", file("other.txt", [1], meta={"devices": {"cpu": {"name": "B", "detail": "2 threads"}}}), "--compare", old)
        self.assertIn('the name of cpu was "A", now it is "B"', r.stdout.decode())
        self.assertIn('--threads was "2", now it is "0"', r.stdout.decode())
        self.assertEqual(run("bench", "--from", new, "--compare", new).returncode, 0)
        self.fails(2, "one file", "bench", "--from", new, "--from", old, "--compare", old)
        self.fails(1, "none of these", "bench", "--from", file("cold.txt", [1], {"cold": True}), "--compare", old)
        with open(self.path("spoilt.txt"), "w") as f:
            f.write('{"benchmarks": [{"name": "case0"}]}')
        self.fails(1, "spoilt.txt", "bench", "--from", self.path("spoilt.txt"), "--compare", self.path("spoilt.txt"))

    def test_bench_csv(self):
        self.ok("bench", "--backend", "cpu", "--case", "transpose/b4/64x64", "--case", "permute/b4/4x5x6/perm2,0,1", "--seconds", "0.01",
                "--csv", self.path("c.txt"))
        with open(self.path("c.txt"), newline="") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual([r["name"] for r in rows], ["transpose/b4/64x64", "permute/b4/4x5x6/perm2,0,1"])
        for r in rows:
            self.assertNotIn(None, r)
            self.assertGreater(float(r["median_ms"]), 0)
            self.assertEqual(r["checked"], "bits equal")

    def test_bench_peers(self):
        # Stand-ins for peer programs: one that gets the right data and answers, one with a wrong result, one
        # that dies in the middle, one that has nothing for this backend, one that does not start, one that does not end;
        # of those that take turns one slower, one faster, one that dies at its second.
        head = "#!/usr/bin/env python3\nimport json, os, sys\nsay = lambda **a: print(json.dumps(a), flush=True)\n"
        loop = "for line in sys.stdin:\n  name = line.split()[0]\n  "
        same = ("rows, cols = map(int, name.split('/')[2].split('x')); src, want = os.pread(3, 1 << 20, 0), os.pread(4, 1 << 20, 0); "
                "mine = b''.join(src[(i * cols + j) * 4:(i * cols + j) * 4 + 4] for j in range(cols) for i in range(rows)); "
                "say(name=name, peer='Right 1.0', checked='bits equal' if mine == want else 'other data', ms=[1.0, 2.0, 3.0]); say(done=True)\n")
        turns = (loop + "say(name=name, peer='{}', checked='bits equal', waits=True)\n"
                 "  while n := int(sys.stdin.readline()): say(ms=[{}] * n)\n  say(done=True)\n")
        scripts = {"peer_right": head + loop + same,
                   "peer_slow": head + turns.format("Slow 1.0", 5000.0), "peer_fast": head + turns.format("Fast 1.0", 1e-9),
                   "peer_leaves": head + loop + "say(name=name, peer='Gone 1.0', checked='bits equal', waits=True)\n"
                                                "  n = int(sys.stdin.readline()); say(ms=[1.0] * n); sys.stdin.readline(); os.abort()\n",
                   "peer_wrong": head + loop + "say(name=name, peer='Wrong 1.0', checked='WRONG: bits differ', ms=[]); say(done=True)\n",
                   "peer_dies": head + loop + "say(done=True) if '16x' in name else os.abort()\n",
                   "peer_stays": head + loop + "say(done=True)\nimport time\ntime.sleep(100)\n",
                   "peer_away": head, "peer_broken": head + "sys.exit(3)\n", "peer_helper.py": head + "sys.exit(4)\n"}
        with tempfile.TemporaryDirectory() as folder:
            for name, text in scripts.items():
                with open(os.path.join(folder, name), "w") as f:
                    f.write(text)
                os.chmod(f.name, 0o755)
            results = self.path("r.txt")
            begun = time.monotonic()
            self.ok("bench", "--backend", "cpu", "--case", "transpose/b4/16x24", "--case", "transpose/b4/33x20", "--seconds", "0.01", "--peers", folder,
                    "--json", results)
            self.assertLess(time.monotonic() - begun, 90)
        with open(results) as f:
            found = json.load(f)
        answers = [(r["name"], r["checked"], r["median_ms"]) for r in found["benchmarks"] if r["source"] == "Right 1.0"]
        self.assertEqual(answers, [("transpose/b4/16x24", "bits equal", 2.0), ("transpose/b4/33x20", "bits equal", 2.0)])
        self.assertEqual({r["source"] for r in found["benchmarks"]}, {"Right 1.0", "Slow 1.0", "Fast 1.0", "lockstep"})
        # This far apart the first look settles it.
        paired = {r["source"]: r for r in found["benchmarks"] if "rounds" in r}
        self.assertEqual({(name, r["rounds"], r["verdict"]) for name, r in paired.items()}, {("Slow 1.0", 18, "ahead"), ("Fast 1.0", 18, "behind")})
        for r in paired.values():
            self.assertTrue(r["ratio_low"] <= r["ratio"] <= r["ratio_high"], r)
        ours = [r for r in found["benchmarks"] if r["source"] == "lockstep"]
        self.assertEqual({(r["verdict"], r["over_best_peer"] < 1e-3) for r in ours}, {("behind", True)})
        self.assertEqual(sorted(found["skipped"]),
                         ["transpose/b4/16x24 by peer_broken: it ended with exit code 3", "transpose/b4/16x24 by peer_leaves: it died of signal 6",
                          "transpose/b4/16x24 by peer_wrong: Wrong 1.0: WRONG: bits differ",
                          "transpose/b4/33x20 by peer_dies: it died of signal 6", "transpose/b4/33x20 by peer_wrong: Wrong 1.0: WRONG: bits differ"])
        self.fails(1, "no peer programs there", "bench", "--backend", "cpu", "--case", "transpose/b4/16x24", "--peers", self.path("none"))

    def test_crossover(self):
        """The size from which the GPU is the faster, of times made up: it pays 10 us a call, and moves 20 x the bytes a second."""
        runs = []
        for backend, start, gb_s in (("cpu", 0, 50), ("cuda", 10e-6, 1000)):
            rows = []
            for n in [4 ** k for k in range(4, 14)]:
                seconds = start + 4 * n / gb_s / 1e9
                rows.append({"name": f"square_sum/ssq/f32/full/{n}", "op": "square_sum", "backend": backend, "device": backend.upper(),
                             "source": "lockstep", "variant": "v", "bytes": 4 * n, "median_ms": seconds * 1e3, "noise": 0, "limit": "read",
                             "gb_s": 4 * n / seconds / 1e9, "limit_gb_s": gb_s, "fraction": 4 * n / seconds / 1e9 / gb_s})
            runs.append({"meta": {"devices": {backend: {"name": backend.upper()}}}, "limits": {backend: {}}, "benchmarks": rows})
            with open(self.path(backend + ".txt"), "w") as f:
                json.dump(runs[-1], f)
        self.ok("bench", "--from", self.path("cpu.txt"), "--from", self.path("cuda.txt"), "--html", self.path("p.txt"))
        with open(self.path("p.txt"), encoding="utf-8") as f:
            found = re.search(r">CUDA, device memory</td><td[^>]*>([0-9.]+) KiB</td>", f.read())
        self.assertAlmostEqual(float(found[1]), 10e-6 / (1 / 50e9 - 1 / 1000e9) / 1024, delta=50)  # 514 KiB; sizes are 4 x apart

    def test_places_are_checked_before_work(self):
        """What cannot be written is said before anything is measured or drawn, and names an option that there is."""
        gone = self.path("none/x")
        self.fails(1, "-o: there is no folder", "calibrate", "-o", gone)
        self.fails(1, "--pictures: there is no folder", "demo", "--pictures", gone)
        self.fails(1, "--svg: there is no folder", "explain", "transpose", "--svg", gone)
        self.fails(2, "--largest", "calibrate", "--largest", "nan")

    def test_export(self):
        """Each kind that --help offers, of gray and of color; sizes and shades that mean nothing are refused."""
        shades = self.save("g.npy", np.arange(12, dtype="f4").reshape(3, 4) * 20)
        color = self.save("c.npy", np.arange(24, dtype="u1").reshape(2, 4, 3))
        for name, head, pixels in (("a.pgm", b"P5", 12), ("a.ppm", b"P6", 36), ("a.PGM", b"P5", 12)):
            self.ok("export", shades, "-o", self.path(name))
            with open(self.path(name), "rb") as f:
                data = f.read()
            self.assertEqual((data[:2], len(data)), (head, len(b"P5\n4 3\n255\n") + pixels))
            os.unlink(self.path(name))
        self.ok("export", color, "-o", self.path("c.ppm"))
        os.unlink(self.path("c.ppm"))
        self.fails(2, "end the name in .png or .ppm", "export", color, "-o", self.path("c.pgm"))
        self.fails(2, "end the name in .png, .pgm or .ppm", "export", shades, "-o", self.path("c.gif"))
        upright, turned = self.path("u.pgm"), self.path("t.pgm")
        self.ok("export", shades, "-o", upright)
        self.ok("export", self.save("f.npy", np.asfortranarray(np.load(shades))), "-o", turned)
        with open(upright, "rb") as one, open(turned, "rb") as two:
            self.assertEqual(one.read(), two.read(), "Fortran order is another picture")
        os.unlink(upright), os.unlink(turned)
        for width in ("0", "-5"):
            self.fails(2, "--width", "export", shades, "-o", self.path("a.pgm"), "--width", width)
        for low, high in (("nan", "1"), ("0", "inf"), ("3", "3"), ("5", "-5")):
            self.fails(2, "the smaller one first", "export", shades, "-o", self.path("a.pgm"), "--low=" + low, "--high=" + high)

    def test_completion(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.ok("completion", shell).stdout.decode()
            for word in ("transpose", "demo", "-l boundary" if shell == "fish" else "--boundary"):
                self.assertIn(word, script)
        script = self.ok("completion", "bash").stdout.decode()

        def offers(*words):
            with open(self.path("c.txt"), "w") as f:
                f.write(script + f"COMP_WORDS=({' '.join(words)} '') COMP_CWORD={len(words) - 1}; _lockstep; echo ${{COMPREPLY[@]}}\n")
            r = subprocess.run(["bash", self.path("c.txt")], capture_output=True, text=True, cwd=self.folder.name)
            self.assertEqual(r.stderr, "")
            return r.stdout.split()
        self.assertEqual(offers("lockstep", "run", "st"), ["stencil"])
        self.assertEqual(offers("lockstep", "ben"), ["bench"])
        # An op's own options, and the values that an option takes.
        self.assertEqual(offers("lockstep", "run", "transpose", "--b"), ["--backend"])
        self.assertEqual(offers("lockstep", "run", "stencil", "--b"), ["--boundary", "--backend"])
        self.assertEqual(offers("lockstep", "run", "stencil", "--boundary", "re"), ["reflect"])
        self.assertEqual(offers("lockstep", "bench", "--preset", "r"), ["readme"])
        self.assertEqual(offers("lockstep", "bench", "--preset", "=", "r"), ["readme"])
        self.assertEqual(offers("lockstep", "verify", "--op", "s"), ["square_sum", "stencil", "shuffle", "scan", "sums"])
        self.assertEqual(offers("lockstep", "explain", "tr"), ["transpose"])
        self.assertEqual(offers("lockstep", "completion", "z"), ["zsh"])


if __name__ == "__main__":
    unittest.main()
