"""run.py FILE [ARGUMENT...] - its tests by pytest. Exit code 77 where NumPy, pytest or hypothesis is missing."""
import sys
from importlib.util import find_spec

if __name__ == "__main__":
    missing = [name for name in ("numpy", "pytest", "hypothesis") if find_spec(name) is None]
    if missing:
        print("SKIP: no " + ", ".join(missing))
        sys.exit(77)
    import pytest

    # Nothing of what is tested may warn.
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-W", "error", *sys.argv[1:]]))
