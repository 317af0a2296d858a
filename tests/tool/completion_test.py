#!/usr/bin/env python3
"""completion_test.py LOCKSTEP zsh|fish - what `lockstep completion SHELL` prints, in that shell as a user types: started
with it, asked for completions. Exit code 77 where the shell is missing. (bash: tool_test.py.)"""
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time

TOOL, SHELL = sys.argv[1], sys.argv[2]
# What is typed, and what the one word that fits makes of it.
ONE = [("ben", "bench"), ("run st", "run stencil"), ("run transpose --ba", "run transpose --backend"),
       ("run stencil --bo", "run stencil --boundary"), ("run stencil --boundary refl", "run stencil --boundary reflect"),
       ("run transpose --boun", "run transpose --boun"), ("bench --preset re", "bench --preset readme"),
       ("verify --op sq", "verify --op square_sum"), ("explain tr", "explain transpose"), ("completion z", "completion zsh"),
       ("run transpose sta", "run transpose start.npy"), ("import sta", "import start.npy")]


def fish(folder, script, typed):
    """The whole line; candidates come one a line, a tab and a help text behind each."""
    lines = []
    for line in typed:
        r = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C 'lockstep {line}'"], cwd=folder, capture_output=True,
                           text=True, timeout=60, env={**os.environ, "HOME": folder})
        assert r.stderr == "", r.stderr
        words = [word.split("\t")[0] for word in r.stdout.splitlines()]
        before = line.rpartition(" ")[0]
        lines.append((before + " " + words[0]).strip() if len(words) == 1 else line)
    return lines


def zsh(folder, script, typed):
    """The line editor itself, on a terminal: TAB, then a key that writes down what the line has become."""
    out = os.path.join(folder, "lines")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ.update(TERM="dumb", HOME=folder, ZDOTDIR=folder)
        os.execvp("zsh", ["zsh", "-f", "-i"])

    def told():
        with open(out) as f:
            return f.read().splitlines()

    def patience(count):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.02)[0]:
                os.read(terminal, 65536)
            if os.path.exists(out) and len(told()) >= count:
                return
        raise AssertionError(f"zsh said {told() if os.path.exists(out) else 'nothing'}")
    try:
        os.write(terminal, (f"autoload -Uz compinit; compinit -D -u; source {script}; unsetopt automenu; bindkey '^I' complete-word; "
                            f"show() {{ print -r -- \"$BUFFER\" >> {out}; BUFFER= }}; zle -N show; bindkey '^X' show; echo ready > {out}\n").encode())
        patience(1)
        for i, line in enumerate(typed):
            os.write(terminal, f"lockstep {line}\t\x18".encode())
            patience(i + 2)
        return [line.removeprefix("lockstep ").rstrip() for line in told()[1:]]
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


if not shutil.which(SHELL):
    print(f"no {SHELL}: apt-get install {SHELL}")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    script = os.path.join(folder, "_lockstep")
    with open(script, "wb") as f:
        f.write(subprocess.run([TOOL, "completion", SHELL], check=True, capture_output=True).stdout)
    for name in ("start.npy", "stencil.npy", "benches", "zebra"):
        open(os.path.join(folder, name), "w").close()
    got = {"fish": fish, "zsh": zsh}[SHELL](folder, script, [typed for typed, _ in ONE])
wrong = [f"lockstep {typed}: {was!r}, not {line!r}" for (typed, line), was in zip(ONE, got) if was != line]
print("\n".join(wrong + [f"{len(ONE)} lines completed by {SHELL}, {len(wrong)} of them wrong"]))
sys.exit(1 if wrong or len(got) != len(ONE) else 0)
