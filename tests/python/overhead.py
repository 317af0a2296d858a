"""overhead.py - what a call costs beside NumPy's and PyTorch's on eight numbers: the least and the median of rounds in
turns, in microseconds, and the ratios. Run by hand on a quiet machine; only the ratios hold on a shared one."""
import importlib.util
import statistics
import sys
import timeit

import numpy as np

import lockstep as ls


def cases():
    x, m = np.ones(8, "f4"), np.ones((3, 3), "f4")
    y = np.empty((3, 3), "f4")
    plan = ls.plan.transpose(m)
    yield "ls.square_sum(numpy)", lambda: ls.square_sum(x)
    yield "numpy x.sum()", lambda: x.sum()
    yield "numpy np.sum(x)", lambda: np.sum(x)
    yield "numpy np.vdot(x, x)", lambda: np.vdot(x, x)
    yield "numpy np.linalg.norm(x)", lambda: np.linalg.norm(x)
    yield "ls.transpose(m, out=y)", lambda: ls.transpose(m, out=y)
    yield "ls.transpose(m)", lambda: ls.transpose(m)
    yield "plan(m, out=y)", lambda: plan(m, out=y)
    yield "numpy np.copyto(y, m.T)", lambda: np.copyto(y, m.T)
    if importlib.util.find_spec("torch"):
        import torch
        t = torch.ones(8)
        torch.set_num_threads(1)
        yield "ls.square_sum(torch)", lambda: ls.square_sum(t)
        yield "torch x.sum()", lambda: t.sum()
        yield "torch vector_norm(x)", lambda: torch.linalg.vector_norm(t)
        import lockstep.torch as lt

        @torch.library.custom_op("lockstep_overhead::square_sum", mutates_args=())
        def custom(x: torch.Tensor) -> torch.Tensor:
            return ls.square_sum(x)

        yield "lockstep.torch.square_sum", lambda: lt.square_sum(t)
        yield "the same as a custom_op", lambda: custom(t)


def main(rounds=40, calls=2000):
    all_cases = list(cases())
    times = {name: [] for name, _ in all_cases}
    for _ in range(rounds):
        for name, call in all_cases:
            times[name].append(timeit.timeit(call, number=calls) / calls * 1e6)
    for name, values in times.items():
        print(f"{name:26} least {min(values):7.3f} us, median {statistics.median(values):7.3f} us")
    least = {name: min(values) for name, values in times.items()}
    for ours, theirs, bar in (("ls.square_sum(numpy)", "numpy x.sum()", 0.8), ("ls.square_sum(numpy)", "numpy np.sum(x)", 0.25),
                              ("ls.square_sum(torch)", "torch x.sum()", 0.5), ("ls.square_sum(torch)", "torch vector_norm(x)", 0.2),
                              ("lockstep.torch.square_sum", "the same as a custom_op", 0.6)):
        if theirs in least:
            ratio = statistics.median(a / b for a, b in zip(times[ours], times[theirs]))
            print(f"{ours} / {theirs}: {ratio:.2f} ({least[ours] / least[theirs]:.2f} of the least), bar {bar}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
