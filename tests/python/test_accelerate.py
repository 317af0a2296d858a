"""lockstep.accelerate: NumPy's functions, methods and ufuncs of a view are lockstep's; NumPy itself stays as it is."""
import copy
import pickle

import numpy as np
import pytest

import lockstep as ls

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((300, 41)).astype("f4")
Y = ls.accelerate(X)


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), (a, b)


def ran(call):
    """What the call gives, and the operations of lockstep that it came by."""
    with ls.record() as runs:
        result = call()
    return result, len(runs)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "nansum", "nanmax", "nanmin", "count_nonzero"])
def test_functions_and_methods_are_lockstep(name, axis):
    keywords = {"dtype": "f4"} if name == "nansum" else {}
    expected = getattr(ls, name)(X, axis, **keywords)
    calls = [lambda: getattr(np, name)(Y, axis=axis), lambda: getattr(np, name)(Y, axis)]
    if hasattr(Y, name):
        calls.append(lambda: getattr(Y, name)(axis=axis))
    for call in calls:
        found, runs = ran(call)
        same(found, expected)
        assert runs and (np.ndim(found) == 0 or type(found) is type(Y))


def test_ufuncs_are_lockstep():
    for ufunc, name in ((np.add, "sum"), (np.multiply, "prod"), (np.maximum, "max"), (np.minimum, "min"), (np.logical_and, "all"), (np.logical_or, "any")):
        found, runs = ran(lambda: ufunc.reduce(Y))
        same(found, getattr(ls, name)(X, 0))
        assert runs
    same(np.add.accumulate(Y), ls.cumsum(X, 0))
    same(Y.cumsum(), ls.cumsum(X))
    same(np.cumsum(Y, 1), ls.cumsum(X, 1))
    for name in ("exp", "expm1", "tanh"):
        same(getattr(np, name)(Y), getattr(ls, name)(X))
    for name in ("log", "log1p", "sqrt"):
        same(getattr(np, name)(abs(Y)), getattr(ls, name)(abs(X)))
    same(np.argmax(Y, axis=1), ls.argmax(X, 1))
    same(np.linalg.norm(Y), ls.norm(X))
    same(np.linalg.norm(Y, axis=1), ls.norm(X, axis=1))
    same(np.vdot(Y, Y), ls.vdot(X, X))
    same(np.vdot(Y, X.astype("f8")), ls.vdot(X.astype("f8"), X.astype("f8")))


def test_keywords_and_dtypes_are_numpys():
    mask = X > 0
    for a, b in ((np.sum(Y, axis=1, keepdims=True, initial=3, where=mask), ls.sum(X, 1, keepdims=True, initial=3, where=mask)),
                 (np.mean(Y, dtype="f8"), ls.mean(X, dtype="f8")), (np.std(Y, 0, ddof=1), ls.std(X, 0, correction=1)), (Y.var(1, correction=1), ls.var(X, 1, correction=1))):
        same(a, b)
    out = np.empty(41)
    assert np.sum(Y, axis=0, out=out) is out and (out == ls.sum(X, 0)).all()
    for dtype in ("?", "i1", "i4", "u1", "u4", "f2", "f4", "f8"):
        x = np.ones((3, 4), dtype)
        for name in ("sum", "prod", "mean", "max", "cumsum", "var"):
            if name != "max" or dtype != "?":
                assert getattr(np, name)(ls.accelerate(x)).dtype == getattr(np, name)(x).dtype, (dtype, name)
    for _ in range(2):
        same(np.sqrt(ls.accelerate(np.array([2.0, 3.0]))), np.sqrt([2.0, 3.0]))
    assert ls.accelerate([1, 2]).sum() == 3


def test_the_rest_stays_numpys_and_keeps_the_kind():
    assert type(Y + 1) is type(Y[1:]) is type(Y) and np.shares_memory(X, Y)
    same(Y @ Y.T, X @ X.T)
    same(np.median(Y, 0), np.median(X, 0))
    z = ls.accelerate(X.copy())
    z += 1
    same(z, X + 1)
    same(np.add(Y, 1, out=z), X + 1)
    same(np.divmod(Y, 2)[0], np.divmod(X, 2)[0])
    assert type(pickle.loads(pickle.dumps(Y))) is type(copy.deepcopy(Y)) is type(Y)
    _, runs = ran(lambda: (np.sum(X), np.exp(X), X.mean(), np.sum(Y.view(np.ndarray))))
    assert not runs  # NumPy is not changed


@pytest.mark.parametrize("error, text, call", [
    (TypeError, "sum: x holds complex64.*view", lambda: np.sum(ls.accelerate(np.ones(2, "c8")))),
    (TypeError, "float64; exp takes.*view", lambda: np.exp(ls.accelerate(np.ones(2)))),
    (NotImplementedError, "where is given", lambda: np.exp(Y, where=X > 0)),
    (NotImplementedError, "mean is given", lambda: Y.var(mean=np.ones((1, 1)))),
    (OverflowError, "does not fit", lambda: ls.accelerate(np.array([2**62, 2**62])).sum()),
    (TypeError, "of object", lambda: ls.accelerate(np.array([None]))),
])
def test_what_lockstep_has_not_is_an_error(error, text, call):
    with pytest.raises(error, match=text):
        call()


def test_arrays_of_others_are_told_where_to_go():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="of torch.*deterministic"):
        ls.accelerate(torch.ones(3))
