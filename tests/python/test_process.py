"""What a process can do to the package: threads, fork, exit, several interpreters, and whether anything is left behind."""
import gc
import logging
import os
import pathlib
import resource
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import lockstep as ls

X = np.random.default_rng(3).standard_normal((30, 40))


def run(code, *options, **environment):
    """A program of its own; its output."""
    done = subprocess.run([sys.executable, *options, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def calls():
    offsets = np.array([0, 5, 30])
    out = np.empty(30)
    plan = ls.plan.sum(X, axis=1)
    small = X.astype("f2")
    yield "sum", lambda: ls.sum(X)
    yield "sum of rows", lambda: ls.sum(X, axis=1)
    yield "sum into out", lambda: ls.sum(X, axis=1, out=out)
    yield "sum of 16 bits", lambda: ls.sum(small)
    yield "reversed", lambda: ls.max(X[::-1], axis=0)
    yield "axes apart", lambda: ls.sum(X.reshape(5, 6, 40), axis=1)
    yield "dot", lambda: ls.dot(X, X[0], axis=1)
    yield "dot by copies", lambda: ls.dot(X.reshape(5, 6, 40), X.reshape(5, 6, 40), axis=1)
    yield "mean and variance", lambda: ls.mean_var(X, axis=1)
    yield "mean into out", lambda: ls.mean(X, axis=1, out=out)
    yield "deviation", lambda: ls.std(small)
    yield "a plan of dot made", lambda: ls.plan.dot(X, X)
    yield "segments", lambda: ls.segment_sum(X[:, 0], offsets)
    yield "transpose", lambda: ls.transpose(X)
    yield "permute", lambda: ls.permute(X, (1, 0))
    yield "stencil", lambda: ls.stencil(X, ls.laplace_weights(2))
    yield "shuffle", lambda: ls.shuffle(X[:, :32].copy(), "xor", 1)
    yield "plan", lambda: plan(X)
    yield "a plan made", lambda: ls.plan.norm(X)
    weights, h = np.ones(40), np.empty((30, 40))
    yield "rows", lambda: ls.rms_norm(X, weight=weights, bias=weights[::-1], residual=X[::-1], residual_out=h)
    yield "rows of another axis", lambda: ls.layer_norm(X, axis=0, residual=X, residual_out=h)
    yield "a plan of rows made", lambda: ls.plan.rms_norm(X, weight=weights, residual=X)
    yield "running sum", lambda: ls.cumsum(X, axis=1)
    yield "running sum of 8 bits", lambda: ls.cumsum(X.astype("i1"))
    yield "buffer", lambda: np.from_dlpack(ls.empty((3, 4), "float64"))
    yield "capsule dropped", lambda: ls.empty(3).__dlpack__()
    yield "buffer summed", lambda: ls.sum(ls.empty(0), axis=0)
    yield "scope", _scoped
    yield "record", _recorded
    yield "log", _logged
    yield "context", lambda: ls.Context("cpu", threads=1).sum(X)
    for name, call in {"axis": lambda: ls.sum(X, axis=9), "keyword": lambda: ls.sum(X, foo=1), "list": lambda: ls.sum(["a"]), "other dtype": lambda: ls.dot(X, small),
                       "pair of outs": lambda: ls.mean_var(X, axis=1, out=(out, out[:3])),
                       "out shape": lambda: ls.sum(X, axis=1, out=np.empty(3)), "out dtype": lambda: ls.sum(X, axis=0, out=np.empty(40, "i4")),
                       "overlap": lambda: ls.permute(X[:30, :30], (1, 0), out=X[:30, :30]), "empty": lambda: ls.max(X[:0]),
                       "overflow": lambda: ls.sum(np.full(3, 2**62)), "objects": lambda: ls.transpose(np.array([[None]])),
                       "backend": lambda: ls.sum(X, backend="nonesuch"), "plan": lambda: plan(X.T), "offsets": lambda: ls.segment_sum(X[:, 0], offsets[::-1]),
                       "weight": lambda: ls.rms_norm(X, weight=np.ones(3)), "residual_out": lambda: ls.rms_norm(X, residual=X, residual_out=weights),
                       "scan": lambda: ls.cumsum(np.ones(3, "u8")), "scan overflow": lambda: ls.cumsum(np.full(3, 2**62)),
                       "weights": lambda: ls.stencil(X, ["a"]), "context closed": lambda: ls.Context("nonesuch")}.items():
        yield "error: " + name, lambda call=call: _raises(call)


def _scoped():
    with ls.backend("cpu"), ls.variants(reduce="ref"):
        ls.sum(X)


def _recorded():
    with ls.record():
        ls.sum(X)


def _logged():
    logger = logging.getLogger("lockstep")
    logger.setLevel("DEBUG")
    logger.propagate = False
    ls.sum(X)
    logger.setLevel("NOTSET")


def _raises(call):
    try:
        call()
    except Exception:
        return
    raise AssertionError("no exception")


@pytest.mark.parametrize("name,call", list(calls()), ids=lambda v: v if isinstance(v, str) else "")
def test_nothing_is_left_behind(name, call):
    none_counts = sys.version_info < (3, 12)

    def once(n):
        for _ in range(n):
            call()
        gc.collect()
        # Calls fill the interpreter's cache of attributes, whose empty entries refer to None.
        if none_counts:
            sys._clear_type_cache()

    once(50)
    watched = [X, None if none_counts else X, ls.sum, np.float64, ls.InvalidArgument, ls._core.get_default()]
    before, held = [sys.getrefcount(o) for o in watched], len(gc.get_objects())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # What each call left behind would be there n times; a few of the interpreter's own objects come and go.
    n = 300 if name in ("a plan made", "a plan of rows made", "context", "error: context closed") else 3000
    once(n)
    after = [sys.getrefcount(o) for o in watched]
    assert all(abs(a - b) < n / 4 for a, b in zip(after, before)), (before, after)
    assert len(gc.get_objects()) - held < n / 4
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory  # KiB
    assert grown * 1024 < n * 8 + 2**20, f"{grown} KiB for {n} calls"


def test_eight_threads_share_a_context():
    want = {"sum": ls.sum(X, axis=1).tobytes(), "transpose": ls.transpose(X).tobytes()}
    wrong = []

    def work():
        for _ in range(300):
            if ls.sum(X, axis=1).tobytes() != want["sum"] or ls.transpose(X).tobytes() != want["transpose"]:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_other_threads_run_meanwhile():
    big = np.ones(40_000_000, "f4")

    def longest_silence(call):
        """The share of a call in which another Python thread did not come to run."""
        stop, gap = threading.Event(), [0.0]

        def tick():
            last = time.perf_counter()
            while not stop.is_set():
                now = time.perf_counter()
                gap[0], last = max(gap[0], now - last), now

        thread = threading.Thread(target=tick)
        thread.start()
        begin = time.perf_counter()
        call()
        elapsed = time.perf_counter() - begin
        stop.set()
        thread.join()
        return gap[0] / elapsed

    # Held, the lock would silence the other thread for the whole call; a busy machine does so for a part of it.
    with ls.Context("cpu", threads=1, variants={"reduce": "ref"}) as context:
        shares = [longest_silence(lambda: context.sum(big)) for _ in range(7)]
    assert min(shares) < 0.5, shares


def test_a_small_call_keeps_the_lock():
    small, larger = np.ones(4096, "f4"), np.ones(5000, "f4")
    plan = ls.plan.sum(small, variant="ref")
    stop, turns = threading.Event(), [0]

    def wait_for_the_lock():
        while not stop.is_set():
            turns[0] += 1
            time.sleep(0)  # gives it back

    def turns_during(call):
        call()
        before = turns[0]
        for _ in range(30_000):
            call()
        return turns[0] - before

    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)  # who does not give the lock back keeps it
    thread = threading.Thread(target=wait_for_the_lock)
    try:
        thread.start()
        assert turns_during(lambda: ls.sum(small, variant="ref")) == 0
        assert turns_during(lambda: plan(small)) == 0
        assert turns_during(lambda: ls.sum(larger, variant="ref")) > 0
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        thread.join()


def test_numpy_of_an_unknown_binary_interface():
    """Its arrays come by the buffer protocol, and results by calls of Python, with the same bits and types."""
    assert run("""
        import numpy as np, lockstep as ls
        from lockstep import _kinds
        _kinds._known_layout = lambda: False
        x = np.arange(12, dtype="f4").reshape(3, 4)
        assert ls.sum(x) == 66 and type(ls.sum(x)) is np.float32 and type(ls.sum(x.astype("i4"))) is np.int64
        assert type(ls.norm(x.astype("i4"))) is np.float64
        assert ls.transpose(x).tobytes() == x.T.tobytes() and ls.transpose(x).dtype == "f4"
        assert ls.max(x.astype("f2"), axis=0).dtype == "f2" and ls.permute(x.astype("c8"), (1, 0)).dtype == "c8"
        print("done")
        """) == "done\n"


def test_a_context_may_be_closed_while_a_call_runs():
    big = np.ones(20_000_000, "f4")
    context = ls.Context("cpu", threads=1)
    results = []
    thread = threading.Thread(target=lambda: results.append(context.sum(big)))
    thread.start()
    time.sleep(0.002)
    context.close()
    thread.join()
    assert results in ([2e7], [])  # it ran to its end, or had not begun


def test_a_child_of_fork_computes():
    assert run("""
        import os, numpy as np, lockstep as ls
        x = np.ones(1_000_000, "f4")
        assert ls.sum(x) == 1e6
        child = os.fork()
        if child == 0:
            os._exit(0 if ls.sum(x) == 1e6 and ls.plan.sum(x)(x) == 1e6 else 1)
        assert os.waitpid(child, 0)[1] == 0
        print("done")
        """, "-W", "ignore::DeprecationWarning") == "done\n"


def test_a_child_of_fork_has_the_plans_that_others_ran():
    assert run("""
        import os, signal, threading, time, numpy as np, lockstep as ls
        x = np.ones(3_000_000)
        plans = ls.plan.cumsum(x), ls.group.plan("cumsum", [x])
        for plan, arguments in zip(plans, ([x], [])):
            thread = threading.Thread(target=lambda: [plan(*arguments) for _ in range(30)])
            thread.start()
            for _ in range(5):
                time.sleep(0.01)
                child = os.fork()
                if child == 0:
                    signal.alarm(20)
                    os._exit(0 if np.ravel(plan(*arguments))[-1] == 3_000_000 else 1)
                assert os.waitpid(child, 0)[1] == 0
            thread.join()
        print("done")
        """, "-W", "ignore::DeprecationWarning") == "done\n"


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_pools_of_processes(method):
    assert run(f"""
        import multiprocessing, numpy as np, lockstep as ls
        if __name__ == "__main__":
            x = np.ones(100_000)
            ls.sum(x)
            with multiprocessing.get_context("{method}").Pool(2) as pool:
                print(set(pool.map(ls.sum, [x] * 4)) == {{100_000.0}})
        """, "-W", "ignore::DeprecationWarning") == "True\n"


def test_exit_during_a_call():
    for ending in ("pass", "os._exit(0)", "sys.exit(0)"):
        run(f"""
            import os, sys, threading, time, numpy as np, lockstep as ls
            x = np.ones(30_000_000, "f4")
            def work():
                while True:
                    ls.sum(x, variant="ref")
            threading.Thread(target=work, daemon=True).start()
            time.sleep(0.05)
            {ending}
            """)


# Seconds for an interrupt on a busy machine; on a quiet one it takes less than 0.15.
SOON = 5

INTERRUPTED = textwrap.dedent("""
    import signal, threading, os, time, numpy as np, lockstep as ls
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits that it is ignored
    x = np.ones(30_000_000, "f4")
    m = x.reshape(-1, 1000)
    sent = []
    def interrupt():
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    def ends(call, times):
        threading.Thread(target=interrupt).start()
        try:
            for _ in range(times):
                call()
        except KeyboardInterrupt as e:
            return time.monotonic() - sent.pop(), " ".join(getattr(e, "__notes__", ()))
    """)


def test_an_interrupt_ends_a_call_of_many_sweeps():
    """Each would run for minutes."""
    out = run(INTERRUPTED + textwrap.dedent(f"""
        small = np.ones((400, 300))
        for threads in (1, 2):
            ls.set_num_threads(threads)
            plan = ls.plan.stencil(m, ls.laplace_weights(2), sweeps=20_000)
            calls = [lambda: ls.stencil(m, ls.laplace_weights(2), mode="wrap", sweeps=20_000), lambda: ls.stencil(x, [0.25, 0.5, 0.25], sweeps=20_000),
                     lambda: ls.stencil(small, ls.laplace_weights(2), sweeps=4_000_000), lambda: plan(m)]
            for call in calls:
                seconds, notes = ends(call, 1)
                assert seconds < {SOON}, seconds
                assert "out" in notes and "incomplete" in notes, notes
            out = np.empty_like(x)  # and nothing is left behind
            assert ls.stencil(x, [0.25, 0.5, 0.25], mode="wrap", out=out) is out and (out == 1).all() and ls.sum(x) == 3e7
        print("ended")
        """))
    assert out == "ended\n"


def test_an_interrupt_ends_a_long_reduction():
    """Two axes of steps of 0 bytes: as many elements as take seconds, in little memory."""
    out = run(INTERRUPTED + textwrap.dedent(f"""
        many = np.broadcast_to(x, (2000, len(x)))
        for call in (lambda: ls.sum(many, axis=1), lambda: ls.argmax(many, axis=1), lambda: ls.square_sum(many, axis=1)):
            seconds, notes = ends(call, 1)
            assert seconds < {SOON} and "incomplete" in notes, (seconds, notes)
        print(ls.sum(x) == 3e7)
        """))
    assert out == "True\n"


def test_an_interrupt_that_raises_nothing_ends_nothing():
    assert run(INTERRUPTED + textwrap.dedent("""
        seen, want = [], ls.stencil(m, ls.laplace_weights(2), mode="wrap", sweeps=30)
        plan = ls.plan.stencil(m, ls.laplace_weights(2), mode="wrap", sweeps=30)
        def handler(*_):
            seen.append(ls.sum(x))
            try:
                plan(m)
            except ls.InvalidArgument as e:
                seen.append(str(e))
        signal.signal(signal.SIGINT, handler)
        for call in (lambda: ls.stencil(m, ls.laplace_weights(2), mode="wrap", sweeps=30), lambda: plan(m)):
            seen.clear()
            threading.Thread(target=interrupt).start()
            while not seen:
                got = call()
            assert seen[0] == 3e7 and (got == want).all()
        print("the same")
        """)) == "the same\n"


def test_an_interrupt_comes_after_a_call_that_does_not_ask():
    assert run(INTERRUPTED + textwrap.dedent("""
        seconds, notes = ends(lambda: ls.sum(x, variant="ref"), 10_000)
        print(ls.sum(x) == 3e7)
        """)) == "True\n"


def test_import_is_cheap_and_needs_nobody():
    out = run("""
        import sys
        sys.modules["numpy"] = sys.modules["torch"] = None
        import lockstep as ls
        assert "logging" not in sys.modules
        b = ls.empty(8, "int64")
        memoryview(b)[:] = memoryview(bytes(64)).cast("q")
        ls.sum(b, axis=0, out=ls.empty((), "int64"))
        print(memoryview(ls.sum(b)).tolist(), bool(ls.verify()))
        """, "-X", "dev", "-W", "error", HOME="")
    assert out == "0 True\n"


def test_import_takes_no_time(tmp_path):
    """By the processor's time, since a shared machine lets a program wait; 15 ms on a quiet one."""
    code = """
        import time
        begin = time.process_time()
        import lockstep
        print(time.process_time() - begin)
        """
    took = [float(run(code, PYTHONPYCACHEPREFIX=str(tmp_path), PYTHONDONTWRITEBYTECODE="")) for _ in range(9)]
    assert min(took[1:]) < 0.045, took


def test_a_package_that_cannot_be_written(tmp_path):
    """No HOME, no writable folder, modules of backends that are broken: the CPU computes, and says why the others do not."""
    (tmp_path / "lockstep-cuda.so").write_bytes(b"not a module")
    assert run("""
        import numpy as np, lockstep as ls
        assert ls.sum(np.ones(10)) == 10 and ls.plan.sum(np.ones(1000), tune=True)(np.ones(1000)) == 1000
        print(*[b.name for b in ls.backends() if b.usable], *[bool(b.reason) for b in ls.backends() if not b.usable])
        """, HOME="/nonexistent", XDG_CACHE_HOME="/proc/nonexistent", LOCKSTEP_BACKEND_PATH=str(tmp_path)) == "cpu True\n"


def test_warnings_and_development_mode():
    run("""
        import numpy as np, lockstep as ls
        assert ls.sum(np.ones((3, 4)), axis=0).tolist() == [3] * 4
        try:
            ls.sum(np.ones(3), axis=1)
        except ls.InvalidArgument:
            pass
        """, "-X", "dev", "-W", "error")


INTERPRETERS = """
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    import threading
    code = '''
    import sys
    sys.path[:0] = {path!r}
    import lockstep as ls
    b = ls.empty(1000, "float64")
    memoryview(b)[:] = memoryview(bytes(8000)).cast("d")
    for _ in range(50):
        assert memoryview(ls.sum(b)).tolist() == 0.0
    with ls.variants(reduce="ref"), ls.Context("cpu", threads=1) as context:
        context.sum(b)
    '''
    def work():
        one = interpreters.create()
        failed = interpreters.run_string(one, code) if hasattr(interpreters, "run_string") else None
        assert not failed, failed
        interpreters.destroy(one)
    import lockstep as ls
    ls.verify()
    work()
    errors = []
    threading.excepthook = lambda e: errors.append(e.exc_value)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert not errors, errors
    print("done")
    """


@pytest.mark.skipif(sys.version_info < (3, 12), reason="interpreters of a process share a lock before 3.12")
def test_several_interpreters():
    path = [str(pathlib.Path(ls.__file__).parent.parent)]
    assert run(textwrap.dedent(INTERPRETERS).replace("{path!r}", repr(path)), "-W", "ignore") == "done\n"
