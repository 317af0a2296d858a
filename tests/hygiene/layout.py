#!/usr/bin/env python3
"""layout.py TABLE CC INCLUDE [--write] - the ABI as the compiler sees it: sizes and offsets of every public struct,
values of every enumerator and prototypes of every function, compared with the committed table of this ABI version.
layout.txt is the table of the core library, layout_ranks.txt that of liblockstep_ranks. Every declared function must
also be exported (exported.txt or exported_ranks.txt beside the table). Existing lines must not change. --write renews
the table after something was added at the end of a sized struct, or with a new ABI version (then the SONAME changes
too). A struct returned by value never grows under that function's name, because older callers have room only for the
old size."""
import pathlib
import re
import subprocess
import sys
import tempfile

table, compiler, include = pathlib.Path(sys.argv[1]), sys.argv[2].split(), pathlib.Path(sys.argv[3])
ranks = table.stem == "layout_ranks"
headers = ("engine.h", "ranks.h") if ranks else ("lockstep.h", "group.h", "backend_group.h", "backend_peer.h", "backend.h")
text = "".join((include / "lockstep" / name).read_text() for name in headers)
text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
text = re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.M)


def fields(body):
    body = re.sub(r"union\s*\{(.*?)\}\s*;", r"\1", body, flags=re.S)  # members of the nameless union
    for declaration in filter(None, (d.strip() for d in body.split(";"))):
        if found := re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", declaration):
            yield found.group(1)
        else:
            for part in declaration.split(","):
                yield re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", part.strip()).group(1)


lines, program = [], ["#include <stddef.h>", "#include <stdio.h>", *(f'#include "lockstep/{name}"' for name in headers), "int main(void) {"]
for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \1;", text, re.S):
    program.append(f'  printf("struct {name}: %zu bytes\\n", sizeof({name}));')
    for field in fields(body):
        program.append(f'  printf("  {name}.{field} at %zu, %zu\\n", offsetof({name}, {field}), sizeof((({name}*)0)->{field}));')
for body in re.findall(r"enum[\w\s]*\{(.*?)\}", text, re.S):
    for value in re.findall(r"^\s*(LOCKSTEP_\w+)|,\s*(LOCKSTEP_\w+)", body, re.M):
        value = "".join(value)
        program.append(f'  printf("{value} = %lld\\n", (long long){value});')
for value in ("LOCKSTEP_ABI_VERSION", "LOCKSTEP_BACKEND_ABI", "LOCKSTEP_ENGINE_ABI"):
    program.append(f"#ifdef {value}\n  printf(\"{value} = %lld\\n\", (long long){value});\n#endif")
prototypes = [" ".join(found.split()) for found in re.findall(r"^(?:LOCKSTEP_NODISCARD )?LOCKSTEP_API\s+([^;]*?\))\s*;", text, re.M)]
for struct, function in re.findall(r"^(lockstep_(?!status|dtype)\w+) (lockstep_\w+)\(", "\n".join(prototypes), re.M):
    program.append(f'  printf("{function} gives %zu bytes\\n", sizeof({struct}));')
program.append("  return 0;\n}")
with tempfile.TemporaryDirectory() as folder:
    source = pathlib.Path(folder, "layout.c")
    source.write_text("\n".join(program))
    subprocess.run([*compiler, "-std=c11", "-I", include, source, "-o", source.with_suffix("")], check=True)
    lines = subprocess.run([source.with_suffix("")], check=True, capture_output=True, text=True).stdout.splitlines()
lines += prototypes

if "--write" in sys.argv[4:]:
    table.write_text("\n".join(lines) + "\n")
known = table.read_text().splitlines()
gone, new = [line for line in known if line not in lines], [line for line in lines if line not in known]
for line in gone:
    print("no longer so:", line)
for line in new:
    print("not in the table:", line)
exported = set(table.with_name(table.name.replace("layout", "exported")).read_text().split())
declared = set(re.findall(r"\b(lockstep_\w+)\(", "\n".join(prototypes)))
inline = re.findall(r"^static inline .*?\b(lockstep_\w+)\(", text, re.M | re.S)
for name in sorted(exported ^ declared) + inline:
    print("inline, not exported:" if name in inline else "exported, not declared:" if name in exported else "declared, not exported:", name)
    new.append(name)
print(f"{len(lines)} facts of the ABI, {len(gone)} changed, {len(new)} new")
sys.exit(1 if gone or new or len(lines) < (60 if ranks else 200) else 0)
