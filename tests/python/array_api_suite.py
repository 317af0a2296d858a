"""The tests of data-apis/array-api-tests on what lockstep.array_api has: array_api_suite.py CHECKOUT [pytest argument ...]

CHECKOUT is one of that repository with its submodule array-api. As a plug-in of pytest this file leaves only the dtypes in
LOCKSTEP_SUITE_DTYPES to the suite: it has no switch for a namespace without complex numbers.
"""
import os
import pathlib
import subprocess
import sys

_FLOATS, _SIGNED = "float32 float64", "int8 int16 int32 int64"
_REAL = f"{_FLOATS} {_SIGNED} uint8 uint16 uint32 uint64"
# Of these dtypes, these tests: functions of each element take float32, running sums all but uint64, vecdot of integers raises Overflow
# where the suite expects them to wrap around, and vector_norm is asked for every ord.
GROUPS = (
    (_REAL.replace(" uint64", ""), "test_cumulative_sum"),
    (_REAL, "test_sum test_prod test_mean test_var test_std test_max test_min test_argmax test_argmin"),
    (f"bool {_REAL}", "test_count_nonzero test_any test_all test_astype test_permute_dims test_matrix_transpose test_linalg_matrix_transpose"),
    (_FLOATS, "test_vecdot test_linalg_vecdot"),
    ("float32", "test_exp test_expm1 test_log test_log1p test_sqrt test_tanh test_reciprocal"),
    (f"bool {_REAL}", "test_capabilities test_devices test_default_dtypes test_array_namespace_info_dtypes"),
)
SIGNED = ("sum prod mean var std max min argmax argmin any all count_nonzero cumulative_sum astype permute_dims matrix_transpose vecdot "
          "exp expm1 log log1p sqrt tanh reciprocal vector_norm")
FILES = ("statistical_functions", "searching_functions", "utility_functions", "data_type_functions", "manipulation_functions", "linalg",
         "operators_and_elementwise_functions", "inspection_functions", "signatures")


def pytest_configure():
    from array_api_tests import dtype_helpers as helpers
    names, taken = helpers.dtype_to_name, os.environ["LOCKSTEP_SUITE_DTYPES"].split()
    real = tuple(d for d in helpers.all_dtypes if not names[d].startswith("complex"))
    # The second of a pair is tried as dtype=; one that is narrower raises Overflow where the suite expects wrapping.
    table = helpers.promotion_table
    helpers.promotion_table = helpers.EqualityMapping([(pair, table[pair]) for pair in table if all(d in real for d in pair) and table[pair] == pair[1]])
    helpers.complex_dtypes, helpers.all_float_dtypes = (), helpers.real_float_dtypes
    for name in ("numeric_dtypes", "all_dtypes"):
        setattr(helpers, name, tuple(d for d in getattr(helpers, name) if names[d] in taken))
    from array_api_tests import hypothesis_helpers as given
    from hypothesis.strategies import sampled_from
    for name in ("all_dtypes", "all_int_dtypes", "real_dtypes", "numeric_dtypes", "real_float_dtypes", "all_float_dtypes"):
        kept = [d for d in getattr(helpers, name) if names[d] in taken]
        if kept:
            setattr(given, {"real_float_dtypes": "real_floating_dtypes", "all_float_dtypes": "floating_dtypes"}.get(name, name), sampled_from(kept))


def pytest_collection_modifyitems(config, items):
    wanted = os.environ["LOCKSTEP_SUITE_TESTS"].split()
    kept = [i for i in items if i.name in wanted or getattr(i, "originalname", "") in wanted]
    config.hook.pytest_deselected(items=[i for i in items if i not in kept])
    items[:] = kept


def run(checkout, dtypes, tests, *arguments):
    """A run of the suite; its exit code is pytest's."""
    here = str(pathlib.Path(__file__).parent)
    environment = {**os.environ, "ARRAY_API_TESTS_MODULE": "exec('import numpy, lockstep.array_api; xp = lockstep.array_api.over(numpy)')",
                   "LOCKSTEP_SUITE_DTYPES": dtypes, "LOCKSTEP_SUITE_TESTS": tests,
                   "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}
    files = [f"array_api_tests/test_{name}.py" for name in FILES]
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "array_api_suite", *files, *arguments],
                          cwd=checkout, env=environment, capture_output=True, text=True)


def signatures():
    """The names of the suite's tests of the signatures of lockstep's functions."""
    return " ".join(f"test_func_signature[{name}] test_extension_func_signature[linalg.{name}]" for name in SIGNED.split())


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    failed = False
    for dtypes, tests in (*GROUPS, ("float32 float64", signatures())):
        done = run(sys.argv[1], dtypes, tests, *sys.argv[2:])
        failed = failed or done.returncode != 0
        print(f"{dtypes}: {tests[:100]}\n  {(done.stdout or done.stderr).strip().splitlines()[-1]}")
        if done.returncode:
            print(done.stdout[-6000:], done.stderr[-2000:])
    sys.exit(failed)
