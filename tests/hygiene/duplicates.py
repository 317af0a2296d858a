#!/usr/bin/env python3
"""duplicates.py ROOT - fails where a Python class or file defines a name twice: of two test methods of one name the
first never runs."""
import ast
import pathlib
import sys


def main(root):
    sources = [p for room in ("tests", "tools") for p in sorted((root / room).rglob("*"))
               if p.is_file() and (p.suffix == ".py" or p.read_bytes()[:22] == b"#!/usr/bin/env python3")]
    twice = []
    for path in sources:
        for scope in ast.walk(ast.parse(path.read_text())):
            if not isinstance(scope, (ast.ClassDef, ast.Module)):
                continue
            seen = set()
            for node in scope.body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    if node.name in seen:
                        twice.append(f"{path.relative_to(root)}:{node.lineno}: {node.name} is defined a second time")
                    seen.add(node.name)
    print("\n".join(twice + [f"{len(sources)} files, {len(twice)} names defined twice"]))
    return 1 if twice or len(sources) < 10 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
