"""run.py FILE [ARGUMENT...] - its tests by pytest. Exit code 77 where NumPy, pytest or hypothesis is missing, or
where all are skipped."""
import sys
from importlib.util import find_spec

if __name__ == "__main__":
    missing = [name for name in ("numpy", "pytest", "hypothesis") if find_spec(name) is None]
    if missing:
        print("SKIP: no " + ", ".join(missing))
        sys.exit(77)
    import pytest

    class Passed:
        count = 0

        def pytest_runtest_logreport(self, report):
            self.count += report.passed and report.when == "call"

    passed = Passed()
    # Nothing of what is tested may warn.
    code = pytest.main(["-q", "-p", "no:cacheprovider", "-W", "error", *sys.argv[1:]], plugins=[passed])
    sys.exit(77 if not passed.count and code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else code)
