#!/usr/bin/env python3
"""fuzz_results.py LOCKSTEP RESULTS - files of results, changed at random: `bench` and `probe` read each, or refuse it by one
sentence that names the file. No crash, no waiting, no control characters. The draws are the same each time;
LOCKSTEP_FUZZ_SECONDS and LOCKSTEP_FUZZ_FIRST (a number) give more and others."""
import copy
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

tool, results = sys.argv[1], pathlib.Path(sys.argv[2])
STRANGE = [None, True, -1, 0, 1e308, 5e-324, 2**63, -2**63, "", "x" * 3000, "\x1b[2J\x07", "\u202e\u0000\ud7ff", "<script>", "((((a*)*)*)*)*$", [], {}, [[]], {"": None},
           "../../../etc/passwd", "nan", "1e999"]


def shortened(name):
    data = json.loads((results / name).read_text())
    for rows in ("benchmarks", "rows", "readings", "limits"):
        if isinstance(data.get(rows), list):
            data[rows] = data[rows][:8]
    return data


def places(value, path=()):
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


def changed(draw, data):
    """Bytes of a file: values put in other places' stead, or bytes of it."""
    data = copy.deepcopy(data)
    for _ in range(draw.choice((1, 1, 2, 5))):
        *way, last = draw.choice([p for p in places(data) if p] or [("a",)])
        inner = data
        for key in way:
            inner = inner[key]
        if draw.random() < 0.2:
            del inner[last]
        elif draw.random() < 0.2 and isinstance(inner, list):
            inner.append(copy.deepcopy(inner[last]))
        else:
            inner[last] = copy.deepcopy(draw.choice(STRANGE))
    text = bytearray(json.dumps(data, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass"))
    if draw.random() < 0.3:
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(len(text))
            if draw.random() < 0.5:
                text[at] = draw.randrange(256)
            else:
                del text[at:at + draw.randrange(1, 50)]
            text = text or bytearray(b" ")
    return bytes(text)


def fault(arguments, path):
    """What is wrong with how the program took it, or ""."""
    try:
        done = subprocess.run([tool, *arguments], capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "no end within a minute"
    said = done.stdout + done.stderr
    if done.returncode not in (0, 1, 2):
        return f"exit code {done.returncode}"
    if done.returncode == 1 and "--compare" in arguments and b" slower;" in done.stdout and not done.stderr:
        return ""  # what --compare says by its exit code
    if done.returncode and (done.stderr.count(b"\n") != 1 or os.path.basename(path).encode() not in done.stderr):
        return "a refusal that is not one sentence with the file's name"
    if any(byte < 32 and byte not in (9, 10) or byte == 127 for byte in said):
        return "a control character"
    return ""


seconds, first = float(os.environ.get("LOCKSTEP_FUZZ_SECONDS", "0")), int(os.environ.get("LOCKSTEP_FUZZ_FIRST", "1"))
begin, failures, refused, read = time.time(), 0, 0, 0
seeds = {name: shortened(name) for name in ("host-pinned-h200.json", "ladder-h200.json", "crossover-h200.json", "probe-zen5.json")}
with tempfile.TemporaryDirectory() as folder:
    path, page, good = f"{folder}/results.json", f"{folder}/page.html", f"{folder}/good.json"
    number = 0
    while number < 120 or time.time() - begin < seconds:
        draw = random.Random(first * 1000003 + number)
        name = list(seeds)[number % len(seeds)]
        number += 1
        data = changed(draw, seeds[name])
        pathlib.Path(path).write_bytes(data)
        pathlib.Path(good).write_text(json.dumps(seeds[name]))
        ways = [["probe", "--from", path], ["probe", "--from", path, "--html", page]] if name.startswith("probe") else \
            [["bench", "--from", path, "--html", page], ["bench", "--from", path, "--compare", good], ["bench", "--from", good, "--compare", path]]
        for way in ways:
            if wrong := fault(way, path):
                failures += 1
                kept = f"{tempfile.gettempdir()}/lockstep-fuzz-{name[:-5]}-{number}.json"
                pathlib.Path(kept).write_bytes(data)
                print(f"FAIL: {' '.join(way[:1])} {' '.join(w for w in way if w.startswith('--'))}, draw {number - 1} of {first}: {wrong}; the file is {kept}")
print(f"{number} files, {failures} failures, {time.time() - begin:.0f} s")
sys.exit(failures != 0)
