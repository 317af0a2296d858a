"""Loads the extension; in a wheel on a system without GCC's OpenMP runtime, that of the wheel first."""
import os

try:
    from . import _core  # noqa: F401
except ImportError as missing:
    # A system's or another package's copy is taken where there is one: two in a process would share no threads.
    _vendored = os.path.join(os.path.dirname(__file__), "_vendor", "libgomp.so.1")
    if "libgomp" not in str(missing):
        raise
    if not os.path.exists(_vendored):
        raise ImportError("lockstep needs libgomp.so.1; install the package libgomp1 (Debian, Ubuntu) or libgomp (Fedora)") from missing
    import ctypes

    ctypes.CDLL(_vendored, ctypes.RTLD_GLOBAL)
    from . import _core  # noqa: F401
