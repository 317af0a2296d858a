"""Digests: the formula in NumPy, layouts, named arrays, what must differ, errors, the command line's."""
import numpy as np
import pytest
from test_operations import LAYOUTS, noise

import lockstep as ls

NUMBERS = {"f2": 1, "f4": 3, "f8": 4, "i4": 5, "i8": 6, "i1": 7, "i2": 8, "u1": 9, "u2": 10, "u4": 11, "u8": 12, "?": 13}  # of lockstep_dtype


def formula(x):
    """As order.md has it."""
    raw, u = np.ascontiguousarray(x).tobytes(), np.uint64
    words = np.frombuffer(raw + bytes(-len(raw) % 8), "<u8")
    missing = np.zeros(len(words), u)
    missing[-1:] = -len(raw) % 8
    key = np.arange(1, len(words) + 1, dtype=u) * u(0x9E3779B97F4A7C15) + (u(16 * NUMBERS[x.dtype.str.lstrip("<|=").replace("b1", "?")]) + missing) * u(0xC2B2AE3D27D4EB4F)
    x = words + key
    x = (x ^ (x >> u(30))) * u(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> u(27))) * u(0x94D049BB133111EB)
    x = x ^ (x >> u(31))
    y = (x ^ (x >> u(32))) * u(0xD6E8FEB86659FD93)
    return f"{int(x.sum(dtype=u)):016x}{int((y ^ (y >> u(32))).sum(dtype=u)):016x}"


@pytest.mark.parametrize("dtype", NUMBERS)
def test_the_formula_in_every_layout(dtype):
    for shape in ((), (1,), (0,), (3, 5), (4, 5, 6), (9, 1001), (70001,)):
        x = np.frombuffer(np.random.default_rng(2).bytes(8 * int(np.prod(shape)) or 8), dtype)[: int(np.prod(shape))].reshape(shape)
        x = (x.view("u1") & 1).astype("?") if dtype == "?" else x
        want = formula(x)
        assert ls.digest(x) == want == ls.digest(x, backend="cpu")
        if x.ndim == 3:
            assert all(ls.digest(LAYOUTS[layout](x)) == want for layout in LAYOUTS)
    with ls.variants(sums="ref"):
        assert ls.digest(x) == want


def test_what_must_differ():
    x = np.zeros(40, "f4")
    seen = {ls.digest(x), ls.digest(x[:39]), ls.digest(x.view("i4")), ls.digest(x.view("f8")), ls.digest(-x), ls.digest(x.view("u1")), ls.digest(x[:0])}
    for i in range(40):
        for value in (1.0, 2.0, np.nan):
            y = x.copy()
            y[i] = value
            seen.add(ls.digest(y))
    assert len(seen) == 7 + 120
    a, b = np.array([0, 1, 1, 0], "i8"), np.array([1, 0, 0, 1], "i8")
    assert ls.digest(a) != ls.digest(b) and ls.digest(a.astype("u1")) != ls.digest(b.astype("u1"))


def test_named_arrays():
    x, y = noise((3, 4), "f4"), np.arange(5)
    lines = "".join(f"{name} {dtype} {shape} {ls.digest(a)}\n" for name, dtype, shape, a in
                    (("bias", "int64", "5", y), ("head.weight", "float32", "3x4", x), ("step", "float64", "", np.float64(3))))
    named = {"step": np.array(3.0), "head.weight": x, "bias": y}
    assert ls.digest(named) == ls.digest(dict(reversed(named.items()))) == formula(np.frombuffer(lines.encode(), "u1"))
    assert ls.digest([x, y]) == ls.digest((x, y)) != ls.digest([y, x]) and ls.digest([1.0, 2.0]) == ls.digest(np.array([1.0, 2.0]))
    assert ls.digest({}) == formula(np.zeros(0, "u1"))


def test_errors_and_pytorch():
    with pytest.raises(TypeError, match="x holds complex128; a digest is of"):
        ls.digest(np.ones(3, "c16"))
    with pytest.raises(ValueError, match="same text"):
        ls.digest({1: np.ones(1), "1": np.ones(1)})
    torch = pytest.importorskip("torch")
    x = torch.arange(10, dtype=torch.float32).reshape(2, 5)
    assert ls.digest(x) == formula(x.numpy()) and ls.digest(x.T) == formula(x.numpy().T)
    model = torch.nn.Linear(3, 2)
    assert ls.digest(model.state_dict()) == ls.digest({k: v.numpy() for k, v in model.state_dict().items()})
    assert ls.digest(x.bfloat16()) != ls.digest(x.bfloat16().view(torch.int16))
