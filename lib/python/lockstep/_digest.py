"""Digests of arrays and of named arrays."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _core


def digest(x: Any, *, context: Any = None, backend: str | None = None) -> str:
    """128 bits of an array, or of named arrays, that tell apart what has other bits.

    Equal elements in equal places give equal digests in every layout, library, thread count and process; anything else another
    digest, but for a chance of about 2**-128. It is not a cryptographic hash: two arrays with one digest can be made on purpose.

    Parameters
    ----------
    x : array, or a mapping or sequence of arrays
        Of bool, integers or floats of 16 to 64 bits, in host memory or on CUDA devices, where they are read on their
        libraries' streams, and only the digests come to the host. Of named arrays (a checkpoint, say) the digest is that of a
        text, as uint8, with a line ``name dtype shape digest`` for each, sorted by name; shape is as 3x4, and empty for a
        number. A list or tuple of arrays has the names 0, 1, ... in its order.
    context : Context, optional
    backend : str, optional

    Returns
    -------
    str
        32 hexadecimal digits.

    Examples
    --------
    >>> ls.digest(np.arange(6.0).reshape(2, 3)) == ls.digest(np.arange(6.0)) == ls.digest(np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    True
    >>> ls.digest({"a": np.zeros(3), "b": np.ones(3)}) == ls.digest({"a": np.ones(3), "b": np.zeros(3)})
    False
    """
    if isinstance(x, Mapping):
        named = sorted(((str(name), array) for name, array in x.items()), key=lambda one: one[0]) if len({str(name) for name in x}) == len(x) else None
        if named is None:
            raise ValueError("two names of x are the same text; give each array a name of its own")
    elif isinstance(x, (list, tuple)) and x and all(hasattr(one, "shape") or hasattr(one, "__dlpack__") for one in x):
        named = [(str(k), array) for k, array in enumerate(x)]
    else:
        hexadecimal: str = _core.digest(x, context=context, backend=backend)[0]
        return hexadecimal
    lines = []
    for name, array in named:
        digits, dtype, shape = _core.digest(array, context=context, backend=backend)
        lines.append(f"{name} {dtype} {'x'.join(map(str, shape))} {digits}\n")
    text: str = _core.digest(memoryview("".join(lines).encode()), context=context, backend=backend)[0]
    return text
