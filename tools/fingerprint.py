#!/usr/bin/env python3
"""Fingerprints of what a result was measured of: one for each operation of a backend and tuning row.

    tools/fingerprint.py                       print those of this tree: backend, row of the tuning, operation, fingerprint
    tools/fingerprint.py --files cuda reduce   the files that one is made of
    tools/fingerprint.py --header OUT --depfile OUT.d --as TARGET   what `lockstep bench` is built with

A fingerprint is a hash of the source text that an operation's kernels and their launchers are compiled from, without comments, spaces,
names of variants and texts: the operation's files of the backend, the files that they include, and what implements those. Of tuning.hpp and
tuning.cpp only the numbers count that those files name, and of the rows of chips only the one that ran. What a call goes through before
its kernel starts (lib/call, lib/choose, the queue of a device) is no part of it. So it is the same for every compiler, it needs neither CUDA
nor a build, and a changed comment or another chip's number leaves it as it is.
"""
import argparse
import collections
import functools
import hashlib
import pathlib
import re
import sys

home = pathlib.Path(__file__).resolve().parent.parent
TOKEN = re.compile(r"""//[^\n]* | /\*.*?\*/ | (?P<text>R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)" | "(?:\\.|[^"\\\n])*") | (?P<token>'(?:\\.|[^'\\\n])+'
    | (?:[0-9]|\.[0-9])(?:[eEpP][+-]|'(?=\w)|[\w.])* | \w+ | [^\s\w])""", re.X | re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
GROUPED = ("square_sum", "transpose", "normalize")  # operations that can be called in groups, as group/square_sum
OPS = ("transpose", "permute", "square_sum", "reduce", "stencil", "shuffle", "normalize", "scan", "sums", "reduce_axes", "convert", *(f"group/{op}" for op in GROUPED))
# Rows of tuning.cpp: those whose numbers a chip's row has, and the set of kernels that is compiled for it, if one is.
ROWS = {"cuda": {"default": (), "ampere": ("ampere",), "hopper": ("ampere", "hopper")}, "cpu": {"default": ("baseline", "avx2", "avx512"), "zen4": ("zen4", "avx512_halves", "avx512")}}
# Headers of the CPU backend whose functions stand in files of other names, which include them and have no table of rows.
DECLARES = ("backends/cpu/tiles.hpp", "backends/cpu/normalize_rows.hpp")
TABLE = re.compile(r"^const lockstep_table (\w+)_table = ", re.M)
# The tables of kernels that a header of the CPU backend declares.
KERNELS = re.compile(r"^LOCKSTEP_(?:ISA|HALVES)_TABLES\([\w:]+, (\w+)\)", re.M)
# What every operation shares with the way of a call, and no kernel is compiled from.
OUTSIDE = re.compile(r"lib/(?!bits/)|backends/cuda/(device/|backend\.cpp|ops\.hpp|row_for\.hpp|tuning\.)|backends/cpu/(isa\.hpp|ops\.hpp|backend\.cpp|host\.cpp|measure|quota|queue|isa/limits|tuning\.|ref/)")


class Tree:
    """The sources, of the working tree or of a commit: names to text."""

    def __init__(self, texts):
        self.texts = texts
        self.of_folder = {}
        for name in texts:
            self.of_folder.setdefault(name.rpartition("/")[0], []).append(name)

    @classmethod
    def here(cls, root=home):
        folders = [root / "backends" / "cpu", root / "backends" / "cuda", root / "lib" / "bits"]
        paths = [p for folder in folders for p in sorted(folder.rglob("*")) if p.suffix in (".cpp", ".hpp", ".cu", ".cuh", ".h")]
        return cls({str(p.relative_to(root)): p.read_text() for p in paths})

    def tokens(self, name):
        return tokens_of(self.texts[name])

    @functools.lru_cache(maxsize=None)
    def included(self, name):
        return list(self.find_included(name))

    def find_included(self, name):
        folder = name.rpartition("/")[0]
        backend = "/".join(name.split("/")[:2])
        for written in includes_of(self.texts[name]):
            for base in (folder, backend, "lib"):
                path = re.sub(r"[^/]+/\.\./", "", f"{base}/{written}")
                if path in self.texts:
                    yield path
                    break

    def implementing(self, name):
        """The sources of what a header declares: on CUDA all of its folder, on the CPU the file of its name."""
        if not name.endswith(".hpp"):
            return
        folder = name.rpartition("/")[0]
        if name.startswith("backends/cuda/"):
            yield from (n for n in self.of_folder[folder] if n.endswith((".cu", ".cpp")))
        elif name.startswith("backends/cpu/"):
            if name[:-3] + "cpp" in self.texts:
                yield name[:-3] + "cpp"
            if name in DECLARES:
                yield from (n for n in self.of_folder[folder] if n.endswith(".cpp") and name in self.included(n) and not TABLE.search(self.texts[n]))

    def kernels(self, names):
        """The sources of the tables of kernels that headers of the CPU backend declare and files name."""
        named = collections.Counter(token for name in names for token in set(self.tokens(name)))
        for name in names:
            for table in KERNELS.findall(self.texts[name]):
                if named[table] > 1 or self.tokens(name).count(table) > 1:
                    yield from (n for n in self.of_folder["backends/cpu/isa"] if n.endswith(".cpp") and f"{table}_table" in self.tokens(n))

    @functools.lru_cache(maxsize=None)
    def files(self, backend, op):
        """The files that an operation's kernels are compiled from; of a group those of its table and of its operation."""
        op, _, grouped = op.partition("/")
        others = tuple(f"backends/cuda/group/{other}." for other in GROUPED if grouped not in ("", other))
        waiting = [n for n in self.texts if n.startswith(f"backends/{backend}/") and op in TABLE.findall(self.texts[n])]
        if backend == "cuda":  # the folder of the table of rows
            folders = {n.rpartition("/")[0] for n in waiting} or {f"backends/cuda/{op}"}
            waiting = [n for folder in folders for n in self.of_folder.get(folder, ())]
        elif op == "group":  # by the kernels of single calls
            waiting = ["backends/cpu/group.cpp", *self.files(backend, grouped)]
        found = set()
        while waiting:
            name = waiting.pop()
            if name not in found and not OUTSIDE.match(name) and not name.startswith(others):
                found.add(name)
                waiting += [*self.included(name), *self.implementing(name)]
            if not waiting:
                waiting = [n for n in self.kernels(found) if n not in found and not OUTSIDE.match(n)]
        return sorted(found)

    def tuning(self, backend, row, used):
        """What tuning.hpp and tuning.cpp say of the names that are used, and of those that this says, for one row of chips."""
        rows, others, known = ROWS[backend][row], {r for many in ROWS[backend].values() for r in many}, []
        for name in (f"backends/{backend}/tuning.hpp", f"backends/{backend}/tuning.cpp"):
            within = None  # a chip's function
            for text, statement, what, begun, ends in statements(self.tokens(name)) if name in self.texts else ():
                within = begun or within
                chip = within or (what if what in others else None)
                if chip is None or chip in rows:
                    known.append((what, what == chip, text, statement))
                within = None if ends else within
        chosen, before = [], None
        while chosen != before:
            before = chosen
            chosen = [one for one in known if one[0] in used or one[1]]
            used = used.union(*(one[3] for one in chosen))
        return [text for _, _, text, _ in chosen]

    def fingerprint(self, backend, row, op):
        """16 digits, or "" if the backend has no such operation."""
        files = self.files(backend, op)
        if not files:
            return ""
        used = set().union(*map(self.tokens, files))
        # (A file may get another name.)
        parts = sorted(joined(self.tokens(name)) for name in files) + self.tuning(backend, row, used)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@functools.lru_cache(maxsize=None)
def tokens_of(text):
    """Without comments and texts, but for the instructions of asm."""
    out, assembly = [], False
    for found in TOKEN.finditer(text):
        if found["token"]:
            out.append(found["token"])
            assembly = found["token"] in ("asm", "__asm__") or assembly and found["token"] != ";"
        elif found["text"]:
            out.append(found["text"] if assembly else '""')
    return tuple(out)


@functools.lru_cache(maxsize=None)
def joined(tokens):
    return " ".join(tokens)


@functools.lru_cache(maxsize=None)
def includes_of(text):
    return INCLUDE.findall(text)


@functools.lru_cache(maxsize=None)
def statements(tokens):
    """Pieces of a file of tuning that end at a semicolon outside of a list of numbers: their text, their tokens, the name that they define,
    and whether a chip's function begins or ends with them."""
    pieces, lists = [[]], 0
    for at, token in enumerate(tokens):
        lists += token == "{" and (lists > 0 or bool(at) and tokens[at - 1] in ("=", "]") or bool(at > 1) and tokens[at - 2] == "kernel_tuning")
        lists -= token == "}" and lists > 0
        pieces[-1].append(token)
        if token == ";" and not lists:
            pieces.append([])
    out = []
    for piece in pieces:
        text = " ".join(piece)
        begun = re.search(r"\btuning (\w+) \( const (?:caches|chip) &", text)
        defined = re.search(r"(\w+) (?:< [^;=]*? > )?(?:\[ [^\]]* \] )?[={]", re.sub(r".*\btemplate < [^>]*> ", "", text))
        out.append((text, set(piece), defined[1] if defined else "", begun[1] if begun else "", "return t" in text))
    return out


def everything(tree):
    return [(backend, row, op, tree.fingerprint(backend, row, op)) for backend in ("cpu", "cuda") for row in ROWS[backend] for op in OPS]


def row_of(backend, detail, chip=""):
    """The row of the tuning for a device that results describe, by its own words."""
    if backend == "cuda":
        found = re.search(r"sm_(\d+)", detail)
        major = int(found[1]) // 10 if found else 0
        return "hopper" if major >= 9 else "ampere" if major == 8 else "default"
    return "zen4" if "zen4" in detail or chip == "Zen 4" else "default"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--files", nargs=2, metavar=("BACKEND", "OP"))
    options.add_argument("--header")
    options.add_argument("--depfile")
    options.add_argument("--as", dest="target")
    given = options.parse_args()
    tree = Tree.here()
    if given.files:
        print("\n".join(tree.files(*given.files)))
        return
    rows = [row for row in everything(tree) if row[3]]
    if not given.header:
        for row in rows:
            print(*row)
        return
    lines = "".join(f'    {{"{backend}", "{row}", "{op}", "{found}"}},\n' for backend, row, op, found in rows)
    made = (f"// Made by tools/fingerprint.py.\nstruct made_of {{\n  const char *backend, *row, *op, *fingerprint;\n}};\n\nconstexpr made_of fingerprints[] = {{\n{lines}}};\n")
    header = pathlib.Path(given.header)
    if not header.exists() or header.read_text() != made:  # else nothing is compiled again
        header.write_text(made)
    if given.depfile:
        pathlib.Path(given.depfile).write_text(f"{given.target}: " + " ".join(str(home / name) for name in tree.texts) + "\n")


if __name__ == "__main__":
    sys.exit(main())
