"""bugs.py - reads the list of planted bugs (tests/mutants/*.bugs) and puts them into the text of a source file.

A bug is a block of lines that ends at an empty line:

    bug: overlap_of_the_first_bytes_only      its name; LOCKSTEP_MUTANT=NAME switches it on
    what: src and dst may overlap but for dst's first byte
    needs: cpu                                what its test needs: cpu, gpu, gpu2 (two GPUs), python, torch or
                                              tsan (a copy built with -Db_sanitize=thread)
    killed by: check abi: Abi.Transpose       the test and its case; empty: not known yet
    in: lib/call/run.cpp                           the file; then a piece of it, as a patch would change it
      const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
    + if (BUG) b_bytes = 1;

Lines with "- " stand in the source and are replaced by those with "+ "; lines with two spaces stay, and say where. BUG
is the switch, in device code DEVICE_BUG. A bug in several places has several pieces, each with its own "in:". Spaces,
line breaks and comments of the source do not matter. "arm:" in place of "bug:" is what the switches themselves need.
"""
import glob
import os
import re
import time

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
NEEDS = ("cpu", "gpu", "gpu2", "python", "torch", "tsan")
SWITCHES = {"BUG": "LOCKSTEP_MUTANT", "DEVICE_BUG": "LOCKSTEP_DEVICE_MUTANT"}
TOKEN = re.compile(r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
    | R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+'
    | (?:[0-9]|\.[0-9])(?:[eEpP][+-]|'(?=\w)|[\w.])* | \w+
    | ::|->|\+\+|--|<<=|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|<<|\.\.\. | .""", re.X | re.S)


class Wrong(Exception):
    """What the list and the sources disagree about."""


def tokens(text):
    """[(begin, end)] of what the compiler sees"""
    return [m.span() for m in TOKEN.finditer(text) if m.lastgroup != "skip"]


class Piece:
    def __init__(self, file):
        self.file, self.lines = file, []  # of (mark, text)

    def clean(self):
        return "\n".join(text for mark, text in self.lines if mark != "+")


class Bug:
    def __init__(self, name, place, arms):
        self.name, self.place, self.arms = name, place, arms
        self.what = self.needs = self.killer = ""
        self.pieces = []


def paths():
    return sorted(glob.glob(os.path.join(here, "*.bugs")))


def read():
    """The bugs of the list, in its order."""
    bugs, names = [], set()
    for path in paths():
        bug = None
        with open(path) as file:
            for number, line in enumerate(file, 1):
                line, place = line.rstrip("\n"), f"{os.path.basename(path)}:{number}"
                key, _, value = (part.strip() for part in line.partition(":"))
                if not line.strip():
                    bug = None
                elif bug is None and line.startswith("#"):
                    continue
                elif bug is None and key in ("bug", "arm"):
                    bug = Bug(value, place, key == "arm")
                    if value in names:
                        raise Wrong(f"{place}: {value} is there twice")
                    names.add(value)
                    bugs.append(bug)
                elif bug is None:
                    raise Wrong(f"{place}: begin with \"bug: NAME\": {line}")
                elif bug.pieces and (line[:2] in ("- ", "+ ", "  ") or line in ("-", "+")):
                    bug.pieces[-1].lines.append((line[0], line[2:]))
                elif key == "what":
                    bug.what = value
                elif key == "needs":
                    bug.needs = value
                elif key == "killed by":
                    bug.killer = value
                elif key == "in":
                    bug.pieces.append(Piece(value))
                else:
                    raise Wrong(f"{place}: {bug.name}: neither a known key nor a line of a piece: {line}")
    for bug in bugs:
        if not bug.arms and (bug.needs not in NEEDS or not bug.what):
            raise Wrong(f"{bug.place}: {bug.name} has no \"what:\", or needs none of {', '.join(NEEDS)}")
        if not bug.pieces:
            raise Wrong(f"{bug.place}: {bug.name} changes nothing")
        if not bug.arms and not any(re.search(r"\b(DEVICE_)?BUG\b", text) for p in bug.pieces for mark, text in p.lines if mark == "+"):
            raise Wrong(f"{bug.place}: {bug.name} is always there: no + line has BUG")
    return bugs


def chosen(bugs, only, tenth):
    """Those named, of every tenth from a number on, or all; and what arms the switches."""
    if unknown := set(only) - {bug.name for bug in bugs}:
        raise Wrong(f"the list has no bug {', '.join(sorted(unknown))}")
    if tenth is not None and tenth not in [*"0123456789", "today"]:
        raise Wrong(f"--tenth {tenth}: give 0 to 9, or today")
    first = time.localtime().tm_yday % 10 if tenth == "today" else int(tenth or 0)
    some = [bug for bug in bugs if not bug.arms and (not only or bug.name in only)]
    return [bug for bug in bugs if bug.arms] + (some[first::10] if tenth is not None else some)


class Source:
    """A file, its tokens, and what is to be put into it."""

    def __init__(self, path, text):
        self.path, self.text, self.spans = path, text, tokens(text)
        self.words = [text[a:b] for a, b in self.spans]
        self.edits = []  # (first token, token behind the last, what comes there, bug)

    def places(self, words):
        return [i for i in range(len(self.words) - len(words) + 1) if self.words[i] == words[0] and self.words[i:i + len(words)] == words]

    def plan(self, bug, piece):
        """Finds one piece of a bug."""
        clean = [piece.clean()[a:b] for a, b in tokens(piece.clean())]
        found = self.places(clean) if clean else []
        if len(found) != 1:
            raise Wrong(f"{bug.place}: {bug.name}: {self.path} has {len(found)} places like this one; it must have one:\n{piece.clean()}")
        at, k = found[0], 0
        while k < len(piece.lines):
            group = {" ": [], "-": [], "+": []}
            begin = k
            while k < len(piece.lines) and (piece.lines[k][0] == " ") == (piece.lines[begin][0] == " "):
                group[piece.lines[k][0]].append(piece.lines[k][1])
                k += 1
            kept, old, new = ("\n".join(group[mark]) for mark in " -+")
            at += len(tokens(kept))
            a, b = ([text[x:y] for x, y in tokens(text)] for text in (old, new))
            head = 0
            while head < min(len(a), len(b)) and a[head] == b[head]:
                head += 1
            tail = 0
            while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
                tail += 1
            if len(a) + len(b) > 2 * (head + tail):
                spans = tokens(new)
                put = new[spans[head][0]:spans[len(b) - tail - 1][1]] if head + tail < len(b) else ""
                self.edits.append((at + head, at + len(a) - tail, put, bug))
            at += len(a)

    def planted(self):
        """The text with all bugs in it."""
        text, behind = self.text, len(self.text)
        ordered = sorted(self.edits, key=lambda e: e[:2])
        for (_, end, before, one), (begin, stop, after, other) in zip(ordered, ordered[1:]):
            # What ends as a statement or as the middle of "a ? b : c" may stand before another such.
            apart = begin > end or (begin == end and before.rstrip()[-1:] in (";", "}", ":"))
            if not apart and one is not other:
                raise Wrong(f"{other.place}: {other.name} changes what {one.name} changes too, in {self.path}")
        for begin, end, new, bug in reversed(ordered):
            for name, macro in SWITCHES.items():
                new = re.sub(rf"\b{name}\b", f'{macro}("{bug.name}")', new)
            if begin < end:
                a, b = self.spans[begin][0], self.spans[end - 1][1]
            else:
                a = b = self.spans[begin - 1][1] if begin > 0 else 0
                if begin > 0 and text[text.rfind("\n", 0, a) + 1:a].lstrip().startswith("#"):
                    a = b = text.find("\n", a)
                    new = "\n" + new
                elif new:
                    new = " " + new
            if re.search(r"^\s*#", new, re.M):
                new = "\n" + new.strip() + "\n"
            text = text[:a] + new + text[b:]
        return text


def with_switch(path, text):
    """The text with the header of the switches, before the first one that it includes."""
    device = path.endswith((".cu", ".cuh")) or "arm_mutants" in text
    header = os.path.relpath(os.path.join("tests/mutants", "mutant.cuh" if device else "mutant.hpp"), os.path.dirname(path))
    at = re.search(r"^#include ", text, re.M)
    once = re.search(r"^#pragma once\n", text, re.M)
    place = once.end() if once else at.start() if at else 0
    return f'{text[:place]}#include "{header}"\n{text[place:]}'


def plant(bugs, tree):
    """{path: text} of the files of a tree that have bugs, with these in them."""
    files = {}
    for bug in bugs:
        for piece in bug.pieces:
            if piece.file not in files:
                try:
                    with open(os.path.join(tree, piece.file)) as file:
                        files[piece.file] = Source(piece.file, file.read())
                except FileNotFoundError:
                    raise Wrong(f"{bug.place}: {bug.name}: there is no {piece.file}") from None
            files[piece.file].plan(bug, piece)
    return {path: with_switch(path, source.planted()) for path, source in files.items()}
