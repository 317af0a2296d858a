#!/usr/bin/env python3
"""depends.py BUILD - fails where a test hangs on what another command happened to build: every target that is installed
belongs to the target `installed`; a test whose command, environment or script names a built file depends on it, one that
installs depends on all that is installed, and one that may run on a GPU depends on the CUDA modules. Then the same rules must
find the faults that are planted into a copy of the lists."""
import copy
import json
import os
import re
import subprocess
import sys

build = os.path.abspath(sys.argv[1])


def read(name):
    with open(os.path.join(build, "meson-info", name)) as file:
        return json.load(file)


def script_of(test):
    """The text of the script that the test runs, if it is one."""
    for part in test["cmd"][:2]:
        path = os.path.join(build, part)
        if not os.path.isfile(path) or os.path.basename(path).startswith("python"):
            continue
        with open(path, errors="replace") as file:
            return file.read() if file.read(2) == "#!" or path.endswith(".py") else ""
    return ""


def faults(tests, targets, alias):
    found = []
    installed = {t["id"]: t["name"] for t in targets if t["installed"]}
    made = {os.path.normpath(path): t for t in targets for path in t["filename"]}
    folders = {os.path.dirname(path) for path in made}
    for identity, name in installed.items():
        if not any(path in alias for path in by_id[identity]):
            found.append(f"{name} is installed, but the target `installed` lacks it")
    for test in tests:
        depends, name = set(test["depends"]), test["name"]
        words = test["cmd"][1:] + [part for value in test["env"].values() for part in value.split(":")]
        for word in words:
            path = os.path.normpath(os.path.join(build, word))
            if path in made and made[path]["id"] not in depends:
                found.append(f"test '{name}' uses {os.path.relpath(path, build)} without depending on it")
            if path in folders and path in test["env"].get("LOCKSTEP_BACKEND_PATH", "") and not any(
                    os.path.dirname(file) == path for identity in depends for file in by_id.get(identity, [])):
                found.append(f"test '{name}' looks for modules in {os.path.relpath(path, build)} and depends on none of them")
        script = "" if test["name"] == "aarch64 digest" else script_of(test)  # (it has a build of its own)
        for word in re.findall(r"\$\{?build\}?\"?/([\w./-]+)", script):
            path = os.path.join(build, word)
            if path in made and made[path]["id"] not in depends:
                found.append(f"the script of test '{name}' uses {word} without depending on it")
        if re.search(r"\bmeson install -C \"?\$build", script):
            found += [f"test '{name}' installs without depending on {what}" for identity, what in installed.items() if identity not in depends]
        if "gpu" in [suite.split(":")[-1] for suite in test["suite"]] or os.path.join(build, "tools/lockstep") in test["cmd"]:
            found += [f"test '{name}' loads {what} without depending on it" for identity, what in installed.items()
                      if what in ("lockstep-cuda", "probe-cuda") and identity not in depends]
    return found


all_tests, all_targets = read("intro-tests.json"), read("intro-targets.json")
by_id = {t["id"]: [os.path.normpath(path) for path in t["filename"]] for t in all_targets}
query = subprocess.run(["ninja", "-C", build, "-t", "query", "installed"], capture_output=True, text=True, check=True).stdout
built = {os.path.join(build, line.strip(" |")) for line in query.splitlines() if line.startswith("    ") and "phony" not in line}

bad = faults(all_tests, all_targets, built)
for line in bad:
    print(line)

# What this program says is worth something only if it would say it.
planted = 0
for what in ("consumers", "modules", "check sums plugin"):
    if not any(t["name"] == what for t in all_tests):
        continue
    spoilt = copy.deepcopy(all_tests)
    for t in spoilt:
        if t["name"] == what:
            t["depends"] = t["depends"][:1] if what == "check sums plugin" else []
            if what == "check sums plugin":
                t["depends"] = [d for d in t["depends"] if "cpuref" not in d]
    if len(faults(spoilt, all_targets, built)) <= len(bad):
        bad.append(what)
        print(f"a test '{what}' without its dependencies is not noticed")
    planted += 1
if built and len(faults(all_tests, all_targets, set())) <= len(bad):
    bad.append("installed")
    print("an empty target `installed` is not noticed")
if not planted:
    bad.append("planted")
    print("none of the tests to plant a fault in is there")
print(f"{len(all_tests)} tests, {len(bad)} faults")
sys.exit(1 if bad else 0)
