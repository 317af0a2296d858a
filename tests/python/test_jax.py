"""lockstep.jax: the operations in programs of JAX, under jit, vmap and grad. Skipped without JAX; on its default device, the GPU where it has one."""
import importlib.util
import itertools
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

if importlib.util.find_spec("jax") is None:
    pytest.skip("no JAX", allow_module_level=True)
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
from jax.test_util import check_grads

import lockstep as ls
import lockstep.jax as lj

if jax.default_backend() == "gpu" and not any(b.name == "cuda" and b.usable for b in ls.backends()):
    pytest.skip("JAX on a GPU that lockstep cannot use", allow_module_level=True)
RNG = np.random.default_rng(12)
LABELS = RNG.integers(0, 64, 5)
STAR = [0.5, -1.0, 2.0, 0.25, 1.5]


@pytest.fixture
def x64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def same(got, want):
    got, want = np.asarray(got), np.asarray(want)
    return got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


def calls(dtype):
    """(the function here, the one of lockstep on the same array)"""
    w, b = (RNG.standard_normal(64).astype(dtype) for _ in range(2))
    floats = np.dtype(dtype).kind == "f"
    for axis, keepdims in itertools.product((None, 0, 1, -1, (0, 2), (1, 2)), (False, True)):
        for name in ("sum", "max", "min", "argmax", "argmin", "square_sum", "norm"):
            yield f"{name} {axis}", lambda x, m, n=name, a=axis, k=keepdims: getattr(m, n)(x, axis=a, keepdims=k)
        if floats:
            yield f"mean {axis}", lambda x, m, a=axis, k=keepdims: m.mean(x, a, keepdims=k)
            yield f"var {axis}", lambda x, m, a=axis, k=keepdims: m.var(x, a, correction=1, keepdims=k)
            yield f"dot {axis}", lambda x, m, a=axis, k=keepdims: m.dot(x, x[::-1], a, keepdims=k)
    yield "transpose", lambda x, m: m.transpose(x) if m is lj else m.matrix_transpose(x)
    yield "permute", lambda x, m: m.permute(x, (2, 0, 1))
    yield "cumsum", lambda x, m: m.cumsum(x, axis=-1)
    yield "cumsum of the first", lambda x, m: m.cumsum(x, axis=0)
    if floats:
        for to, axes in itertools.product(("float16", "float64", "float32"), (None, (2, 0, 1))):
            yield f"convert to {to}", lambda x, m, to=to, a=axes: m.convert(x, to, axes=a, scale=0.3)
        yield "mean in double", lambda x, m: m.mean(x, 1, dtype="float64")
        yield "sum in double", lambda x, m: m.sum(x, 1, dtype="float64")
        for name in ("normalize", "rms_norm", "layer_norm"):
            yield name, lambda x, m, n=name: getattr(m, n)(x)
            yield f"{name} weighted", lambda x, m, n=name: getattr(m, n)(x, weight=w, bias=b)
            yield f"{name} of two axes", lambda x, m, n=name: getattr(m, n)(x, (1, 2), eps=0.5)
            yield f"{name} of the middle", lambda x, m, n=name: getattr(m, n)(x, 1)
            yield f"{name} of axes apart", lambda x, m, n=name: getattr(m, n)(x, (2, 0))
        labels = RNG.integers(0, 64, (6, 70))
        for axis, scale in itertools.product((-1, 0, 1, (0, 2)), (1.0, -0.3)):
            for name in ("softmax", "log_softmax", "logsumexp"):
                yield f"{name} {axis} {scale}", lambda x, m, n=name, a=axis, s=scale: getattr(m, n)(x, a, scale=s)
        yield "logsumexp, kept", lambda x, m: m.logsumexp(x, (0, 1), keepdims=True, dtype="float16")
        yield "picked", lambda x, m: m.picked(x, labels, scale=0.3)
        yield "picked of the middle", lambda x, m: m.picked(x, labels[:, :64], 1, dtype="float16")
        for mode, sweeps in itertools.product(("reflect", "valid", "wrap", "constant"), (1, 2)):
            yield f"stencil {mode}", lambda x, m, mode=mode, s=sweeps: m.stencil(x, STAR, mode=mode, cval=2.0, sweeps=s, axes=(1, 2))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_programs_have_the_bits_of_the_functions(x64, dtype):
    x = (RNG.standard_normal((6, 70, 64)) * 50).astype(dtype)
    given = jnp.asarray(x)
    for name, call in calls(dtype):
        assert same(jax.jit(lambda a, f=call: f(a, lj))(given), call(x, ls)), name


FUNCTIONS = ["exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "erf", "softplus"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_an_element(name):
    x = (RNG.standard_normal((5, 33)) * 3).astype("f4")
    here, there = getattr(lj, name), getattr(ls, name)
    for dtype in ("float32", "float16"):
        a = x.astype(dtype)
        assert same(jax.jit(here)(a), there(a)) and same(here(a, dtype="float32"), there(a, dtype="float32"))
        assert same(jax.vmap(here, in_axes=1)(a), there(np.ascontiguousarray(a.T)))
    with pytest.raises(ls.UnsupportedDtype):
        here(jnp.arange(3))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_functions(name, x64):
    import lockstep._jax_functions as functions
    peers = {"sqrt": jnp.sqrt, "rsqrt": jax.lax.rsqrt, "reciprocal": jnp.reciprocal, "gelu": lambda x: jax.nn.gelu(x, approximate=False), "gelu_tanh": jax.nn.gelu, "erf": jax.lax.erf}
    peer = peers.get(name) or getattr(jnp, name, None) or getattr(jax.nn, name)
    x = jnp.asarray(abs(RNG.standard_normal(60)) + 0.1 if name in ("log", "log1p", "sqrt", "rsqrt") else RNG.standard_normal(60) * 3)
    want = jax.vmap(jax.grad(peer))(x)
    # The formula in double, and through the function of floats.
    assert np.allclose(functions._SLOPES[name](x, peer(x)), want, rtol=3e-7, atol=1e-7)
    assert np.allclose(jax.grad(lambda a: (getattr(lj, name)(a) * 2).sum())(x.astype("float32")), 2 * want, rtol=1e-5, atol=1e-6)


def test_gradients_of_softmax_and_its_kin(x64):
    x, labels = jnp.asarray(RNG.standard_normal((4, 5, 6))), RNG.integers(0, 5, (4, 6))
    fs = [lambda a, n=n, k=k, s=s: getattr(lj, n)(a, k, scale=s) for n in ("softmax", "log_softmax", "logsumexp") for k in (-1, 1, (0, 2)) for s in (1.0, -0.4)]
    fs += [lambda a: lj.logsumexp(a, 1, keepdims=True) * 2, lambda a: lj.picked(a, labels, 1, scale=0.7)]
    for f in fs:
        check_grads(f, (x,), 2, ["rev"])
    for f in (lambda a: (lj.softmax(a) ** 2).sum(), lambda a: lj.picked(a, labels[0, :5]).sum()):
        assert same(jax.jit(jax.vmap(jax.grad(f)))(x), np.stack([jax.jit(jax.grad(f))(a) for a in x]))


def test_gated_units_have_gradients(x64):
    x, y = (jnp.asarray(np.random.default_rng(k).standard_normal((6, 5)).astype("f4")) for k in (1, 2))
    for name, peer in (("silu", jax.nn.silu), ("tanh", jnp.tanh)):
        function = getattr(lj, name)
        assert (np.asarray(jax.jit(lambda a, b: function(a, times=b))(x, y)) == getattr(ls, name)(np.asarray(x), times=np.asarray(y))).all()
        got = jax.grad(lambda a, b: function(a, times=b).sum(), (0, 1))(x, y)
        want = jax.grad(lambda a, b: (peer(a) * b).sum(), (0, 1))(x.astype("f8"), y.astype("f8"))
        assert all(np.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in zip(got, want))
        assert (jax.vmap(lambda a, b: function(a, times=b))(x, y) == function(x, times=y)).all()
        assert (jax.vmap(lambda a: function(a, times=y[0]))(x)[2] == function(x[2], times=y[0])).all()


def test_picked_without_words_of_64_bits():
    x, labels = RNG.standard_normal((4, 5, 6)).astype("f4"), RNG.integers(0, 5, (4, 6))
    assert same(jax.jit(lambda a: lj.picked(a, labels, 1))(x), ls.picked(x, labels, 1))
    want = jax.grad(lambda a: jnp.take_along_axis(jax.nn.log_softmax(a, 1), labels[:, None], 1).sum())(x)
    assert np.allclose(jax.grad(lambda a: lj.picked(a, labels, 1).sum())(x), want, atol=1e-6)
    assert np.isnan(lj.picked(x[0], np.array([-1, 6, -6, 7, 2]))[:4]).all()
    for bad in (labels[:3], labels * 1.0):
        with pytest.raises(ls.InvalidArgument, match="labels has"):
            lj.picked(x, bad, 1)
    with pytest.raises(ls.InvalidArgument, match="one axis"):
        lj.picked(x, labels, (0, 1))


def test_narrow_types(x64):
    x = RNG.integers(0, 100, (5, 40))
    for dtype in ("bfloat16", "float16", "int8", "uint8", "int16", "uint32", "bool"):
        a = jnp.asarray(x).astype(dtype)
        here = np.asarray(a)
        assert same(jax.jit(lambda a: lj.sum(a, 1))(a), ls.sum(here, 1)) and same(jax.jit(lambda a: lj.max(a, 0))(a), ls.max(here, 0)), dtype
        assert same(jax.jit(lj.transpose)(a), here.T)


def test_axes_of_every_kind():
    x = jnp.ones((2, 3))
    for axes in (np.int64(1), range(1, 2), np.array([1]), [-1]):
        assert lj.sum(x, axes).tolist() == [3, 3]
    for axes in (1.0, (0.6,), "1"):
        with pytest.raises(TypeError, match="axis is"):
            lj.sum(x, axes)
    with pytest.raises(TypeError, match="sweeps is 1.5"):
        lj.stencil(x, [1, 2, 1], axes=1, sweeps=1.5)


def test_what_a_program_does_to_layouts():
    """XLA may lay arrays out as it likes between its own operations; a call has them packed."""
    x = RNG.standard_normal((30, 40)).astype("f4")
    assert same(jax.jit(lambda a: lj.sum((a.T * 2)[::-1], 1))(x), ls.sum(np.ascontiguousarray((x.T * 2)[::-1]), 1))
    assert same(jax.jit(lambda a: lj.transpose(a) + lj.transpose(a))(x), x.T * 2)
    assert same(jax.jit(lambda a: lj.norm(lj.permute(a.reshape(5, 6, 40), (2, 1, 0)), -1))(x), ls.norm(x.reshape(5, 6, 40).transpose(2, 1, 0), axis=-1))
    loop = jax.jit(lambda a: jax.lax.fori_loop(0, 3, lambda _, b: lj.stencil(b, [1.0, 2.0, 1.0], axes=1), a))
    assert same(loop(x), ls.stencil(x, [1, 2, 1], axes=1, sweeps=3))


def test_vmap_changes_no_bit():
    x, y = (RNG.standard_normal((3, 5, 64)).astype("f4") for _ in range(2))
    for f in (lj.sum, lj.norm, lj.max, lambda a: lj.sum(a, 0), lambda a: lj.norm(a, -1, keepdims=True), lj.transpose, lambda a: lj.permute(a, (1, 0)),
              lj.mean, lambda a: lj.var(a, 0), lambda a: lj.convert(a, "float16", axes=(1, 0)), lj.cumsum, lj.softmax, lambda a: lj.logsumexp(a, 0), lambda a: lj.picked(a, LABELS[:len(a)]), lj.rms_norm, lambda a: lj.layer_norm(a, weight=y[0, 0]), lambda a: lj.stencil(a, STAR, mode="wrap")):
        want = np.stack([f(a) for a in x])
        assert same(jax.jit(jax.vmap(f))(x), want) and same(jax.vmap(jax.vmap(f))(x[:, None]), want[:, None])
        assert same(jax.vmap(f, in_axes=1)(x), np.stack([f(x[:, k]) for k in range(5)]))
    assert same(jax.vmap(lj.dot)(x, y), np.stack([lj.dot(a, b) for a, b in zip(x, y)]))
    assert same(jax.vmap(lj.dot, (0, None))(x, y[0]), np.stack([lj.dot(a, y[0]) for a in x]))
    assert same(jax.vmap(lj.dot, (None, 0))(x[0], y), np.stack([lj.dot(x[0], b) for b in y]))
    weights = y[:, 0]
    assert same(jax.vmap(lambda a, w: lj.rms_norm(a, weight=w))(x, weights), np.stack([lj.rms_norm(a, weight=w) for a, w in zip(x, weights)]))
    assert same(jax.vmap(lj.picked)(x, np.stack([LABELS, LABELS[::-1], LABELS])), np.stack([ls.picked(x[0], LABELS), ls.picked(x[1], LABELS[::-1].copy()), ls.picked(x[2], LABELS)]))
    # One call for a batch, not one for each.
    for f in (lj.sum, lj.transpose, lj.rms_norm, lj.softmax, lj.gelu):
        assert str(jax.make_jaxpr(jax.vmap(f))(x)).count("lockstep_execute") == 1


@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_gradients(x64, axis):
    x, y = (jnp.asarray(RNG.standard_normal((4, 5, 6))) for _ in range(2))
    for f in (lj.sum, lj.square_sum, lj.norm, lj.max, lj.min, lj.mean, lj.var):
        check_grads(lambda a, f=f: f(a, axis), (x,), 2, ["rev"])
        check_grads(lambda a, f=f: f(a, axis, keepdims=True) * 3, (x,), 1, ["rev"])
    check_grads(lambda a, b: lj.dot(a, b, axis), (x, y), 2, ["rev"])
    check_grads(lambda a: lj.convert(a, "float64", axes=(2, 0, 1), scale=-0.75) ** 2, (x,), 2, ["rev"])


def test_gradients_of_the_others(x64):
    x = jnp.asarray(RNG.standard_normal((4, 5, 6)))
    w, b = (jnp.asarray(RNG.standard_normal(6)) for _ in range(2))
    fs = [lj.transpose, lambda a: lj.permute(a, (2, 0, 1)), lj.cumsum]
    fs += [lambda a, m=m, s=s: lj.stencil(a, STAR, mode=m, cval=1.5, sweeps=s, axes=(1, 2)) for m, s in (("wrap", 1), ("constant", 2), ("valid", 1), ("valid", 2), ("nearest", 1), ("mirror", 2), ("reflect", 2), ("grid-mirror", 1))]
    fs += [lambda a, m=m, n=n: lj.stencil(a[0, :, :n], [0.5, -1.0, 2.0, 0.25, 1.5, 3.0, -0.75], mode=m, axes=1) for m, n in itertools.product(("nearest", "mirror", "reflect"), (1, 2))]
    for f in fs:
        check_grads(lambda a, f=f: (f(a) ** 2).sum(), (x,), 2, ["rev"])
    for f in (lj.normalize, lj.rms_norm, lj.layer_norm):
        check_grads(lambda a, w, b, f=f: f(a, weight=w, bias=b, eps=0.1), (x, w, b), 2, ["rev"])
        check_grads(lambda a, f=f: f(a, (1, 2), eps=0.1), (x,), 2, ["rev"])
    assert not np.asarray(jax.grad(lj.norm)(jnp.zeros(5))).any()
    assert jax.grad(lj.max)(jnp.array([2.0, 7.0, 7.0])).tolist() == [0, 1, 0]
    assert jax.grad(lj.min)(jnp.array([2.0, np.nan, np.nan])).tolist() == [0, 1, 0]
    assert jax.grad(lambda a: a[lj.argmax(a)])(jnp.array([2.0, 7.0])).tolist() == [0, 1]
    for f in (lj.norm, lambda a: (lj.rms_norm(a) ** 3).sum()):
        assert same(jax.jit(jax.vmap(jax.grad(f)))(x), np.stack([jax.jit(jax.grad(f))(a) for a in x]))


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32"))
@pytest.mark.parametrize("name", ("rms_norm", "layer_norm"))
def test_gradients_of_rows_have_the_bits_of_one_call(name, dtype):
    x, g, w, b = (jnp.asarray(RNG.standard_normal(s)).astype(dtype) for s in ((3, 7, 40), (3, 7, 40), 40, 40))
    of, backward = getattr(lj, name), getattr(ls, f"{name}_backward")

    def pulled(x, g, *sides):  # weight, bias
        return jax.vjp(lambda x, *s: of(x, eps=1e-3, **dict(zip(("weight", "bias"), s))), x, *sides)[1](g)

    def want(x, g, *sides):
        x, g, *sides = (np.asarray(a) for a in (x, g, *sides))
        columns = [np.empty_like(a) for a in sides]
        given = dict(zip(("weight_gradient", "bias_gradient"), columns), **dict(zip(("weight",), sides)))
        return [backward(x, g, eps=1e-3, **given), *columns]

    for sides in ((), (w,), (w, b), (w.astype("float32"), b.astype("float32"))):
        assert all(map(same, jax.jit(pulled)(x, g, *sides), want(x, g, *sides)))
        # One of a batch has the gradients of its own rows alone.
        each = [want(a, c, *sides) for a, c in zip(x, g)]
        for got, parts in zip(jax.jit(jax.vmap(pulled, in_axes=(0, 0, *[None] * len(sides))))(x, g, *sides), zip(*each)):
            assert same(got, np.stack(parts))
    each = [want(a, c, w * k, b) for k, (a, c) in enumerate(zip(x, g))]  # weights of their own
    for got, parts in zip(jax.vmap(pulled, in_axes=(0, 0, 0, None))(x, g, jnp.stack([w * k for k in range(3)]), b), zip(*each)):
        assert same(got, np.stack(parts))
    bias_alone = jax.vjp(lambda b: of(x, bias=b), b)[1](g)[0]
    assert same(bias_alone, ls.sum(np.asarray(g), (0, 1), dtype=dtype))
    none = jax.vjp(lambda x, w: of(x, weight=w), x[:0], w)[1](g[:0])
    assert none[0].shape == (0, 7, 40) and not np.asarray(none[1]).any()


def test_16_bit_floats_have_gradients_of_16_bits():
    x = jnp.asarray(RNG.standard_normal(10)).astype("bfloat16")
    assert jax.grad(lambda a: lj.norm(a))(x).dtype == "bfloat16" and jax.grad(lambda a: lj.rms_norm(a).sum())(x).dtype == "bfloat16"


def test_what_is_refused():
    x = jnp.asarray(RNG.standard_normal((4, 5)).astype("f4"))
    for f in (lj.argmax, lambda a: lj.sum(a, dtype="float64"), lambda a: lj.sum(a.astype("int32"))):
        with pytest.raises(ls.UnsupportedDtype, match="switch jax_enable_x64 on"):
            jax.jit(f)(x)
    for axis in (2, -3, (0, 0), (0, -2)):
        with pytest.raises(ls.InvalidArgument, match="axis is"):
            lj.sum(x, axis)
    with pytest.raises(ls.InvalidArgument, match="weight has 1 axes and 4"):
        lj.rms_norm(x, weight=jnp.ones(4))
    with pytest.raises(ls.InvalidArgument, match="weights has 4"):
        lj.stencil(x, [1, 2, 3, 4])
    with pytest.raises(ls.UnsupportedDtype, match="complex"):
        lj.sum(x.astype("complex64"))
    with pytest.raises(ls.InvalidArgument, match="y has"):
        lj.dot(x, x[:, :3])
    with pytest.raises(TypeError, match="forward-mode|jvp"):
        jax.jvp(lj.sum, (x,), (x,))
    for f in (lj.max, lj.min):
        with pytest.raises(ls.Empty, match="no elements"):
            f(jnp.zeros((3, 0)), 1)
        assert f(jnp.zeros((3, 0)), 0).shape == (0,)
    assert lj.sum(jnp.zeros((3, 0)), 1).tolist() == [0, 0, 0]


def test_what_fails_while_a_program_runs(x64):
    if jax.default_backend() == "gpu":  # found by the device alone
        jax.jit(lj.sum)(jnp.full(4, 2**62)).block_until_ready()
        with pytest.raises(ls.Overflow):
            ls.synchronize()
        return
    with pytest.raises(Exception, match="the exact sum of sequence 0 does not fit"):
        jax.jit(lj.sum)(jnp.full(4, 2**62)).block_until_ready()
    assert jax.jit(lj.sum)(jnp.arange(4)) == 6


def test_a_program_of_another_release():
    call = jax.ffi.ffi_call("lockstep_execute", jax.ShapeDtypeStruct((), "float32"))
    x = jnp.ones(3)
    words, description, coefficients, _, _ = ls._core.describe("sum", ls.spec((3,)))
    assert call(x, call=words, description=description, coefficients=coefficients) == 3
    far = words[:16] + "ffffff7f" + words[24:]  # where the description would hold a second array
    for wrong in ({"call": words[:-2]}, {"call": far}, {"description": "0" * 4000}, {"coefficients": "0"}):
        with pytest.raises(Exception, match="another release of lockstep"):
            call(x, **{"call": words, "description": description, "coefficients": coefficients, **wrong}).block_until_ready()
    for arrays in ((x, x), (x.astype("bfloat16"),)):
        with pytest.raises(Exception, match="another release of lockstep"):
            call(*arrays, call=words, description=description, coefficients=coefficients).block_until_ready()
    with pytest.raises(Exception, match="size"):  # a struct of a size that never was
        call(x, call=words, description="08" + description[2:], coefficients=coefficients).block_until_ready()


def test_within_other_transforms():
    x = RNG.standard_normal((8, 100)).astype("f4")
    total, extremes = jax.jit(lambda a: jax.lax.scan(lambda c, row: (c + lj.sum(row), lj.max(row)), jnp.float32(0), a))(x)
    assert same(extremes, ls.max(x, 1)) and np.allclose(total, ls.sum(x), rtol=1e-5)
    assert same(jax.jit(jax.grad(jax.checkpoint(lj.norm)))(x), jax.jit(jax.grad(lj.norm))(x))


def test_arrays_on_several_devices():
    code = textwrap.dedent("""
        import jax, numpy as np, lockstep as ls, lockstep.jax as lj
        from jax.sharding import Mesh, NamedSharding, PartitionSpec
        x = np.random.default_rng(0).standard_normal((8, 1000)).astype("f4")
        mesh = Mesh(np.array(jax.devices()), ("a",))
        divided = jax.device_put(x, NamedSharding(mesh, PartitionSpec("a")))
        for f in (lambda a, m: m.norm(a, 1), lambda a, m: m.sum(a), lambda a, m: m.transpose(a), lambda a, m: m.rms_norm(a)):
            assert np.asarray(jax.jit(lambda a: f(a, lj))(divided)).tobytes() == f(x, ls).tobytes()
        print(len(jax.devices()))
        """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"})
    assert done.stdout == "2\n", done.stderr
