#!/usr/bin/env python3
"""width.py ROOT - fails when a line of a C, C++ or CUDA source is longer than .clang-format's limit."""
import pathlib
import re
import sys


def main(root):
    limit = int(re.search(r"ColumnLimit: (\d+)", (root / ".clang-format").read_text())[1])
    sources = [p for room in ("lib", "backends", "tests", "tools") for p in sorted((root / room).rglob("*"))
               if p.suffix in (".h", ".hpp", ".c", ".cpp", ".cu", ".cuh")]
    long = [f"{p.relative_to(root)}:{number}: {len(line)} columns"
            for p in sources for number, line in enumerate(p.read_text().splitlines(), 1) if len(line) > limit]
    print("\n".join(long + [f"{len(long)} lines of {len(sources)} files are longer than {limit} columns"]))
    if long:
        print("fix: clang-format -i --lines=N:N FILE, or break them by hand")
    return 1 if long or len(sources) < 100 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
