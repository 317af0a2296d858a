"""Loads the extension; in a wheel with the library beside it, and on a system without GCC's OpenMP runtime that of the wheel first."""
import os

_folder = os.path.dirname(__file__)


def _load() -> None:
    # A wheel's library comes before another of the same name. The linker was told so, but meson-python writes the path anew, as one
    # that LD_LIBRARY_PATH comes before.
    own = os.path.join(_folder, "liblockstep.so.1")
    if os.environ.get("LD_LIBRARY_PATH") and os.path.exists(own):
        import ctypes

        ctypes.CDLL(own)
    from . import _core  # noqa: F401


try:
    _load()
except (ImportError, OSError) as missing:
    # A system's or another package's copy is taken where there is one: two in a process would share no threads.
    _vendored = os.path.join(_folder, "_vendor", "libgomp.so.1")
    if "libgomp" not in str(missing):
        raise
    if not os.path.exists(_vendored):
        raise ImportError("lockstep needs libgomp.so.1; install the package libgomp1 (Debian, Ubuntu) or libgomp (Fedora)") from missing
    import ctypes

    ctypes.CDLL(_vendored, ctypes.RTLD_GLOBAL)
    _load()
