"""overhead.py - what a call costs beside NumPy's and PyTorch's on eight numbers: the least and the median of rounds in
turns, in microseconds, and the ratios. Run by hand on a quiet machine; only the ratios hold on a shared one.
With --gpu: the host's time of calls on device arrays, of which nothing waits, and of the parts that it is made of."""
import importlib.util
import statistics
import sys
import time
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
    total, rows = np.empty((), "f4"), np.empty(3, "f4")
    yield "ls.sum(m, axis=1, out=r)", lambda: ls.sum(m, axis=1, out=rows)
    yield "numpy m.sum(axis=1, out=r)", lambda: m.sum(axis=1, out=rows)
    yield "ls.sum(x, out=s)", lambda: ls.sum(x, out=total)
    yield "numpy np.sum(x, out=s)", lambda: np.sum(x, out=total)
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


def gpu_cases():
    """Arrays of no elements go the whole way through Python and are not launched; tensors of the host launch nothing either."""
    import torch
    x, out = torch.ones(8, 8, device="cuda"), torch.empty(8, 8, device="cuda")
    total, rows = torch.empty((), device="cuda"), torch.empty(8, device="cuda")
    none, none_out = torch.ones(0, 8, device="cuda"), torch.empty(8, 0, device="cuda")
    here, here_out = torch.ones(8, 8), torch.empty(8, 8)
    plan, plan_of_none, plan_here = ls.plan.transpose(x), ls.plan.transpose(none), ls.plan.transpose(here)
    sum_plan = ls.plan.sum(x)
    yield "ls.sum(x)", lambda: ls.sum(x)
    yield "ls.sum(x, out=s)", lambda: ls.sum(x, out=total)
    yield "ls.sum(x, axis=1)", lambda: ls.sum(x, axis=1)
    yield "ls.sum(x, axis=1, out=r)", lambda: ls.sum(x, axis=1, out=rows)
    yield "ls.transpose(x)", lambda: ls.transpose(x)
    yield "ls.transpose(x, out=y)", lambda: ls.transpose(x, out=out)
    yield "sum plan(x, out=s)", lambda: sum_plan(x, out=total)
    yield "plan(x, out=y)", lambda: plan(x, out=out)
    yield "plan(x)", lambda: plan(x)
    yield "part: transpose of nothing", lambda: ls.transpose(none, out=none_out)
    yield "part: plan of nothing", lambda: plan_of_none(none, out=none_out)
    yield "part: plan on the host", lambda: plan_here(here, out=here_out)
    yield "part: torch.empty", lambda: torch.empty((), device="cuda")
    yield "part: x.new_empty", lambda: x.new_empty(())
    yield "part: x.requires_grad", lambda: x.requires_grad
    yield "part: x.is_neg()", lambda: x.is_neg()
    yield "part: torch's current stream", lambda: torch._C._cuda_getCurrentRawStream(0)
    yield "part: nothing", lambda: x
    many = [torch.ones(100 + n, device="cuda") for n in range(100)]
    many_plan = ls.group.plan("norm", many, stack=True)
    yield "100 norms: a plan", many_plan
    yield "100 norms: ls.norms", lambda: ls.norms(many)
    yield "100 norms: ls.norm of each", lambda: [ls.norm(t) for t in many]
    yield "100 norms: torch._foreach_norm", lambda: torch._foreach_norm(many)
    yield "torch x.sum()", lambda: x.sum()
    yield "torch sum(x, 1, out=r)", lambda: torch.sum(x, 1, out=rows)
    yield "torch y.copy_(x.T)", lambda: out.copy_(x.T)
    yield "torch y.zero_()", lambda: out.zero_()
    if importlib.util.find_spec("cupy"):
        import cupy
        c, c_out = cupy.ones((8, 8), "f4"), cupy.empty((8, 8), "f4")
        c_plan = ls.plan.transpose(c)
        yield "cupy: ls.sum(x)", lambda: ls.sum(c)
        yield "cupy: plan(x, out=y)", lambda: c_plan(c, out=c_out)
        yield "cupy x.sum()", lambda: c.sum()


def main_gpu(rounds=20, calls=100):
    import torch
    all_cases = list(gpu_cases())
    times = {name: [] for name, _ in all_cases}
    for _, call in all_cases:
        for _ in range(50):
            call()
    for _ in range(rounds):
        for name, call in all_cases:
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(calls):
                call()
            times[name].append((time.perf_counter() - begin) / calls * 1e6)
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name()}, table: {hasattr(torch.Tensor, '__dlpack_c_exchange_api__')}")
    for name, values in times.items():
        print(f"{name:30} least {min(values):7.3f} us, median {statistics.median(values):7.3f} us")


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
    numbers = [int(a) for a in sys.argv[1:] if a != "--gpu"]
    (main_gpu if "--gpu" in sys.argv else main)(*numbers)
