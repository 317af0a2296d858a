"""producers.py FIRST - producers of arrays that omit, zero or lie in one field each: a line "begin N NAME" before a case, "ok" or "wrong: ..."
after it. Its parent sees by the last line which case has ended the process, and begins anew behind it."""
import array
import ctypes
import multiprocessing
import sys

import numpy as np

import lockstep as ls

api = ctypes.pythonapi
api.PyType_FromSpec.restype = ctypes.py_object
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
WORD = ctypes.c_ssize_t
WORDS = ctypes.POINTER(WORD)
KEPT = []  # what C holds by address


def words(values):
    if values is None:
        return None
    made = (WORD * (len(values) + 1))(*values)
    KEPT.append(made)
    return ctypes.cast(made, WORDS)


# ---- the buffer protocol -----------------------------------------------------
class View(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", WORD), ("itemsize", WORD), ("readonly", ctypes.c_int),
                ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", WORDS), ("strides", WORDS), ("suboffsets", WORDS),
                ("internal", ctypes.c_void_p)]


FIELDS = {}


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(View), ctypes.c_int)
def get_buffer(self, view, flags):
    v, fields = view.contents, FIELDS[id(self)]
    for key, value in fields.items():
        setattr(v, key, value)
    v.internal = None
    api.Py_IncRef(ctypes.py_object(self))
    v.obj = id(self)
    return 0


class Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class Spec(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int), ("flags", ctypes.c_uint),
                ("slots", ctypes.POINTER(Slot))]


SLOTS = (Slot * 2)(Slot(1, ctypes.cast(get_buffer, ctypes.c_void_p)), Slot(0, None))
SPEC = Spec(b"liars.Exporter", object.__basicsize__, 0, 1 << 18 | 1 << 10, SLOTS)
Exporter = api.PyType_FromSpec(ctypes.byref(SPEC))

DATA = np.arange(1.0, 7.0)  # its sum is 21
BYTES = np.arange(1, 7, dtype="u1")


def exporter(like=DATA, **lies):
    made = Exporter()
    KEPT.extend((made, like))
    fields = {"buf": like.ctypes.data, "len": like.nbytes, "itemsize": like.itemsize, "readonly": 0, "ndim": 1,
              "format": like.dtype.char.encode(), "shape": (like.size,), "strides": (like.itemsize,), "suboffsets": None, **lies}
    for key in ("shape", "strides", "suboffsets"):
        fields[key] = words(fields[key])
    FIELDS[id(made)] = fields
    return made


# ---- DLPack ------------------------------------------------------------------
class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", WORDS), ("strides", WORDS),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


class Dlpack:
    def __init__(self, like=DATA, device=(1, 0), versioned=True, capsule=None, flags=0, major=1, **lies):
        self.device, self.capsule = device, capsule
        self.name = b"dltensor_versioned" if versioned else b"dltensor"
        fields = {"data": like.ctypes.data, "device_type": 1, "device_id": 0, "rank": 1, "code": 2, "bits": 64, "lanes": 1, "shape": (6,),
                  "strides": (1,), "byte_offset": 0, **lies}
        fields["shape"], fields["strides"] = words(fields["shape"]), words(fields["strides"])
        self.made = Versioned(major=major, minor=0, flags=flags) if versioned else Managed()
        for key, value in fields.items():
            setattr(self.made.tensor, key, value)
        KEPT.extend((self, like))

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        if self.capsule is not None:
            return self.capsule[0]
        return api.PyCapsule_New(ctypes.addressof(self.made), self.name, None)


def capsule_of_another_name():
    return api.PyCapsule_New(DATA.ctypes.data, b"something", None)


# ---- the CUDA array interface ------------------------------------------------
class Cuda:
    def __init__(self, whole=..., **lies):
        fields = {"shape": (6,), "typestr": "<f8", "data": (DATA.ctypes.data, False), "strides": (8,), "version": 3, **lies}
        self.whole = whole
        self.fields = {key: value for key, value in fields.items() if value is not ...}

    @property
    def __cuda_array_interface__(self):
        return self.fields if self.whole is ... else self.whole


class Host:
    """The array interface of host memory."""

    def __init__(self, whole=..., **lies):
        fields = {"shape": (6,), "typestr": "<f8", "data": (DATA.ctypes.data, False), "strides": (8,), "version": 3, **lies}
        self.whole = whole
        self.fields = {key: value for key, value in fields.items() if value is not ...}

    @property
    def __array_interface__(self):
        return self.fields if self.whole is ... else self.whole


class Array:
    """What NumPy asks for an array by its method."""

    def __init__(self, gives):
        self.gives = gives

    def __array__(self, dtype=None, copy=None):
        return self.gives


# ---- roles -------------------------------------------------------------------
def number(x):
    return float(np.asarray(x))


def as_source(p):
    """By every way that an operation reads x; the sum."""
    total = number(ls.sum(p))
    assert number(ls.max(p)) == np.max(np.asarray(ls.permute(p, (0,)))) and np.asarray(ls.cumsum(p)).size == np.asarray(ls.permute(p, (0,))).size
    assert number(ls.group.sum([DATA, p])[1]) == total and number(ls.plan.sum(p)(p)) == total and number(ls.norm(p)) > 0
    return total


def as_weight(p):
    return number(ls.sum(ls.layer_norm(np.array([[1.0, -1.0, 1.0, -1.0, 1.0, -1.0]]), eps=0, weight=p)))


def as_second(p):
    return number(ls.dot(np.ones(6), p))


def as_offsets(p):
    return number(ls.sum(ls.segment_sum(np.arange(100.0), p)))


def as_out(p):
    try:
        assert ls.permute(np.full(6, 7.0), (0,), out=p) is p
        return sum(np.asarray(ls.permute(p, (0,))).tolist())
    finally:
        DATA[:] = np.arange(1.0, 7.0)


ROLES = {"x": (as_source, 21), "weight": (as_weight, -3), "y": (as_second, 21), "out": (as_out, 42)}
HUGE, LEAST = 2**62, -2**63
REFUSED = "refused"
CASES = []


def case(name, make, role, want):
    CASES.append((name, make, role, want))


def in_every_role(name, make, want=None):
    """A producer that is right in all roles, or refused in all."""
    for role, (call, value) in ROLES.items():
        case(f"{name} as {role}", make, call, value if want is None else want)


def fill():
    c_doubles = (ctypes.c_double * 6)(*range(1, 7))
    raw = multiprocessing.RawArray("d", range(1, 7))
    for name, made in (("ctypes", c_doubles), ("RawArray", raw), ("array", array.array("d", range(1, 7))), ("memoryview", memoryview(c_doubles))):
        for role in ("x", "weight", "y"):
            case(f"{name} as {role}", lambda made=made: made, *ROLES[role])
    case("ctypes of three axes", lambda: ((ctypes.c_float * 3) * 2 * 1)(), lambda p: float(ls.sum(ls.permute(p, (2, 0, 1)))), 0)
    case("ctypes of no elements", lambda: (ctypes.c_double * 0)(), lambda p: number(ls.sum(p)), 0)
    case("ctypes as out", lambda: (ctypes.c_double * 6)(), lambda p: sum(ls.permute(DATA, (0,), out=p)), 21)
    case("RawArray as out", lambda: multiprocessing.RawArray("d", 6), lambda p: sum(ls.permute(DATA, (0,), out=p)), 21)
    offsets = (ctypes.c_int64 * 3)(0, 10, 100)
    case("ctypes as offsets", lambda: offsets, as_offsets, sum(range(100)))
    case("ctypes in groups", lambda: [c_doubles, raw], lambda p: sum(map(number, ls.group.sum(p))), 42)
    case("ctypes in groups as out", lambda: [(ctypes.c_double * 6)(), multiprocessing.RawArray("d", 6)],
         lambda p: sum(map(sum, ls.group.cumsum([DATA, DATA], out=p))), 2 * 56)

    # bytes are numbers of a byte, and never a text
    for what in (bytes, bytearray, memoryview, lambda b: array.array("B", b)):
        given = what(b"\1\2\3\5")
        for call, want in ((ls.max, 5), (ls.min, 1), (lambda b: ls.permute(b, (0,)), [1, 2, 3, 5]), (ls.cumsum, [1, 3, 6, 11]),
                           (lambda b: ls.segment_max(b, np.array([0, 2, 4])), [2, 5]), (lambda b: ls.max(b, keepdims=True), [5]),
                           (lambda b: ls.group.max([b, b], stack=True), [5, 5]), (lambda b: ls.group.permute([b], (0,))[0], [1, 2, 3, 5])):
            case(f"{type(given).__name__} {want}", lambda given=given: given, lambda p, call=call: check_numbers(call(p)), want)

    in_every_role("nothing amiss", exporter)
    in_every_role("no strides", lambda: exporter(strides=None))
    in_every_role("suboffsets that count for nothing", lambda: exporter(suboffsets=(-1,)))
    in_every_role("no shape of one axis", lambda: exporter(shape=None, strides=None))
    case("no shape of no axis", lambda: exporter(ndim=0, shape=None, strides=None, len=8), lambda p: number(ls.sum(p)), 1)
    case("no format", lambda: exporter(BYTES, format=None), lambda p: number(ls.sum(p)), 21)
    case("a stride of 0", lambda: exporter(strides=(0,)), lambda p: number(ls.sum(p)), 6)
    case("backwards", lambda: exporter(buf=DATA.ctypes.data + 40, strides=(-8,)), lambda p: np.asarray(ls.permute(p, (0,))).tolist()[0], 6)
    case("odd strides", lambda: exporter(shape=(2,), len=16, strides=(12,)), lambda p: np.asarray(ls.permute(p, (0,))).size, 2)
    case("one element and any stride", lambda: exporter(shape=(1,), strides=(LEAST,)), as_source, 1)
    case("no elements and no memory", lambda: exporter(buf=None, shape=(0,), len=0), lambda p: number(ls.sum(p)), 0)
    case("no elements of a huge shape", lambda: exporter(ndim=3, shape=(HUGE, HUGE, 0), strides=(HUGE, HUGE, 8), len=0), lambda p: number(ls.sum(p)), REFUSED)
    lies = [
        {"buf": None}, {"buf": 2**64 - 8}, {"buf": 2**63}, {"len": 0}, {"len": 8}, {"len": -1}, {"itemsize": 0}, {"itemsize": -8}, {"itemsize": 4},
        {"itemsize": 16}, {"itemsize": HUGE}, {"ndim": -1}, {"ndim": 65}, {"ndim": 2**31 - 1}, {"ndim": 2, "shape": None},
        {"ndim": 2, "shape": None, "strides": None}, {"shape": (-1,)}, {"shape": (LEAST,)}, {"shape": (HUGE,)}, {"shape": (7,)}, {"ndim": 2, "shape": (HUGE, HUGE),
        "strides": (8, 8)}, {"ndim": 2, "shape": (2**32, 2**32), "strides": None}, {"strides": (HUGE,)}, {"strides": (-HUGE,)}, {"strides": (LEAST,)},
        {"strides": (2**63 - 1,)}, {"strides": (LEAST // 5 + 4,)}, {"strides": (-2**48 - 3,)}, {"suboffsets": (0,)}, {"suboffsets": (HUGE,)}, {"format": b"O"}, {"format": b"T{O:a:}"},
        {"format": b"f"}, {"format": b"B"}, {"format": b">f"}, {"format": b"?"}, {"format": b"Zd"}, {"format": None},
    ]
    for lie in lies:
        for role, (call, _) in ROLES.items():
            case(f"{lie} as {role}", lambda lie=lie: exporter(**lie), call, REFUSED)
        case(f"{lie} as offsets", lambda lie=lie: exporter(np.arange(6), **{"format": b"l", **lie}), as_offsets, REFUSED)
        case(f"{lie} in a group", lambda lie=lie: [DATA, exporter(**lie)], lambda p: number(ls.group.sum(p)[1]), REFUSED)
        case(f"{lie} in a group's out", lambda lie=lie: [exporter(**lie)], lambda p: ls.group.permute([DATA], (0,), out=p), REFUSED)
    for odd in (b"", b"z", b"\xff\xfe", b"T{d:a:}", b"100000d", b"(2,2)d", b"8s", b"w", b"P", b">d", b"!d"):
        case(f"format {odd} summed", lambda odd=odd: exporter(format=odd), ls.cumsum, REFUSED)
        case(f"format {odd} moved", lambda odd=odd: exporter(format=odd), lambda p: ls.permute(p, (0,)), "no crash")
    case("read-only as out", lambda: exporter(readonly=1), as_out, REFUSED)

    for empty in (np.zeros(3, "V0"), np.zeros(3, []), np.zeros((2, 3), "S0"), np.zeros(3, "U0"), np.zeros(0, "V0")):
        if empty.dtype.itemsize:
            continue
        for call in (ls.sum, ls.max, lambda p: ls.permute(p, tuple(range(np.ndim(p)))), ls.cumsum, ls.rms_norm, lambda p: ls.shuffle(p, "up", 1),
                     lambda p: ls.convert(p, "float32"), lambda p: ls.dot(DATA, p), lambda p: ls.permute(DATA, (0,), out=p),
                     lambda p: ls.segment_sum(DATA, p), lambda p: ls.segment_max(p, np.array([0, 1])), lambda p: ls.group.max([p]),
                     lambda p: ls.layer_norm(DATA, weight=p), lambda p: ls.plan.max(p)):
            case(f"elements of no bytes, {empty.dtype!r}", lambda empty=empty: empty, call, REFUSED)

    for versioned in (True, False):
        def dlpack(versioned=versioned, **lies):
            return Dlpack(versioned=versioned, **lies)
        kind = "versioned" if versioned else "old"
        for role in ("x", "weight", "y"):
            for text, lie in (("nothing amiss", {}), ("no strides", {"strides": None}), ("a byte offset", {"data": DATA.ctypes.data - 8, "byte_offset": 8})):
                case(f"{kind} DLPack, {text} as {role}", lambda lie=lie, dlpack=dlpack: dlpack(**lie), *ROLES[role])
        case(f"{kind} DLPack, no elements", lambda dlpack=dlpack: dlpack(data=None, shape=(0,)), lambda p: number(ls.sum(p)), 0)
        case(f"{kind} DLPack, one element and any stride", lambda dlpack=dlpack: dlpack(shape=(1,), strides=(LEAST,)), lambda p: number(ls.sum(p)), 1)
        lies = [
            {"data": None}, {"data": None, "byte_offset": 2**40}, {"data": 2**64 - 8}, {"byte_offset": 2**64 - 1}, {"byte_offset": 2**63 - 1}, {"device_type": 0}, {"device_type": -1}, {"device_type": 4},
            {"device_type": 99}, {"device_type": 2}, {"device_type": 13}, {"device_type": 2, "device": (2, 0)}, {"device": (2, 0)}, {"device": None}, {"device": 1},
            {"device": ()}, {"device": (1,)}, {"device": (1, 0, 0)}, {"device": ("a", "b")}, {"device": (2**40, 0)}, {"device": (2, 2**40)}, {"device": (2, -1)}, {"rank": -1},
            {"rank": 65}, {"rank": 2**31 - 1}, {"code": 3}, {"code": 5}, {"code": 7}, {"code": 255}, {"bits": 0}, {"bits": 1}, {"bits": 4}, {"bits": 63},
            {"bits": 8}, {"bits": 248}, {"lanes": 0}, {"lanes": 2}, {"lanes": 65535}, {"shape": None}, {"shape": (-1,)}, {"shape": (HUGE,)},
            {"rank": 2, "shape": (2**32, 2**32), "strides": None}, {"strides": (HUGE,)}, {"strides": (LEAST,)}, {"strides": (2**63 - 1,)}, {"strides": (2**58,)},
            {"capsule": (None,)}, {"capsule": (5,)}, {"capsule": (capsule_of_another_name(),)},
            *([{"major": 0}, {"major": 2}, {"major": 2**32 - 1}] if versioned else []),
        ]
        for lie in lies:
            for role, (call, _) in ROLES.items():
                case(f"{kind} DLPack, {lie} as {role}", lambda lie=lie, dlpack=dlpack: dlpack(**lie), call, REFUSED)
            if lie != {"bits": 8}:  # of which offsets may be
                case(f"{kind} DLPack, {lie} as offsets", lambda lie=lie, dlpack=dlpack: dlpack(like=np.arange(6), **{"code": 0, **lie}), as_offsets, REFUSED)
            case(f"{kind} DLPack, {lie} in a group", lambda lie=lie, dlpack=dlpack: [DATA, dlpack(**lie)], lambda p: ls.group.sum(p), REFUSED)
        case(f"{kind} DLPack, elements of no bytes, moved", lambda dlpack=dlpack: dlpack(bits=0), lambda p: ls.permute(p, (0,)), REFUSED)
    case("DLPack that is read-only, as out", lambda: Dlpack(flags=1), as_out, REFUSED)

    case("a CUDA array interface", Cuda, ls.sum, "refused: NoBackend|cpu")  # there is no GPU that it could lie on
    for whole in (None, 5, {}, [], "text"):
        case(f"a CUDA array interface that is {whole!r}", lambda whole=whole: Cuda(whole), ls.sum, "refused: interface")
    for key, values in {
        "shape": (..., None, 5, "ab", ("a",), (-1,), (2**63,), (2**70,), (HUGE,), (1,) * 65, (6.0,)),
        "typestr": (..., None, 5, "", "f", "<f", "f8", "<f0", "<f-8", "<f99999999999999999999", "<O8", "<f8 "),
        "data": (..., None, 5, (), (DATA.ctypes.data,), ("a", False), (None, False), (0, False), (-8, False), (2**64 - 8, False), (2**70, False), (1.5, False)),
        "strides": (5, "a", (), (8, 8), ("a",), (2**63,), (HUGE,), (LEAST,)),
        "stream": (-1, "a", 2**70, 1.5),
        "mask": (DATA,),
    }.items():
        for value in values:
            case(f"a CUDA array interface with {key} {value!r}", lambda key=key, value=value: Cuda(**{key: value}), ls.sum, "refused: x ")
    in_every_role("an array interface", Host)
    in_every_role("an array interface without strides", lambda: Host(strides=None))
    for data in (bytes(DATA), bytearray(bytes(DATA)), memoryview(bytes(DATA))):
        for role in ("x", "weight", "y"):
            case(f"an array interface of {type(data).__name__} as {role}", lambda data=data: Host(data=data), *ROLES[role])
        case(f"an array interface beyond {type(data).__name__}", lambda data=data: Host(data=data, shape=(7,)), as_source, REFUSED)
        case(f"an array interface before {type(data).__name__}", lambda data=data: Host(data=data, strides=(-8,)), as_source, REFUSED)
        for offset in (8, 10**20, -8, "a"):
            case(f"an array interface of {type(data).__name__} from {offset}", lambda data=data, offset=offset: Host(data=data, offset=offset), as_source, REFUSED)
    case("an array interface of bytes from an offset", lambda: Host(data=bytes(DATA), offset=8, shape=(5,)), as_source, 20)
    case("an array interface without elements", lambda: Host(data=(0, False), shape=(0,)), lambda p: number(ls.sum(p)), 0)
    case("an array interface of bytes as out", lambda: Host(data=bytes(48)), as_out, REFUSED)
    case("an array interface that is read-only, as out", lambda: Host(data=(DATA.ctypes.data, True)), as_out, REFUSED)
    for whole in (5, {}, [], "text"):
        case(f"an array interface that is {whole!r}", lambda whole=whole: Host(whole), ls.sum, "refused: interface")
    for key, values in {
        "shape": (..., None, 5, "ab", ("a",), (-1,), (2**63,), (2**70,), (HUGE,), (1,) * 65, (6.0,), (HUGE, HUGE)),
        "typestr": (..., None, 5, "", "f", "<f", "f8", "<f0", "<f-8", "<f99999999999999999999", "<O8", "<f8 ", "<q8", "<V0", ">f8"),
        "data": (..., None, 5, (), (DATA.ctypes.data,), ("a", False), (None, False), (0, False), (-8, False), (2**64 - 8, False), (2**63 - 8, False), (2**70, False), (1.5, False)),
        "strides": (5, "a", (), (8, 8), ("a",), (2**63,), (HUGE,), (LEAST,), (-HUGE,)),
        "mask": (DATA,),
    }.items():
        for value in values:
            case(f"an array interface with {key} {value!r}", lambda key=key, value=value: Host(**{key: value}), ls.cumsum, "refused: x ")
            if (key, value) != ("typestr", ">f8"):
                case(f"an array interface with {key} {value!r} as weight", lambda key=key, value=value: Host(**{key: value}), as_weight, "refused: weight ")
            case(f"an array interface with {key} {value!r} as out", lambda key=key, value=value: Host(**{key: value}), as_out, "refused: out ")
    for role in ("x", "weight", "y"):
        case(f"__array__ as {role}", lambda: Array(DATA), *ROLES[role])
    case("__array__ as out", lambda: Array(DATA), as_out, "refused: out is a .*Array")
    for gives in (5, None, "text", [1, 2], object(), np.array([None]), np.zeros(2, "V0"), np.ma.masked_array([1.0, 2.0], [True, False])):
        case(f"__array__ that gives {gives!r}", lambda gives=gives: Array(gives), ls.sum, "refused: x |masked")

    case("a CUDA array interface in the other byte order", lambda: Cuda(typestr=">f8"), ls.sum, "refused: byte-swapped|NoBackend|cpu")


def check_numbers(got):
    """The numbers, of a dtype of whole numbers."""
    got = np.asarray(got)
    assert got.dtype.kind in "iu", got.dtype
    return got.tolist()


def outcome(make, call, want):
    import re
    expected = (ls.Error, TypeError, BufferError, ValueError)
    given = make()
    try:
        got = call(given)
    except expected as e:
        if want == "no crash":
            return "ok"
        if not isinstance(want, str):
            return f"wrong: {type(e).__name__}: {e}"
        pattern = want.partition(": ")[2]
        text = f"{type(e).__name__}: {e}"
        return "ok" if re.search(pattern, text) and len(str(e)) > 15 and "bad argument" not in text else f"wrong: {text}"
    if want == "no crash":
        return "ok"
    return "ok" if not isinstance(want, str) and got == want else f"wrong: {got!r} instead of {want}"


if __name__ == "__main__":
    fill()
    print(len(CASES), flush=True)
    for i in range(int(sys.argv[1]), len(CASES)):
        name, make, call, want = CASES[i]
        print(f"begin {i} {name!r}", flush=True)
        try:
            print(outcome(make, call, want).replace("\n", " "), flush=True)
        except BaseException as e:  # noqa: B036
            print(f"wrong: {type(e).__name__} {e}".replace("\n", " "), flush=True)
