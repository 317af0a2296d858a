#!/usr/bin/env python3
"""quickstart.py SOURCE - tools/quickstart in an empty tree, with programs that only write down how they were called."""
import os
import shutil
import subprocess
import sys
import tempfile

source = sys.argv[1]
failures = 0
FAKES = {
    # What is asked for goes to the log; Meson makes the file that says a tree is configured.
    "meson": 'echo "meson $*" >> "$LOG"; [ -z "$MESON_FAILS" ] || { echo "../meson.build:3:0: ERROR: Unknown options: \\"frob\\""; exit 1; }\nmkdir -p build; touch build/build.ninja',
    "ninja": 'echo "ninja $*" >> "$LOG"\ncase "$*" in *" -n"*) echo "[7/7] link"; exit ;; *build.ninja*) exit ;; esac\n'
             '[ -z "$NINJA_FAILS" ] || { echo "FAILED: lib/x.o"; exit 1; }\n/bin/sleep 0.4\nmkdir -p build/tools; printf "#!/bin/sh\\necho program \\$*\\n" > build/tools/lockstep; chmod +x build/tools/lockstep',
    "sleep": "exec /bin/sleep 0.1",  # a minute passes quickly here
    "dpkg-query": 'for last; do :; done; case " $MISSING " in *" $last "*) ;; *) echo "install ok installed" ;; esac',
    "apt-get": 'echo "apt-get $*" >> "$LOG"; case "$*" in *update*) exit ;; *"$APT_FAILS"*) [ -z "$APT_FAILS" ] || { echo "E: Unable to locate package" >&2; exit 100; } ;; esac\necho "Get:1 a mirror"; echo "Setting up it"',
    "sudo": "exit 1",
    "id": 'echo "${FAKE_ID:-0}"',
    "nvidia-smi": "exit 9",
}


def run(*options, **environment):
    """(exit code, output, calls)"""
    with tempfile.TemporaryDirectory() as work:
        os.makedirs(f"{work}/tree/tools/real_input")
        os.makedirs(f"{work}/bin")
        shutil.copy(f"{source}/tools/quickstart", f"{work}/tree/tools")
        shutil.copy(f"{source}/tools/real_input/packages", f"{work}/tree/tools/real_input")
        for name, text in FAKES.items():
            with open(f"{work}/bin/{name}", "w") as file:
                file.write(f"#!/bin/bash\n{text}\n")
            os.chmod(f"{work}/bin/{name}", 0o755)
        if environment.pop("configured", False):
            os.mkdir(f"{work}/tree/build")
            open(f"{work}/tree/build/build.ninja", "w").close()
        done = subprocess.run([f"{work}/tree/tools/quickstart", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              text=True, cwd=work, timeout=60, env={**os.environ, **environment, "LOG": f"{work}/log", "PATH": f"{work}/bin:{os.environ['PATH']}"})
        calls = ""
        if os.path.exists(f"{work}/log"):
            with open(f"{work}/log") as file:
                calls = file.read()
        return done.returncode, done.stdout, calls


def check(what, true, *shown):
    global failures
    if not true:
        failures += 1
        print("FAIL:", what, *(f"\n--- {part}" for part in shown))


for option in ("--help", "-h"):
    code, output, calls = run("--no-demo", option)
    check(f"{option} prints the options and does nothing", code == 0 and "--no-pictures" in output and calls == "", output, calls)
for option, hint in (("--frob", "--frob"), ("--no-dem", "--no-dem"), ("build", "build"), ("--prefix=/opt", "-Dprefix=/opt"), ("-Dcuda", "-DNAME=VALUE")):
    code, output, calls = run("--all", option)
    check(f"{option} is refused by name before anything is done", code == 2 and hint in output and "--help" in output and calls == "", output, calls)

code, output, calls = run("-Dcuda=disabled", "--no-demo", "-D", "ranks=enabled", "--", "--cross-file", "x")
check("options go to Meson in any order", code == 0 and "-Dcuda=disabled -Dranks=enabled --cross-file x" in calls and "program demo" not in output, output, calls)
check("what an install needs is built", "ninja -C build installed\n" in calls, calls)
code, output, calls = run("-Dranks=enabled", "--all")
check("--all builds everything, wherever it stands", code == 0 and "ninja -C build\n" in calls and "gpu_arch" not in calls and "program demo" in output, output, calls)
check("the end says what is next", all(word in output[output.rindex("== next"):] for word in ("explain", "probe", "meson test", "rpath", "ldconfig", "install")), output)
check("a long build says so every minute", "minutes: 0 of 7 steps done" in output, output)

for configured in (False, True):
    code, output, calls = run("--no-demo", MESON_FAILS="1", configured=configured)
    check("Meson's errors are shown", code == 1 and 'ERROR: Unknown options: "frob"' in output and "ninja" not in calls.replace("build.ninja", ""), output, calls)
for gpu, arch in (("echo 8.9", "89"), ("exit 9", "80-virtual")):
    FAKES["nvidia-smi"], FAKES["nvcc"] = gpu, "exit 0"
    code, output, calls = run("--no-demo")
    check("nvcc works for this machine's GPU alone", code == 0 and f"-Dgpu_arch={arch} " in calls and "all GPUs" in output, output, calls)
code, output, calls = run("-Dgpu_arch=75", "--no-demo")
check("an architecture that the user names is kept", code == 0 and "-Dgpu_arch=75 " in calls and "80" not in calls, output, calls)
code, output, calls = run(NINJA_FAILS="1")
check("a build that fails is an error", code == 1 and "FAILED: lib/x.o" in output and "next" not in output, output, calls)

code, output, calls = run("--no-demo", MISSING="ninja-build mate-backgrounds nlohmann-json3-dev")
check("packages are installed, and it shows", code == 0 and "nlohmann-json3-dev" in calls and "mate-backgrounds" in calls and "Setting up it" in output, output, calls)
code, output, calls = run("--no-demo", "--no-pictures", MISSING="mate-backgrounds")
check("wallpapers are optional", code == 0 and "apt-get" not in calls, output, calls)
code, output, calls = run("--no-install", MISSING="mate-backgrounds nlohmann-json3-dev")
check("--no-install installs nothing", code == 0 and "apt-get" not in calls, output, calls)
code, output, calls = run("--no-demo", MISSING="mate-backgrounds nlohmann-json3-dev", APT_FAILS="mate-backgrounds")
check("a package that is not there holds nothing up", code == 0 and "E: Unable to locate" in output and "no package mate-backgrounds" in output, output, calls)
code, output, calls = run("--no-demo", MISSING="libfmt-dev", FAKE_ID="1000")
check("without root it says what to install", code == 1 and "apt-get install" in output and "libfmt-dev" in output and "apt-get" not in calls, output, calls)
print(f"{failures} failures")
sys.exit(failures != 0)
