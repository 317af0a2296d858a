"""Every example of the docstrings, and that there are docstrings."""
import doctest
import importlib
import importlib.util
import inspect
import pathlib
import pkgutil

import numpy as np
import pytest

import lockstep as ls

if np.lib.NumpyVersion(np.__version__) < "2.0.0":
    pytest.skip("a NumPy that shows its scalars otherwise", allow_module_level=True)
NEEDS_TORCH = () if importlib.util.find_spec("torch") else ("_deterministic", "_deterministic_layers")
MODULES = sorted(f"lockstep.{m.name}" for m in pkgutil.iter_modules(ls.__path__) if m.name not in ("__main__", "torch", "jax", "_torch_rows", "_torch_softmax", "_torch_clip", "_torch_sums", "_torch_functions", "_torch_stencils", "distributed", "_distributed_work", "_jax_functions", "_jax_rows", "_verify", "_core", *NEEDS_TORCH))


@pytest.mark.parametrize("name", ["lockstep", *MODULES])
def test_examples_of_docstrings(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={"ls": ls, "np": np})
    assert result.failed == 0


def test_examples_of_the_operations():
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    ran = 0
    for name, value in vars(ls).items():
        if inspect.isbuiltin(value):
            for test in finder.find(value, name, globs={"ls": ls, "np": np}, module=False):
                ran += runner.run(test).attempted
    assert runner.failures == 0 and ran >= 18


def test_everything_public_is_documented():
    for name in ls.__all__:
        value = getattr(ls, name)
        if inspect.isroutine(value) or inspect.isclass(value):
            assert inspect.getdoc(value), name
            if inspect.isbuiltin(value):
                assert inspect.signature(value).parameters, name
                for section in ("Parameters\n---", "Returns\n---", "Examples\n---"):
                    assert section in value.__doc__, (name, section)
