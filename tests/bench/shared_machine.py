#!/usr/bin/env python3
"""shared_machine.py LIBLOCKSTEP [LOAD] - what a short call costs while others use the cores: 1 MiB of f32, its sum of
squares, beside NumPy's vdot, in turns, with LOAD (default 10) busy processes a core by stress-ng (0: none). Prints
mean, median and 99th percentile of both in microseconds; by hand, for it wants the machine to itself."""
import ctypes
import os
import shutil
import subprocess
import sys
import time

import numpy as np


class Desc(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("reduction", ctypes.c_int), ("dtype", ctypes.c_int), ("result", ctypes.c_int),
                ("count", ctypes.c_int64), ("length", ctypes.c_int64), ("element_stride", ctypes.c_int64),
                ("sequence_stride", ctypes.c_int64), ("offsets", ctypes.c_void_p)]


def main(path, load):
    lib = ctypes.CDLL(path)
    context, plan = ctypes.c_void_p(), ctypes.c_void_p()
    assert lib.lockstep_context_create(None, ctypes.byref(context)) == 0
    n = 1 << 18
    x, out = np.random.default_rng(1).random(n, dtype=np.float32), np.zeros(1)
    desc = Desc(ctypes.sizeof(Desc), 5, 3, 4, 1, n, 1, 0, None)  # SUM_OF_SQUARES of F32 to F64
    assert lib.lockstep_plan_square_sum(context, ctypes.byref(desc), None, ctypes.byref(plan)) == 0
    src, dst = ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data)
    calls = {"lockstep": lambda: lib.lockstep_plan_execute(plan, src, dst, None), "vdot": lambda: np.vdot(x, x)}
    stress = None
    if load > 0:
        if shutil.which("stress-ng") is None:
            sys.exit("no stress-ng; apt-get install stress-ng")
        workers = load * len(os.sched_getaffinity(0))
        stress = subprocess.Popen(["stress-ng", "--cpu", str(workers), "--timeout", "120", "--quiet"])
        time.sleep(3)
    try:
        for turn in range(5):
            for name, call in calls.items():
                times = []
                end = time.perf_counter() + 2
                while time.perf_counter() < end:
                    begin = time.perf_counter()
                    call()
                    times.append(1e6 * (time.perf_counter() - begin))
                print(f"{name:<9} mean {np.mean(times):8.1f}  median {np.median(times):8.1f}  "
                      f"p99 {np.percentile(times, 99):8.1f}  of {len(times)}", flush=True)
    finally:
        if stress is not None:
            stress.terminate()
            stress.wait()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10)
