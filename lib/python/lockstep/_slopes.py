"""The derivatives of map's functions, in PyTorch's words or JAX's."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def slopes(xp: Any, call: Callable[[str, Any], Any]) -> dict[str, Callable[[Any, Any], Any]]:
    """Each by x and the function's value y, both in double, of operations of one rounding and `call`, lockstep's functions: the same bits on CPU and GPU."""
    def share(x: Any, y: Any) -> Any:
        """The factor of x in a unit's value y = x s(x), which is 1/2 at 0 and 1 at infinity."""
        return xp.where(x == 0, 0.5, xp.where(xp.isposinf(x), 1.0, y / xp.where(x == 0, 1.0, x)))

    def gelu(x: Any, y: Any) -> Any:
        return share(x, y) + xp.where(xp.isinf(x), 0.0, x * call("exp", -0.5 * x * x)) * (1 / math.sqrt(2 * math.pi))

    def gelu_tanh(x: Any, y: Any) -> Any:
        s, steep = share(x, y), 2 * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * (x * x))
        return s + xp.where(xp.isinf(x), 0.0, x * (s * (1 - s)) * steep)

    def silu(x: Any, y: Any) -> Any:
        s = share(x, y)
        return s + xp.where(xp.isinf(x), 0.0, y) * (1 - s)

    return {
        "exp": lambda x, y: y,
        "expm1": lambda x, y: y + 1,
        "log": lambda x, y: 1 / x,
        "log1p": lambda x, y: 1 / (1 + x),
        "sqrt": lambda x, y: 0.5 / y,
        "rsqrt": lambda x, y: -0.5 * (y * y * y),
        "reciprocal": lambda x, y: -(y * y),
        "tanh": lambda x, y: 1 - y * y,
        "sigmoid": lambda x, y: y * (1 - y),
        "silu": silu,
        "gelu": gelu,
        "gelu_tanh": gelu_tanh,
        "erf": lambda x, y: (2 / math.sqrt(math.pi)) * call("exp", -(x * x)),
        "softplus": lambda x, y: call("sigmoid", x),
    }
