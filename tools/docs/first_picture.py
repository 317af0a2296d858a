#!/usr/bin/env python3
"""first_picture.py TOOL [--write] - tools/docs/pictures/transpose.svg, which README and the site begin with: the naive transpose and the
padded one, by panels of what `lockstep explain` draws for warps of 8 lanes. Without --write: exit code 1 when it would be another."""
import pathlib
import re
import subprocess
import sys

PICTURE = pathlib.Path(__file__).resolve().parent / "pictures/transpose.svg"
SMALL = ["--warp", "8", "--segment", "4", "--tile", "8", "--rows", "8", "--columns", "8"]
# variant, its step, the words above
ROWS = [("naive_coalesced_read", 0, "naive: a row is read, a column is written"), ("tiled_padded", 1, "tiled_padded: both sides are rows, through shared memory")]
COLUMN, HEIGHT = 290, 330


def groups(text):
    """The <g> elements directly within a text, whole."""
    found, depth, start = [], 0, 0
    for tag in re.finditer(r"<(/?)g\b[^>]*>", text):
        if not tag.group(1):
            start = tag.start() if depth == 0 else start
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                found.append(text[start: tag.end()])
    return found


def inside(group):
    return group[group.index(">") + 1: group.rindex("</g>")]


def drawn(tool):
    style, out = "", []
    for row, (variant, step, words) in enumerate(ROWS):
        text = subprocess.run([tool, "explain", "transpose", "--variant", variant, *SMALL, "--svg", "-"], capture_output=True, text=True, check=True).stdout
        style = re.search(r"<style>.*?</style>", text, re.S).group(0)
        panels = groups(inside(groups(inside(groups(text)[step]))[0]))
        out.append(f"<text x='16' y='{row * HEIGHT + 26}' class='x-step'>{words}</text>")
        out += [f"<g transform='translate({16 + k * COLUMN},{row * HEIGHT + 50})'>{inside(panel)}</g>" for k, panel in enumerate(panels)]
    return (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {2 * COLUMN + 16} {2 * HEIGHT}' width='{2 * COLUMN + 16}' height='{2 * HEIGHT}' role='img' "
            f"aria-label='{ROWS[0][2]}; {ROWS[1][2]}'>\n{style}\n<rect class='x-back' width='100%' height='100%'/>\n" + "\n".join(out) + "\n</svg>\n")


def main(tool, write=False):
    made = drawn(tool)
    if write:
        PICTURE.write_text(made)
    elif not PICTURE.is_file() or PICTURE.read_text() != made:
        sys.exit(f"{PICTURE} is not what explain draws; run tools/docs/first_picture.py TOOL --write")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["--write"])
