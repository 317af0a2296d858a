"""Everything that threads share, used by eight at once: the same bits, and nothing falls. Where CPython has no lock
(free threading) the package must not bring it back."""
import array
import random
import sys
import sysconfig
import threading
import time

import numpy as np
import pytest

import lockstep as ls

SECONDS, THREADS = 2.0, 8
X = np.random.default_rng(1).standard_normal((40, 50))


def together(*jobs):
    """Runs the jobs in turn, in eight threads that begin at different ones."""
    end, failures = time.monotonic() + SECONDS, []
    begin = threading.Barrier(THREADS)

    def work(first):
        begin.wait()
        try:
            count = first
            while time.monotonic() < end and not failures:
                jobs[count % len(jobs)]()
                count += 1
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]


def test_the_lock_stays_away():
    import lockstep._verify  # noqa: F401
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("a CPython with its lock")
    assert not sys._is_gil_enabled()


def test_calls_on_arrays_of_many_kinds():
    want, rows, turned = ls.sum(X), ls.sum(X, axis=(1,)).tobytes(), ls.transpose(X).tobytes()
    plain = array.array("d", X.ravel().tolist())
    own = np.asarray(ls.empty((40, 50), "float64"))
    own[:] = X
    plan, shared = ls.plan.dot(X, X), ls.Context("cpu", threads=2)

    class Mine(np.ndarray):
        pass

    def check(ok):
        assert ok

    kinds = [type(f"Kind{k}", (Mine,), {}) for k in range(200)]  # types that nobody has seen yet
    together(lambda: check(ls.sum(X) == want), lambda: check(ls.sum(X, axis=(1,)).tobytes() == rows), lambda: check(ls.sum(plain) == want),
             lambda: check(ls.sum(memoryview(plain)) == want), lambda: check(ls.transpose(X).tobytes() == turned),
             lambda: check(ls.sum(X.view(random.choice(kinds))) == want), lambda: check(plan(X) == ls.square_sum(X)),
             lambda: check(ls.sum(own) == want), lambda: check(ls.mean_var(X)[0] == ls.mean(X)), lambda: check(shared.sum(X) == want),
             lambda: check(np.asarray(ls.empty(3)).shape == (3,)))


def test_settings_and_watchers():
    def scoped():
        with ls.variants(reduce="ref"):
            assert ls.sum(X).tobytes() == want and ls.last_run().variant == "ref"

    def recorded():
        with ls.record() as runs:
            ls.sum(X)
        assert [run.op for run in runs].count("reduce") >= 1

    def failing():
        try:
            ls.sum(X, axis=7)
        except ls.InvalidArgument:
            return
        raise AssertionError("no exception")

    want = ls.sum(X).tobytes()
    together(scoped, recorded, failing, lambda: ls.set_num_threads(random.choice((1, 2))), lambda: ls.last_run(), ls.synchronize)
    ls.set_num_threads(0)


def test_contexts_that_are_closed_in_use():
    place = [ls.Context("cpu", threads=1)]

    def use():
        try:
            assert place[0].sum(X) == want
        except ls.InvalidArgument as e:
            assert "closed" in str(e)

    def replace():
        old, place[0] = place[0], ls.Context("cpu", threads=1)
        old.close()

    want = ls.sum(X)
    together(use, use, use, replace)
