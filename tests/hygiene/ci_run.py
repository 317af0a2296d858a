#!/usr/bin/env python3
"""ci_run.py SOURCE - .ci/run in an empty tree, with programs that only write down how they were called: the README's two
commands come first, every failure is counted, and the counts are the last line whatever happens."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

source = sys.argv[1]
failures = 0
if not os.path.exists(f"{source}/.ci/run"):
    print("SKIP: this tree has no .ci/run")
    sys.exit(77)
QUICKSTART = 'echo "quickstart $*" >> "$LOG"; [ -z "$QUICKSTART_FAILS" ] || exit 1; mkdir -p build/meson-info build/meson-logs build/tests/check; cp "$TREE/intro.json" build/meson-info/intro-tests.json\n' \
    'printf \'#!/bin/bash\\necho "check $*" >> "$LOG"; [ -z "$CHECK_FAILS" ]\\n\' > build/tests/check/lockstep_check; chmod +x build/tests/check/lockstep_check'
FAKES = {
    "meson": """echo "meson $*" >> "$LOG"
[ "$1" = test ] || exit 0
[ -z "$HANGS" ] || { touch "$TREE/hanging"; /bin/sleep 60; }
shift 3
python3 - "$RESULTS" "$@" > build/meson-logs/testlog.json <<'PY'
import json, sys
results, names = json.loads(sys.argv[1]), [a for a in sys.argv[2:] if not a.startswith("-") and not a.isdigit()]
second = bool(names)
for name, result in results.items():
    if not second and name.startswith("late") or second and name not in names: continue
    if second and result == "SKIP" and name == "needs a package": result = "OK"
    print(json.dumps({"name": "lockstep:check+quick / " + name, "result": result, "duration": 1.5}))
PY
! grep -qE '"(FAIL|TIMEOUT|ERROR|UNEXPECTEDPASS)"' build/meson-logs/testlog.json
""",
    "ninja": 'echo "ninja $*" >> "$LOG"; case "$*" in *"targets all"*) echo "backends/cuda/a.cu.o: x"; echo "backends/cuda/b.cu.o: x"; echo "backends/cuda/c.cu.o: x"; echo "backends/cuda/d.cu.o: x" ;; esac',
    "nvcc": "exit 0", "ccache": "exit 1", "apt-get": "exit 0", "apt-cache": "exit 1", "dpkg": "exit 1", "id": "echo 1000", "git": "exit 0",
}
RESULTS = {"one": "OK", "two": "EXPECTEDFAIL", "needs a package": "SKIP", "gpu": "SKIP", "late, of ranks": "OK"}


def start(work, results=None, **environment):
    tree = f"{work}/tree"
    for folder in (".ci", "tools", "tests/mutants"):
        os.makedirs(f"{tree}/{folder}")
    os.makedirs(f"{work}/bin")
    shutil.copy(f"{source}/.ci/run", f"{tree}/.ci/run")
    with open(f"{source}/README.md") as file:
        readme = file.read()
    if environment.pop("other_readme", False):
        readme = readme.replace("meson test -C build", "meson test -C elsewhere")
    with open(f"{tree}/README.md", "w") as file:
        file.write(readme)
    with open(f"{tree}/intro.json", "w") as file:
        json.dump([{"name": name} for name in (results or RESULTS)], file)
    programs = {f"{work}/bin/{name}": text for name, text in FAKES.items()}
    programs[f"{tree}/tools/quickstart"] = QUICKSTART
    programs[f"{tree}/tests/sanitize"] = 'echo "sanitize $*" >> "$LOG"; [ "$1" != "$SANITIZE_FAILS" ]'
    programs[f"{tree}/tests/mutants/plant"] = 'echo "plant $*" >> "$LOG"; mkdir -p build-planted'
    programs[f"{tree}/tests/mutants/run"] = 'echo "mutants $*" >> "$LOG"; [ -z "$MUTANTS_FAIL" ]'
    for path, text in programs.items():
        with open(path, "w") as file:
            file.write(f"#!/bin/bash\n{text}\n")
        os.chmod(path, 0o755)
    return subprocess.Popen([f"{tree}/.ci/run"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, start_new_session=True,
                            env={**os.environ, "LOG": f"{work}/log", "TREE": tree, "RESULTS": json.dumps(results or RESULTS), "LOCKSTEP_DAY": "5",
                                 "PATH": f"{work}/bin:{os.environ['PATH']}", **environment})


def run(results=None, **environment):
    """(exit code, output, its last line, calls)"""
    with tempfile.TemporaryDirectory() as work:
        process = start(work, results, **environment)
        output = process.communicate(timeout=60)[0]
        calls = ""
        if os.path.exists(f"{work}/log"):
            with open(f"{work}/log") as file:
                calls = file.read()
        return process.returncode, output, output.strip().splitlines()[-1], calls


def check(what, true, *shown):
    global failures
    if not true:
        failures += 1
        print("FAIL:", what, *(f"\n--- {part}" for part in shown))


code, output, last, calls = run()
# Stages: quickstart, two sanitizers, configuring, fuzz, stress, full, an architecture, planted bugs; tests: one, two, needs a package, late
check("what passes passes", code == 0 and last == "13 passed, 0 failed, 1 skipped", output, calls)
check("the README's commands come first", calls.startswith("quickstart \nmeson test -C build"), calls)
asked = next((line for line in calls.splitlines() if "late, of ranks" in line), "")
check("what passed is not run again, what was skipped is", "needs a package" in asked and "gpu" in asked and "one" not in asked.split(), calls)
check("both sanitizers, two ops in full, a quarter of the kernels, a tenth of the bugs",
      all(word in calls for word in ("sanitize address --quick", "sanitize thread --quick", "--level full --part 5/4", "-Dgpu_arch=100", "plant build-planted --tenth 5 --needed",
                                     "mutants build-planted --tenth 5 --quick")) and re.search(r"ninja -C build-arch backends/cuda/c\.cu\.o\n", calls), calls)
for result in ("FAIL", "TIMEOUT", "ERROR", "UNEXPECTEDPASS"):
    for name in ("one", "late, of ranks"):
        code, output, last, calls = run({**RESULTS, name: result})
        check(f"{result} of a test is a failure", code == 1 and ", 0 failed" not in last and f"failed: {name}" in output, result, output)
for variable, value, what in (("SANITIZE_FAILS", "address", "sanitize address"), ("SANITIZE_FAILS", "thread", "sanitize thread"), ("CHECK_FAILS", "1", "level full"),
                              ("MUTANTS_FAIL", "1", "planted bugs"), ("QUICKSTART_FAILS", "1", "quickstart")):
    code, output, last, calls = run(**{variable: value})
    check(f"{what} that fails is a failure", code == 1 and re.fullmatch(r"\d+ passed, [1-9]\d* failed, \d+ skipped", last) and re.search(f"failed: .*{what}", output), output)
code, output, last, calls = run(other_readme=True)
check("another README is a failure", code == 1 and last.endswith("2 failed, 0 skipped") and calls == "", output, calls)

with tempfile.TemporaryDirectory() as work:
    process = start(work, HANGS="1")
    while not os.path.exists(f"{work}/tree/hanging") and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGTERM)
    output = process.communicate(timeout=60)[0]
    check("a run that is ended has failed and still counts", process.returncode != 0 and re.fullmatch(r"1 passed, [1-9] failed, 0 skipped", output.strip().splitlines()[-1]), output)
print(f"{failures} failures")
sys.exit(failures != 0)
