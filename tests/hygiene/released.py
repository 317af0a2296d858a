#!/usr/bin/env python3
"""released.py FOLDER TABLE HEADERS [LIBRARY] - programs and modules built for a release still work with this build: compares
the tables of released ABIs (FOLDER/VERSION.txt) with TABLE, the current one of layout.py, and with the names that LIBRARY
exports. Nothing of a release may change, except that a struct that starts with its size may grow at its end, a count of
enumerators may grow, and functions may be added. Releases with another ABI version do not count; structs of
HEADERS/backend.h count for modules with the same LOCKSTEP_BACKEND_ABI.

released.py --release VERSION [LIBRARY] writes the present table, with the library's names, as that of a release."""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def symbols(library):
    names = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return [f"symbol {line.split()[2]}" for line in sorted(names.splitlines(), key=lambda line: line.split()[2]) if line.split()[1] in "TDBR"]


def value(lines, name):
    return next((line for line in lines if line.startswith(name + " = ")), None)


def broken(old, new, of_modules=()):
    """What the facts `new` take from those who were built for `old`; of_modules are the structs of backend.h."""
    if value(old, "LOCKSTEP_ABI_VERSION") != value(new, "LOCKSTEP_ABI_VERSION"):
        return []
    same_modules = value(old, "LOCKSTEP_BACKEND_ABI") == value(new, "LOCKSTEP_BACKEND_ABI")
    now, wrong = set(new), []
    sizes = {m[1]: int(m[2]) for m in re.finditer(r"^struct (\w+): (\d+) bytes$", "\n".join(new), re.M)}
    for fact in old:
        struct = re.match(r"(?:struct |  )(\w+)(?=[.:])", fact)
        if fact in now or fact.startswith("LOCKSTEP_BACKEND_ABI") or struct and struct[1] in of_modules and not same_modules:
            continue
        grown = re.match(r"struct (\w+): (\d+) bytes$", fact)
        if grown and any(f"  {grown[1]}.size at {at}" in old for at in ("0, 8", "4, 4")) and sizes.get(grown[1], 0) >= int(grown[2]):
            continue
        counted = re.match(r"(LOCKSTEP_\w+_COUNT) = (\d+)$", fact)
        if counted and (line := value(new, counted[1])) and int(line.rpartition(" ")[2]) >= int(counted[2]):
            continue
        wrong.append(fact)
    return wrong


def main(folder, table, headers, *library):
    new = table.read_text().splitlines() + (symbols(*library) if library else [])
    of_modules = [struct for name in ("backend.h", "backend_group.h", "backend_peer.h")
                  for struct in re.findall(r"typedef struct (\w+) \{", (headers / name).read_text())]
    releases, failed = sorted(folder.glob("*.txt")), False
    for release in releases:
        old = [line for line in release.read_text().splitlines() if library or not line.startswith("symbol ")]
        wrong = broken(old, new, of_modules)
        for fact in wrong:
            print(f"{release.stem} has, and this has not: {fact}")
        print(f"{release.stem}: {len(old)} facts, {len(wrong)} broken")
        failed |= bool(wrong) or len(old) < 200
    return 1 if failed or not releases else 0


if __name__ == "__main__":
    if sys.argv[1] == "--release":
        facts = (HERE / "layout.txt").read_text().splitlines() + symbols(sys.argv[3])
        (HERE / "released" / f"{sys.argv[2]}.txt").write_text("\n".join(facts) + "\n")
    else:
        sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
