"""Producers that omit, zero or lie in each field of a buffer, a DLPack tensor or an array interface: the right numbers or a clear error,
and never a crash. They run in a process of their own, which begins anew behind a case that ends it."""
import os
import pathlib
import subprocess
import sys


def test_no_description_is_believed():
    worker = pathlib.Path(__file__).with_name("producers.py")
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "LOCKSTEP_NUM_THREADS": "1", "PYTHONMALLOC": "debug"}
    first, count, failed = 0, 1, []
    while first < count:
        done = subprocess.run([sys.executable, "-W", "error", str(worker), str(first)], env=env, capture_output=True, text=True, timeout=600)
        lines = done.stdout.splitlines()
        assert lines, done.stderr[-2000:]
        count, began = int(lines[0]), None
        for line in lines[1:]:
            if line.startswith("begin "):
                began = line
            elif line == "ok":
                began = None
            else:
                failed.append(f"{began}: {line}")
                began = None
        if done.returncode == 0:
            break
        assert began, done.stderr[-2000:]
        failed.append(f"{began}: ended by {done.returncode}")
        first = int(began.split()[1]) + 1
    assert count > 800 and not failed, f"{len(failed)} of {count}:\n" + "\n".join(failed[:40])
