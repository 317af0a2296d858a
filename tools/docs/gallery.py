#!/usr/bin/env python3
"""gallery.py [--write] - the pictures of the gallery, tools/docs/gallery: each is drawn from what a program of
tools/examples/python has computed. Since results have the same bits on every machine, a picture drawn anew is the same file:
without --write it says which are not. Needs NumPy and the package lockstep."""
import base64
import contextlib
import io
import pathlib
import runpy
import struct
import sys
import zlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples/python"
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 480, 210, 52, 42, 24
COLORS = ("#1f6fb4", "#d9742b", "#3d8c40", "#8a4fa8", "#777777")


def number(value):
    return f"{value:.4g}"


def svg(body, width=WIDTH, height=HEIGHT):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" font-family="sans-serif" font-size="11">\n'
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(body) + "\n</svg>\n")


def text(x, y, words, color="#333333", anchor="start"):
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{color}" text-anchor="{anchor}">{words}</text>'


class Axes:
    """The frame of a plot, from low to high on both axes."""

    def __init__(self, x, y, x_label="", y_label=""):
        self.x, self.y = x, y
        bottom = HEIGHT - BOTTOM
        self.parts = [f'<path d="M{LEFT} {TOP}V{bottom}H{WIDTH - 12}" fill="none" stroke="#999999"/>',
                      *(text(LEFT - 4, self.up(v) + 4, number(v), anchor="end") for v in y),
                      text(LEFT, HEIGHT - 8, number(x[0])), text(WIDTH - 12, HEIGHT - 8, number(x[1]), anchor="end"),
                      text((LEFT + WIDTH) / 2, HEIGHT - 8, x_label, anchor="middle"), text(LEFT, 20, y_label)]

    def across(self, v):
        return LEFT + (v - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - 12 - LEFT)

    def up(self, v):
        return HEIGHT - BOTTOM - (v - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - BOTTOM - TOP)

    def line(self, x, y, color=0, words=None):
        points = " ".join(f"{self.across(a):.1f},{self.up(b):.1f}" for a, b in zip(x, y))
        self.parts.append(f'<polyline points="{points}" fill="none" stroke="{COLORS[color]}" stroke-width="1.5"/>')
        return self.named(color, words)

    def bars(self, x, y, color=0, words=None, width=0.8):
        for a, b in zip(x, y):
            left, right, top = self.across(a - width / 2), self.across(a + width / 2), self.up(b)
            self.parts.append(f'<rect x="{left:.1f}" y="{min(top, self.up(0)):.1f}" width="{right - left:.1f}" '
                              f'height="{abs(self.up(0) - top):.1f}" fill="{COLORS[color]}" fill-opacity="0.7"/>')
        return self.named(color, words)

    def named(self, color, words):
        if words:
            self.parts.append(text(WIDTH - 16, 16 + 14 * color, words, COLORS[color], "end"))
        return self


def png(levels):
    """Bytes of a picture of 256 colors, stored without compression, whose every implementation makes other bytes."""
    height, width = levels.shape
    ramp = np.linspace(0, 1, 256)
    palette = np.stack([255 * ramp**0.6, 255 * ramp**1.6, 120 + 100 * np.sin(3.14159 * ramp)], 1).round().clip(0, 255).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in levels.astype(np.uint8))
    blocks = [rows[k:k + 65535] for k in range(0, len(rows), 65535)]
    stored = b"\x78\x01" + b"".join(struct.pack("<BHH", k == len(blocks) - 1, len(b), len(b) ^ 0xFFFF) + b for k, b in enumerate(blocks)) \
        + struct.pack(">I", zlib.adler32(rows))
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)), (b"PLTE", palette.tobytes()), (b"IDAT", stored), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)


def maps(*arrays, words=()):
    """Arrays as colors from their least to their greatest value, side by side."""
    body, left = [], 8
    for k, a in enumerate(arrays):
        a = np.asarray(a, np.float64)
        low, high = a.min(), a.max()
        scale = 160 / a.shape[0]
        levels = ((a - low) / (high - low) * 255).round() if high > low else a * 0
        body.append(f'<image x="{left}" y="8" width="{a.shape[1] * scale:.0f}" height="160" preserveAspectRatio="none" style="image-rendering:pixelated" '
                    f'href="data:image/png;base64,{base64.b64encode(png(levels)).decode()}"/>')
        body.append(text(left, 186, f"{words[k]}, {number(low)} to {number(high)}"))
        left += round(a.shape[1] * scale) + 24
    return svg(body, width=left, height=196)


# ---- a picture from the names of each program ----------------------------------
def first_steps(of):
    return maps(of["x"], of["out"], words=("x", "its transpose"))


def heat(of):
    return maps(of["plate"], of["many"], words=("before", "after 50 steps"))


def waves(of):
    return maps(of["start"], of["surface"], words=("a drop", f"after {of['steps']} steps"))


def edges(of):
    return maps(of["picture"], of["size"], words=("picture", "slopes"))


def narrow_types(of):
    return maps(of["image"][:96:2, :128:2], of["inside"][:96:2, :128:2], words=("bytes", "bright"))


def running_sums(of):
    path = of["path"][::200]
    at = np.arange(len(path)) * 200
    top = float(path.max()) + 5
    return svg(Axes((0, at[-1]), (float(path.min()), top), "step").line(at, path, 0, "cumsum").line(at, np.maximum.accumulate(path), 1, "cummax").parts)


def segments(of):
    ends = np.diff(of["offsets"])
    heights = [float(s) for s in of["sums"]]
    axes = Axes((-1, len(heights)), (min(-10.0, *heights), max(10.0, *heights)), "segment").bars(range(len(heights)), heights, 0, "sum of each")
    axes.parts += [text(axes.across(k), axes.up(0) - 6, f"{n}", anchor="middle") for k, n in enumerate(ends)]
    return svg(axes.parts)


def rows_of_a_batch(of):
    norms = of["together"]
    axes = Axes((0, len(norms)), (float(norms.min()), float(norms.max())), "row", "norm")
    return svg(axes.line(range(len(norms)), norms).parts)


def same_bits(of):
    """How far sums of the first columns are from the one that was added up in double."""
    import lockstep as ls
    x, off, theirs = of["x"], [], []
    widths = range(50, 1000, 50)
    for n in widths:
        part = np.ascontiguousarray(x[:, :n])
        exact = float(ls.sum(part, dtype="float64"))
        off.append(float(ls.sum(part)) - exact)
        theirs.append(float(part.cumsum(dtype=np.float32)[-1]) - exact)  # from left to right, in one precision
    high = max(abs(t) for t in theirs)
    axes = Axes((0, 1000), (-high, high), "columns", "off by")
    return svg(axes.line(widths, theirs, 1, "one by one in float32").line(widths, off, 0, "lockstep, float32").parts)


def normalized_rows(of):
    axes = Axes((-4, 4), (0, 10000), "value", "elements")
    for k, (values, words) in enumerate(((of["before"], "before"), (of["out"], "after rms_norm"))):
        counts, at = np.histogram(values, 32, (-4, 4))
        axes.line((at[:-1] + at[1:]) / 2, counts, k, words)
    return svg(axes.parts)


def dots_and_means(of):
    scores = np.sort(of["scores"])
    return svg(Axes((0, len(scores)), (float(scores[0]), float(scores[-1])), "document", "score").line(range(len(scores)), scores).parts)


def other_libraries(of):
    sums = np.frombuffer(of["want"], np.float32)
    high = float(np.abs(sums).max())
    return svg(Axes((-1, len(sums)), (-high, high), "row", "sum").bars(range(len(sums)), sums.astype(float)).parts)


DRAWN = (first_steps, heat, waves, edges, narrow_types, running_sums, segments, rows_of_a_batch, same_bits, normalized_rows, dots_and_means, other_libraries)


def drawn():
    """(name, SVG) of each program, which is run for it."""
    for draw in DRAWN:
        with contextlib.redirect_stdout(io.StringIO()):
            of = runpy.run_path(str(EXAMPLES / f"{draw.__name__}.py"))
            picture = draw(of)
        yield draw.__name__, picture


def main(*options):
    folder, wrong = HERE / "gallery", []
    folder.mkdir(exist_ok=True)
    for name, picture in drawn():
        file = folder / f"{name}.svg"
        if not file.exists() or file.read_text() != picture:
            wrong.append(name)
            if "--write" in options:
                file.write_text(picture)
    print(f"{len(DRAWN)} pictures, {len(wrong)} {'drawn' if '--write' in options else 'are others'}: {', '.join(wrong)}")
    return 0 if "--write" in options else len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
