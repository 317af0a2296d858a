#!/usr/bin/env python3
"""real_input_test.py LOCKSTEP - files that packages ship, imported and worked on
by lockstep, against other programs: ImageMagick, SoX, awk and NumPy. A file or a
program that is missing is a skip that says so, and makes the whole a skip."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

TOOL = sys.argv.pop(1)
PICTURE = "/usr/share/backgrounds/mate/abstract/Elephants_5640x3172.jpg"
SIGNAL = "/usr/share/sounds/alsa/Front_Center.wav"
TABLE = "/usr/share/proj/egm96_15.gtx"
TEXT = "/usr/share/unicode/UnicodeData.txt"


def need(path, program=None):
    if not os.path.exists(path):
        raise unittest.SkipTest(f"{path} is missing (tools/real_input/packages)")
    if program and not shutil.which(program):
        raise unittest.SkipTest(f"{program} is missing")


class RealInput(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def tool(self, *args):
        r = subprocess.run([TOOL, *map(str, args)], capture_output=True, timeout=120)
        if b"built without" in r.stderr:
            raise unittest.SkipTest(r.stderr.decode())
        self.assertEqual(r.returncode, 0, (args, r.stderr))
        return r.stdout

    def imported(self, source, *options):
        self.tool("import", source, "-o", self.path("in.npy"), *options)
        return np.load(self.path("in.npy"), mmap_mode="r")

    def op(self, op, *options):
        self.tool("run", op, self.path("in.npy"), "-o", self.path("out.npy"), *options)
        return np.load(self.path("out.npy"))

    def test_picture_against_imagemagick(self):
        need(PICTURE, "convert")
        color = self.imported(PICTURE)
        rgb = subprocess.run(["convert", PICTURE, "-depth", "8", "rgb:-"], capture_output=True)
        if rgb.returncode != 0 or not rgb.stdout:
            raise unittest.SkipTest("ImageMagick cannot read it: " + rgb.stderr.decode()[:200])
        self.assertEqual(color.shape, (3172, 5640, 3))
        self.assertEqual(color.tobytes(), rgb.stdout)
        np.testing.assert_array_equal(self.op("permute", "--axes", "2,0,1"), color.transpose(2, 0, 1))
        gray = self.imported(PICTURE, "--as", "gray")
        self.assertGreaterEqual(gray.nbytes, 64 << 20)
        wide = color.astype("i4")
        luma = (299 * wide[..., 0] + 587 * wide[..., 1] + 114 * wide[..., 2]).astype("f4") / np.float32(1000)
        np.testing.assert_array_equal(gray, luma)
        np.testing.assert_array_equal(self.op("transpose"), gray.T)
        edges = self.op("stencil", "--radius", 1, "--form", "symmetric", "--coefficients=-4,1,1", "--boundary", "nearest")
        p = np.pad(gray.astype("f8"), 1, mode="edge")
        exact = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * p[1:-1, 1:-1]
        # Five taps in f32: the op's own bound, taps * 2^-24 * sum |c x|.
        self.assertLessEqual(np.abs(edges - exact).max(), 5 * 2.0**-24 * 8 * 255)

    def test_signal_against_sox(self):
        need(SIGNAL, "sox")
        signal = self.imported(SIGNAL)
        raw = subprocess.run(["sox", SIGNAL, "-t", "raw", "-e", "floating-point", "-b", "32", "-L", "-"], capture_output=True, check=True)
        np.testing.assert_array_equal(signal, np.frombuffer(raw.stdout, "<f4"))
        stat = subprocess.run(["sox", SIGNAL, "-n", "stat"], capture_output=True, text=True).stderr
        rms = float(next(line.split(":")[1] for line in stat.splitlines() if line.startswith("RMS") and "amplitude" in line))
        norm = float(self.tool("run", "square_sum", self.path("in.npy"), "--reduction", "norm2"))
        self.assertAlmostEqual(norm / len(signal) ** 0.5, rms, delta=1e-6)  # SoX prints six digits

    def test_table_against_numpy(self):
        need(TABLE)
        table = self.imported(TABLE)
        with open(TABLE, "rb") as f:
            rows, columns = np.frombuffer(f.read(40)[32:], ">i4")
        expected = np.fromfile(TABLE, ">f4", offset=40).reshape(rows, columns)
        np.testing.assert_array_equal(table, expected)
        np.testing.assert_array_equal(self.op("reduce", "--reduction", "argmax", "--axis", 1), expected.argmax(1))
        np.testing.assert_array_equal(self.op("reduce", "--reduction", "min", "--axis", 0), expected.min(0))
        sums = self.op("reduce", "--reduction", "sum", "--axis", 0)
        np.testing.assert_allclose(sums, expected.astype("f8").sum(0), rtol=1e-12, atol=1e-9)

    def test_text_against_awk(self):
        need(TEXT, "awk")
        text = self.imported(TEXT, "--as", "text")
        self.tool("import", TEXT, "--as", "lines", "-o", self.path("lines.npy"))
        lines = np.load(self.path("lines.npy"))
        with open(TEXT, "rb") as f:
            lengths = subprocess.run(["awk", "{ print length($0) + 1 }"], stdin=f, capture_output=True,
                                     env={"LC_ALL": "C", "PATH": os.environ["PATH"]}).stdout
        np.testing.assert_array_equal(np.diff(lines), np.array(lengths.split(), "i8"))
        sums = self.op("reduce", "--reduction", "sum", "--offsets", self.path("lines.npy"))
        np.testing.assert_array_equal(sums, np.add.reduceat(text.astype("i8"), lines[:-1]))

    def test_demo_runs_on_what_there_is(self):
        small = (np.arange(96 * 80) % 251).astype("u1")
        with open(self.path("small.pgm"), "wb") as f:
            f.write(b"P5\n80 96\n255\n" + small.tobytes())
        self.assertEqual(self.imported(self.path("small.pgm")).tobytes(), small.tobytes())
        report = json.loads(self.tool("demo", "--quick", "--json", "--picture", self.path("small.pgm")))
        self.assertGreaterEqual(len(report["rows"]), 10)
        for row in report["rows"]:
            self.assertTrue(row["bits_equal"], row)
        self.assertEqual({row["family"] for row in report["rows"]}, {"transpose", "square_sum", "stencil", "reduce"})


if __name__ == "__main__":
    program = unittest.main(verbosity=2, exit=False)
    for test, why in program.result.skipped:
        print(f"not shown: {test.id()}: {why}", file=sys.stderr)
    # A proof that was left out is none: the test as a whole is then skipped, not passed.
    sys.exit(0 if program.result.wasSuccessful() and not program.result.skipped else 77 if program.result.wasSuccessful() else 1)
