#!/usr/bin/env python3
"""formats_test.py LOCKSTEP - import and export beside what wrote the files: every variant of the formats is made here, so
the samples are known. Pillow's and SciPy's readings are compared too where they are installed, and NumPy's of tables."""
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import warnings
import zlib

import numpy as np

try:
    from PIL import Image
except ImportError:
    Image = None
try:
    import scipy.io.wavfile as wavfile
except ImportError:
    wavfile = None

TOOL = sys.argv.pop(1)
random = np.random.default_rng(5)


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))  # Adam7


def packed(samples, depth):
    """Rows of a PNG, each behind the number of its filter, 0 (none) or 1 (sub)."""
    out = b""
    for number, row in enumerate(samples):
        if depth < 8:
            bits = np.unpackbits(row.astype("u1").reshape(-1, 1), axis=1)[:, 8 - depth:].ravel()
            data = np.packbits(bits)
        else:
            data = row.ravel().astype(">u2").view("u1") if depth == 16 else row.ravel().astype("u1")
        if number % 2:
            step = 1 if depth < 8 else row[0].size * depth // 8
            before = np.concatenate([np.zeros(step, "u1"), data])[:len(data)]
            data = data - before
        out += bytes([number % 2]) + data.tobytes()
    return out


def png(samples, color, depth, interlaced=False, chunks=b""):
    """samples: (height, width, channels), as they are stored."""
    height, width = samples.shape[:2]
    parts = [samples[y::dy, x::dx] for x, y, dx, dy in PASSES] if interlaced else [samples]
    data = b"".join(packed(part, depth) for part in parts if part.size)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)) + chunks +
            chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


def wav(data, code, channels, bits, container, extensible=False):
    block = channels * container
    written = 0xFFFE if extensible else code
    form = struct.pack("<HHIIHH", written, channels, 8000, 8000 * block, block, 8 * container if extensible else bits)
    if extensible:
        form += struct.pack("<HHIH", 22, bits, 0, code) + b"\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71"
    body = b"WAVE" + b"fmt " + struct.pack("<I", len(form)) + form + b"LIST\3\0\0\0abc\0" + b"data" + struct.pack("<I", len(data)) + data
    body += b"\0" * (len(data) % 2)
    return b"RIFF" + struct.pack("<I", len(body)) + body


class Formats(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def run_tool(self, *args):
        r = subprocess.run([TOOL, *map(str, args)], capture_output=True, timeout=120)
        if b"built without" in r.stderr:
            raise unittest.SkipTest(r.stderr.decode())
        return r

    def imported(self, name, data, *options):
        r = self.run_tool("import", self.write(name, data), "-o", self.path("out.npy"), *options)
        self.assertEqual(r.returncode, 0, (name, r.stderr))
        return np.load(self.path("out.npy"))

    def refused(self, name, data, *words, options=()):
        r = self.run_tool("import", self.write(name, data), "-o", self.path("out.npy"), *options)
        self.assertEqual(r.returncode, 1, (name, r.stderr))
        for word in (name, *words):
            self.assertIn(word, r.stderr.decode(), name)

    def same(self, got, wanted, text):
        self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape), text)
        np.testing.assert_array_equal(got, wanted, err_msg=str(text))

    # PNG

    def test_png_samples_as_stored(self):
        gamma = chunk(b"gAMA", struct.pack(">I", 100000)) + chunk(b"sBIT", b"\5")
        for color, channels in ((0, 1), (2, 3), (4, 2), (6, 4)):
            for depth in (1, 2, 4, 8, 16) if color == 0 else (8, 16):
                for interlaced in (False, True):
                    stored = random.integers(0, 1 << depth, (11, 13, channels))
                    clear = b"" if color > 2 else chunk(b"tRNS", struct.pack(f">{channels}H", *stored[2, 3]))
                    file = png(stored, color, depth, interlaced, (gamma if color == 0 else gamma[:16]) + clear)
                    wanted = (stored * (255 // ((1 << depth) - 1)) if depth < 8 else stored).astype("u2" if depth == 16 else "u1")
                    wanted = wanted[..., 0] if channels == 1 else wanted
                    text = (color, depth, interlaced)
                    self.same(self.imported("x.png", file), wanted, text)
                    # Pillow cuts colors of 16 bits to 8.
                    if Image and (depth < 16 or color == 0):
                        picture = Image.open(self.path("x.png"))
                        read = np.asarray(picture.convert("L") if depth == 1 else picture)
                        self.same(wanted, read.astype(wanted.dtype), ("Pillow", text))

    def test_png_palette(self):
        for depth in (1, 2, 4, 8):
            for interlaced in (False, True):
                colors = random.integers(0, 256, (1 << depth, 3)).astype("u1")
                stored = random.integers(0, 1 << depth, (9, 7, 1))
                for alphas in (0, 1, len(colors)):
                    alpha = np.full(len(colors), 255, "u1")
                    alpha[:alphas] = random.integers(0, 256, alphas)
                    chunks = chunk(b"PLTE", colors.tobytes()) + (chunk(b"tRNS", alpha[:alphas].tobytes()) if alphas else b"")
                    table = np.column_stack([colors, alpha]) if alphas else colors
                    text = (depth, interlaced, alphas)
                    file = png(stored, 3, depth, interlaced, chunks)
                    self.same(self.imported("x.png", file), table[stored[..., 0]], text)
                    if Image:
                        read = np.asarray(Image.open(self.path("x.png")).convert("RGBA" if alphas else "RGB"))
                        self.same(read, table[stored[..., 0]], ("Pillow", text))
        self.refused("x.png", png(np.full((2, 2, 1), 3), 3, 4, False, chunk(b"PLTE", bytes(6))), "row 0, column 0", "color 3 of a palette of 2")

    def test_png_gray(self):
        for color, channels in ((2, 3), (6, 4)):
            for depth in (8, 16):
                stored = random.integers(0, 1 << depth, (5, 6, channels))
                exact = stored[..., 0] * 299 + stored[..., 1] * 587 + stored[..., 2] * 114
                gray = self.imported("x.png", png(stored, color, depth), "--as", "gray")
                self.same(gray, (exact / 1000).astype("f4"), (color, depth))
        stored = random.integers(0, 65536, (5, 6, 2))
        self.same(self.imported("x.png", png(stored, 4, 16), "--as", "gray"), stored[..., 0].astype("f4"), "gray and alpha")

    def test_damaged_png(self):
        file = bytearray(png(random.integers(0, 256, (20, 20, 3)), 2, 8, False, chunk(b"tRNS", bytes(6))))
        self.refused("x.png", file[:-1], "damaged", "the file ends too early", "get the file again")
        self.refused("x.png", file[:len(file) // 2], "in row ", "of 20", "the file ends too early")
        wide = random.integers(0, 256, (1, 1000003, 1))  # libpng's own limit is a million
        self.same(self.imported("y.png", png(wide, 0, 8)), wide[..., 0].astype("u1"), "wide")
        file[45] ^= 1  # in tRNS
        self.refused("x.png", file, "damaged", "CRC error")

    # JPEG

    def test_jpeg_beside_pillow(self):
        if not Image:
            self.skipTest("Pillow is missing")
        smooth = np.add.outer(np.arange(40) * 3, np.arange(51) * 2)
        for mode, channels in (("L", 1), ("RGB", 3), ("CMYK", 4)):
            stored = np.stack([(smooth + 60 * c) % 256 for c in range(channels)], axis=-1).astype("u1")
            picture = Image.fromarray(stored[..., 0] if channels == 1 else stored, mode)
            exif = Image.Exif()
            exif[0x0112] = 6  # to be shown turned by a quarter
            for options in ({}, {"progressive": True}, {"subsampling": 2}, {"subsampling": 1}, {"quality": 100, "subsampling": 0}, {"exif": exif}):
                picture.save(self.path("x.jpg"), **options)
                with open(self.path("x.jpg"), "rb") as f:
                    file = f.read()
                read = np.asarray(Image.open(self.path("x.jpg")))
                self.same(self.imported("x.jpg", file), read, (mode, options))
            self.refused("x.jpg", file[:-2], "damaged", "get the file again")
            self.refused("x.jpg", file[:-40], "damaged in row ", "of 40 near byte ")
            at = file.index(b"\xFF\xC0") + 4
            self.refused("x.jpg", file[:at] + b"\x0C" + file[at + 1:], "a kind of JPEG that is not read", "precision 12", "PNG")
            if mode == "CMYK":
                self.refused("x.jpg", file, "CMYK", "convert it to RGB", options=("--as", "gray"))

    # PBM, PGM, PPM

    def test_pnm(self):
        bits = random.integers(0, 2, (5, 11))
        shades = (255 * (1 - bits)).astype("u1")
        rows = b"".join(np.packbits(row.astype("u1")).tobytes() for row in bits)
        plain = "\n".join(" ".join(map(str, row)) for row in bits).encode()
        pictures = [("x.pbm", b"P4 11 5\n" + rows, shades), ("x.pbm", b"P1 # c\n11\r\n5\n" + plain + b"\n", shades),
                    ("x.pbm", b"P1\r11\r5\r" + plain.replace(b" ", b""), shades)]
        for channels, binary, text in ((1, 5, 2), (3, 6, 3)):
            for most in (1, 15, 255, 256, 65535):
                stored = random.integers(0, most + 1, (5, 7, channels))
                wanted = stored.astype("u1" if most < 256 else "u2")
                wanted = wanted[..., 0] if channels == 1 else wanted
                data = stored.astype("u1" if most < 256 else ">u2").tobytes()
                for end in ("\n", "\r\n", "\r", " "):
                    header = end.join([f"P{binary}", "7", "5", str(most), ""]).encode()
                    pictures.append(("x.ppm", header + data, wanted))
                header = f"P{text}\n# c\n7 5\n{most}\n".encode()
                pictures.append(("x.ppm", header + " ".join(map(str, stored.ravel())).encode(), wanted))
        for name, file, wanted in pictures:
            self.same(self.imported(name, file), wanted, file[:20])
            # Pillow scales other largest values than 255 and 65535 to them; the bytes behind CR LF it reads as pixels.
            if Image and b"\r" not in file[:20] and (name == "x.pbm" or b"255" in file[:20]):
                self.same(np.asarray(Image.open(self.path(name)).convert("L" if name == "x.pbm" else None)), wanted, ("Pillow", file[:20]))
        pixels = bytes(range(35))
        self.refused("x.pgm", b"P5 7 5 255\n" + pixels[:-1], "need 35 bytes, 34 follow", "byte 11")
        self.refused("x.pgm", b"P5 7 5 255\n" + pixels + b"\r\n", "35 bytes, 37 follow", "line ends were converted")
        self.refused("x.pgm", b"P5 7 5 9\n" + pixels, "sample 10 is 10, beyond 9")
        self.refused("x.pgm", b"P2 1 2 9 1", "the file ends at byte 10")
        self.refused("x.pgm", b"P2 1 2 9 1 x", "no number at byte 11")
        self.refused("x.pbm", b"P1 3 1 0 1 2", "at byte 11", "0 or 1")
        self.refused("x.pam", b"P7\nWIDTH 1\n", "P7 is not read", "PPM (P6)")

    # WAV

    def test_wav_integers(self):
        for bits, container in ((8, 1), (5, 1), (12, 2), (16, 2), (20, 3), (24, 3), (24, 4), (20, 4), (32, 4), (36, 5), (53, 8)):
            for channels in (1, 2, 5):
                for extensible in (False, True):
                    values = random.integers(-(1 << bits - 1), 1 << bits - 1, (6, channels))
                    stored = values << 8 * container - bits
                    if container == 1:
                        stored = stored + 128
                    data = b"".join(int(v).to_bytes(container, "little", signed=container > 1) for v in stored.ravel())
                    wanted = np.ldexp(values.astype("f8"), 1 - bits).astype("f4" if bits <= 24 else "f8")
                    wanted = wanted[:, 0] if channels == 1 else wanted
                    text = (bits, container, channels, extensible)
                    file = wav(data, 1, channels, bits, container, extensible)
                    self.same(self.imported("x.wav", file), wanted, text)
                    if wavfile and bits in (8, 16, 24, 32) and bits == 8 * container:
                        read = wavfile.read(self.path("x.wav"))[1]
                        read = read.astype("f8") - 128 if bits == 8 else read.astype("f8")
                        self.same(wanted.astype("f8"), read / (1 << {8: 7, 16: 15, 24: 31, 32: 31}[bits]), ("SciPy", text))

    def test_wav_floats(self):
        for kind in ("f4", "f8"):
            for channels in (1, 2):
                values = random.standard_normal((9, channels)).astype(kind)
                values[0] = np.nan
                file = wav(values.tobytes(), 3, channels, 8 * values.itemsize, values.itemsize)
                wanted = values[:, 0] if channels == 1 else values
                self.same(self.imported("x.wav", file), wanted, kind)
                if wavfile:
                    self.same(wavfile.read(self.path("x.wav"))[1], wanted, ("SciPy", kind))

    def test_wav_refused(self):
        data = bytes(range(240))
        file = wav(data, 1, 2, 16, 2)
        for size in (0, 0xFFFFFFFF, len(data) + 2):
            at = file.index(b"data") + 4
            self.refused("x.wav", file[:at] + struct.pack("<I", size) + file[at + 4:], f"says {size} bytes, 240 follow", "ffmpeg")
        self.refused("x.wav", file[:-2], "says 240 bytes, 238 follow")
        self.refused("x.wav", file[:4] + struct.pack("<I", 40) + file[8:], "its header says 48 bytes")
        self.refused("x.wav", wav(data[:-1], 1, 2, 16, 2), "239 bytes of data", "no multiple of 4")
        self.refused("x.wav", wav(data, 1, 1, 24, 4), "sample 1", "the lowest 8 of 4 bytes are not 0")
        self.refused("x.wav", wav(data, 7, 1, 8, 1), "mu-law", "pcm_s24le")
        self.refused("x.wav", wav(data, 3, 1, 16, 2), "floats of 16 bits")
        self.refused("x.wav", wav(data, 1, 1, 64, 8), "integers of 64 bits")
        self.refused("x.wav", b"RIFX" + file[4:], "big-endian RIFX")
        self.refused("x.wav", b"RIFF\4\0\0\0WAVE", "without data")

    # Tables

    def test_tables_beside_numpy(self):
        tables = [(b"1,2\n3,4\n", ","), (b"\xef\xbb\xbf1,2\n3,4\n", ","), (b"1,2\r3,4\r", ","), (b"1;2\r\n3;4", ";"), (b"1\t2\n3\t4\n", "\t"),
                  (b"  1   2 \n\n3 4 # c\n# d\n", None), (b"1e-400 1e400\n-1e400 -1e-400\n", None), (b"12345678901234567890123 9007199254740993\n", None),
                  (b"4.9e-324 2.4703282292062327208e-324\n", None), (b"nan inf\n-inf +5\n", None), (b"1e5 -0\n.5 5.\n", None), (b"7\n8\n", None),
                  (b"0." + b"1" * 2000 + b" 1\n", None)]
        for file, delimiter in tables:
            wanted = np.loadtxt(self.write("y.csv", file.removeprefix(b"\xef\xbb\xbf")), delimiter=delimiter, ndmin=2)
            got = self.imported("x.csv", file)
            self.same(got, wanted, file)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted), err_msg=str(file))
        nan = np.nan
        for file, wanted in ((b"a,b\n1,\n,4\n", [[1, nan], [nan, 4]]), (b'"a, b" "c"\n1 2\n', [[1, 2]]), (b"Wert;\xc3\x9c\n1;2\n", [[1, 2]]), (b"1\t\t3\n", [[1, nan, 3]]),
                             (b",\n1,2\n", [[nan, nan], [1, 2]]), (b'"",(x)\n1,2\n', [[1, 2]]), ("年,Ü\n1,2\n".encode(), [[1, 2]])):
            self.same(self.imported("x.csv", file), np.array(wanted, "f8"), file)
        self.same(self.imported("x.csv", b"a,1\nb\n5,6\n", "--skip-lines", "2"), np.array([[5.0, 6]]), "skipped")
        self.same(self.imported("x.txt", b"a\r\nb\rc\nd", "--as", "lines"), np.array([0, 3, 5, 7, 8]), "lines")

    def test_tables_refused(self):
        for line, column, field in (("1,NA", 2, "NA"), ("50%,1", 1, "50%"), ("12:30,1", 1, "12:30"), ("NA,NA", 1, "NA"), ("1,x", 2, "x"), ("+-5,1", 1, "+-5"),
                                    ("1_0,2", 1, "1_0"), ("1 2,3", 1, "1 2"), ("$5,1", 1, "$5"), ("0x10,1", 1, "0x10"), ("id,2019", 1, "id"), ('"1","2"', 1, '"1"'),
                                    ("(5),(6)", 1, "(5)"), ("\u22125,\u22123", 1, "\u22125"), ("\u20ac5,\u20ac6", 1, "\u20ac5"), ("\u2014,\u2014", 1, "\u2014"),
                                    ("\xa05,\xa06", 1, "\xa05"), ("\uff15,\uff16", 1, "\uff15"), ("TRUE,FALSE", 1, "TRUE"), ("#N/A,1", 1, "#N/A"),
                                    ("2,#DIV/0! # c", 2, "#DIV/0!"), ("1.#INF,1", 1, "1.#INF")):
            self.refused("x.csv", f"{line}\n3,4\n".encode(), f'line 1, field {column}: "{field}" is no number', "--skip-lines")
            self.refused("x.csv", f"a,b\n\n# c\r\n7,8\r{line}\n3,4\n".encode(), f'line 5, field {column}: "{field}" is no number')
        self.refused("x.csv", b"1,5;2,5\n", '"1,5"', "write decimals with a point")
        self.refused("x.csv", b"1 2\n3,5 4\n", '"3,5"', "write decimals with a point")
        self.refused("x.csv", b"1,2\n3\n", "line 2 has 1 fields, those before it 2")
        self.refused("x.csv", b"a,b\nc,d\n", 'line 2, field 1: "c"')
        self.refused("x.csv", b"a,b\n", "no line of numbers")
        self.refused("x.csv", "1,2\n".encode("utf-16"), "UTF-16", "iconv")
        self.refused("x.csv", b"\x1b]0;bad\x07\n1\n", '"?]0" is no number')
        for beginning, word in ((b"GIF89a", "GIF"), (b"fLaC\0\0", "FLAC"), (b"RIFF\0\0\0\0WEBP", "WebP"), (b"II*\0\0\0", "TIFF"), (b"\1\2\0\0", "no text")):
            self.refused("x.bin", beginning + bytes(20), word)

    def test_grid(self):
        heights = random.standard_normal((3, 5)).astype(">f4")
        file = bytes(32) + struct.pack(">II", 3, 5) + heights.tobytes()
        self.same(self.imported("x.gtx", file), heights.astype("<f4"), "grid")
        for wrong in (file[:-1], file[:-4], file + b"\0"):
            self.refused("x.gtx", wrong, "3 x 5 heights")

    # export

    def exported(self, array, name, *options):
        np.save(self.path("in.npy"), array)
        r = self.run_tool("export", self.path("in.npy"), "-o", self.path(name), *options)
        self.assertEqual(r.returncode, 0, (array.dtype, r.stderr))
        with open(self.path(name), "rb") as f:
            return f.read()

    def test_export_and_back(self):
        for shape in ((5, 7), (5, 7, 3), (5, 7, 4)):
            stored = random.integers(0, 256, shape).astype("u1")
            for kind in ("u1", "i2", "u4", "i4", "u8", "i8", "f4", "f8", "<f8"):
                file = self.exported(stored.astype(kind), "x.png")
                self.same(self.imported("y.png", file), stored, (kind, shape))
                if Image:
                    self.same(np.asarray(Image.open(self.path("x.png"))), stored, ("Pillow", kind, shape))
            if len(shape) == 2:
                self.same(self.imported("y.pgm", self.exported(stored.astype("f8"), "x.pgm")), stored, "pgm")
            if shape[-1] == 3:
                self.same(self.imported("y.ppm", self.exported(stored, "x.ppm")), stored, "ppm")
        wide = np.array([[0, 257, 65535]], "u2")
        self.same(self.imported("y.png", self.exported(wide, "x.png")), np.array([[0, 1, 255]], "u1"), "u2")
        self.same(self.imported("y.png", self.exported(wide == 257, "x.png")), np.array([[0, 255, 0]], "u1"), "bool")
        odd = np.array([[np.nan, -np.inf, np.inf, -1, 1]])
        self.same(self.imported("y.png", self.exported(odd, "x.png", "--low=-1", "--high=1")), np.array([[0, 0, 255, 0, 255]], "u1"), "f8")

    def test_export_refused(self):
        for array, words in ((np.zeros((0, 5), "f4"), "(0, 5); a picture has at least one pixel"), (np.zeros((5, 0, 3), "u1"), "at least one pixel"),
                             (np.zeros(9, "f4"), "<f4 (9,); a picture is (height, width)"), (np.zeros((2, 2, 2)), "<f8 (2, 2, 2); a picture is"),
                             (np.zeros((2, 2, 3, 1), "u1"), "a picture is"), (np.zeros((2, 2), "f2"), "run convert --result f32"),
                             (np.zeros((2, 2), "c8"), "holds <c8")):
            np.save(self.path("in.npy"), array)
            r = self.run_tool("export", self.path("in.npy"), "-o", self.path("x.png"), "--width", 3)
            self.assertEqual((r.returncode, words in r.stderr.decode(), "in.npy" in r.stderr.decode()), (2, True, True), (array.dtype, array.shape, r.stderr))
        np.save(self.path("in.npy"), np.zeros((2, 2)))
        for low, high, words in (("-1e308", "1e308", "beyond f8"), ("0", "inf", "two finite numbers"), ("1", "1", "the smaller one first")):
            r = self.run_tool("export", self.path("in.npy"), "-o", self.path("x.png"), f"--low={low}", f"--high={high}")
            self.assertEqual((r.returncode, words in r.stderr.decode()), (2, True), r.stderr)

    def test_npy_of_other_writers(self):
        array = np.arange(6.0)
        for descr in ("=f8", "|f8", "f8", "<f8"):
            for spaces in (0, 100000):
                text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (6,), }}".encode() + b" " * spaces + b"\n"
                file = b"\x93NUMPY\2\0" + struct.pack("<I", len(text)) + text + array.tobytes()
                r = self.run_tool("run", "reduce", self.write("x.npy", file))
                self.assertEqual((r.returncode, r.stdout.strip()), (0, b"15"), (descr, spaces, r.stderr))
                with open(self.path("x.npy"), "rb") as f:
                    self.same(np.lib.format.read_array(f, max_header_size=1 << 20), array, descr)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # SciPy tells of chunks that it leaves out
    for module, name in ((Image, "Pillow"), (wavfile, "SciPy")):
        if not module:
            print(f"{name} is missing: not compared with it", file=sys.stderr)
    unittest.main(verbosity=2)
