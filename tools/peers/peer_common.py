"""peer_common - what the Python peers share: reading bench's cases (peer.hpp describes the protocol), the check, the answer."""
import json
import os
import re
import sys
import time

words = dict(zip(sys.argv[1:], sys.argv[2:]))  # --backend cpu --threads 2 --seconds 0.3
seconds = float(words.get("--seconds", 0.3))
threads = int(words.get("--threads", 0))
sample = "--sample" in sys.argv  # every way to compute a case, however long its preparation takes
if threads:  # NumPy's dot is OpenBLAS's
    os.environ["OPENBLAS_NUM_THREADS"] = str(threads)
try:
    import numpy as np
except ImportError:  # the error comes later, and only on the peer's own backend
    np = None

types = {"b1": "uint8", "b2": "float16", "b4": "float32", "b8": "float64", "f32": "float32", "f64": "float64", "i32": "int32",
         "f16": "float16", "bf16": "int16"}  # NumPy has no bfloat16: its bits


class Case:
    """A case by its name, where these peers can do it: kind, dtype, shape, axes."""

    def __init__(self, request):
        name, ours_ms, *coefficients = request.split()  # a stencil's: c_0, then c_1 ... c_r an axis
        self.ours_ms = float(ours_ms)
        self.name, self.kind, self.bfloat16 = name, None, "/bf16/" in name
        if m := re.fullmatch(r"transpose/(b[1248])/(\d+)x(\d+)(?:/batch(\d+))?", name):
            self.kind, self.dtype = "moved", np.dtype(types[m[1]])
            self.shape = ((int(m[4]),) if m[4] else ()) + (int(m[2]), int(m[3]))
            self.axes = (0, 2, 1) if m[4] else (1, 0)
        elif m := re.fullmatch(r"permute/(b[1248])/([\dx]+)/perm([\d,]+)", name):
            self.kind, self.dtype, self.shape = "moved", np.dtype(types[m[1]]), tuple(map(int, m[2].split("x")))
            self.axes = tuple(map(int, m[3].split(",")))
        elif m := re.fullmatch(r"convert/(b?f16|f32|f64)/(b?f16|f32|f64)/([\dx]+)/perm([\d,]+)(?:/by_(half|255th|tenth))?", name):
            self.kind, self.dtype, self.shape = "converted", np.dtype(types[m[1]]), tuple(map(int, m[3].split("x")))
            self.bfloat16, self.to, self.result = m[1] == "bf16", m[2], np.dtype(types[m[2]])
            self.axes, self.scale = tuple(map(int, m[4].split(","))), {None: 1, "half": 0.5, "255th": 1 / 255, "tenth": 0.1}[m[5]]
        elif m := re.fullmatch(r"normalize/(l2|rms|layer)/(b?f16|f32|f64)/(\d+)x(\d+)(/weight)?(/bias)?", name):
            self.kind, self.how, self.dtype, self.shape = "normalized", m[1], np.dtype(types[m[2]]), (int(m[3]), int(m[4]))
            self.result, self.eps = self.dtype, 1e-5
            self.beside = [self.shape[1:]] * sum(bool(side) for side in (m[5], m[6]))
            if m[6] and not m[5]:
                self.kind = None
        elif m := re.fullmatch(r"normalize/(rms|layer)_backward/(b?f16|f32|f64)/(\d*[02468])x(\d+)/weight/of_weight(/of_bias)?", name):
            self.kind, self.how, self.dtype, self.shape = "sloped", m[1], np.dtype(types[m[2]]), (int(m[3]), int(m[4]))
            self.result, self.eps, self.beside = self.dtype, 1e-5, [self.shape[1:], self.shape]  # weight, gradient
            if (m[1] == "layer") != bool(m[5]):
                self.kind = None
        elif m := re.fullmatch(r"scan/(sum|min|max)/(b?f16|f32|f64|i32)/(full|rows|columns)/([\dx]+)", name):
            self.kind, self.how, self.dtype, self.shape = "scanned", m[1], np.dtype(types[m[2]]), tuple(map(int, m[4].split("x")))
            self.axis = 0 if m[3] != "rows" else 1
            self.result = np.dtype(np.int64) if self.dtype.kind == "i" and m[1] == "sum" and m[2] != "bf16" else self.dtype
        elif m := re.fullmatch(r"sums/(dot|sqdiff|absdiff|abs|meanvar)/(b?f16|f32|f64)/(full|rows|columns)/([\dx]+)", name):
            self.kind, self.how, self.dtype, self.shape = "summed", m[1], np.dtype(types[m[2]]), tuple(map(int, m[4].split("x")))
            self.axis = {"full": None, "rows": 1, "columns": 0}[m[3]]
            self.result = np.dtype(np.float64)
            self.beside = [self.shape] if m[1] in ("dot", "sqdiff", "absdiff") else []
        elif m := re.fullmatch(r"reduce_axes/(sum|max|min|ssq|norm2)/(b?f16|f32|f64)/([\dx]+)/axes([\d,]+)", name):
            self.kind, self.how, self.dtype, self.shape = "reduced", m[1], np.dtype(types[m[2]]), tuple(map(int, m[3].split("x")))
            self.axes = tuple(sorted(map(int, m[4].split(","))))
            self.result = self.dtype if m[1] in ("max", "min") else np.dtype(np.float64)
        elif m := re.fullmatch(r"group/(\d+)(?:/varied)?/(square_sum/norm2/(b?f16|f32|f64)/full|transpose/(b[248])|normalize/(l2|rms|layer)/(b?f16|f32|f64))/([\dx]+)", name):
            self.kind, self.dtype = "grouped", np.dtype(types[m[3] or m[4] or m[6]])
            self.how, self.each, self.eps = m[2].split("/")[0] if not m[5] else m[5], tuple(map(int, m[7].split("x"))), 1e-5
            self.result = np.dtype(np.float64) if m[3] else self.dtype
            # Every array begins on a line of 64 bytes, in src and in the result.
            self.lengths = [int(float(c)) for c in coefficients]
            self.src_at = self.begins(self.lengths, self.dtype)
            self.dst_at = self.begins([1 if m[3] else n for n in self.lengths], self.result)
            self.shape = (self.src_at[-1],)
        elif m := re.fullmatch(r"(?:reduce|square_sum)/(\w+)/(b?f16|f32|f64|i32)/(full|rows|columns)/([\dx]+)(?:/(?!ld|stride)\w+)?", name):
            self.kind, self.dtype, self.shape = m[1], np.dtype(types[m[2]]), tuple(map(int, m[4].split("x")))
            self.axis = {"full": None, "rows": 1, "columns": 0}[m[3]]
            whole = self.dtype.kind == "i" and self.kind in ("sum", "ssq")
            self.result = {"max": self.dtype, "argmax": np.dtype(np.int64)}.get(self.kind, np.dtype(np.int64 if whole else np.float64))
            if name.endswith("/to_f32"):
                self.result = np.dtype(np.float32)
        elif m := re.fullmatch(r"stencil/(f32|f64)/symmetric/nearest/r(\d+)/([\dx]+)(?:/sweeps(\d+))?", name):
            self.kind, self.dtype, self.shape = "stencil", np.dtype(types[m[1]]), tuple(map(int, m[3].split("x")))
            self.radius, self.sweeps = int(m[2]), int(m[4] or 1)
            self.coefficients = [float(self.dtype.type(c)) for c in coefficients]

    @staticmethod
    def begins(lengths, dtype):
        """Where arrays of these lengths begin, in elements, and where all end."""
        line, at = 64 // dtype.itemsize, [0]
        for n in lengths:
            at.append(at[-1] + -(-n // line) * line)
        return at

    def sides(self):
        """The arrays besides src, of its type: weight and bias, weight and gradient, or the second array of a sum."""
        at, found = 0, []
        for shape in self.beside:
            found.append(np.memmap(os.fdopen(5, "rb", closefd=False), self.dtype, "r", at, shape))
            at += found[-1].nbytes
        return found

    def values(self, dtype, shape):
        """lockstep's results as doubles."""
        want = self.want(dtype, shape)
        if self.bfloat16 and dtype == np.int16:
            want = (want.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return np.asarray(want, np.float64)

    def pages(self):
        """The pages that ours reads: a copy would be on huge ones, which NumPy asks for. Writable, though nobody writes:
        argmax copies what is not."""
        return np.asarray(np.memmap(os.fdopen(3, "rb", closefd=False), self.dtype, "c", 0, self.shape))

    def src(self):
        """A copy in memory of our own, for a device."""
        return np.array(self.pages())

    def want(self, dtype, shape):
        return np.memmap(os.fdopen(4, "rb", closefd=False), dtype, "r", 0, shape)

    def same_bits(self, got):
        got = np.ascontiguousarray(got)
        bits = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[got.itemsize]
        equal = np.array_equal(got.view(bits).reshape(-1), self.want(bits, (got.size,)))
        return "bits equal" if equal else "WRONG: bits differ from a copy's"

    def near(self, got, dtype):
        """Results of sums in other orders or precisions; beyond 10 % it is called wrong."""
        got = np.asarray(got, np.float64).reshape(-1)
        return self.close(got, self.values(dtype, got.shape))

    @staticmethod
    def close(got, want):
        worst = float(np.max(np.abs(got - want)) / max(float(np.max(np.abs(want))), 1e-300))
        if worst == 0:
            return "equal"
        return ("" if worst < 0.1 else "WRONG: ") + f"relative error {worst:.0e}"

    def near_group(self, got):
        """got: the results of each call of a group, one behind the other."""
        if self.how == "transpose":  # bits, not numbers
            bits, got = np.dtype(f"u{got.itemsize}"), np.ascontiguousarray(got)
            want = self.want(bits, (self.dst_at[-1],))
            equal = np.array_equal(got.view(bits), np.concatenate([want[at:at + n] for at, n in zip(self.dst_at, self.lengths)]))
            return "bits equal" if equal else "WRONG: bits differ from a copy's"
        want = self.values(self.result, (self.dst_at[-1],))
        sizes = [1 if self.result == np.float64 and self.how == "square_sum" else n for n in self.lengths]
        return self.close(np.asarray(got, np.float64).reshape(-1), np.concatenate([want[at:at + n] for at, n in zip(self.dst_at, sizes)]))

    def inside(self, got):
        """A stencil's results away from the edges, or all of them, as many as got has."""
        cut = tuple(slice((n - g) // 2, n - (n - g) // 2) for n, g in zip(self.shape, got.shape))
        want = np.asarray(self.want(self.dtype, self.shape))[cut]
        worst = float(np.max(np.abs(got - want)) / np.max(np.abs(want)))
        where = "" if got.shape == self.shape else "inside "
        return f"{where}within {worst:.0e} of the largest" if worst < 1e-5 else f"WRONG: {where}off by {worst:.0e} of the largest"

    def take_turns(self, peer, checked, body):
        """Waits for its turns, as peer.hpp says."""
        def seconds_of_one():
            begin = time.perf_counter()
            body()
            return time.perf_counter() - begin

        def samples(count):
            body()
            return [seconds_of_one() * 1e3 for _ in range(count)]
        once = seconds_of_one()
        if checked.startswith("WRONG") or (once > 0.3 and once * 1e3 > 10 * self.ours_ms):
            return self.say(peer, checked, lambda: [once * 1e3])
        self.answer_turns(peer, checked, samples)

    def answer_turns(self, peer, checked, samples):
        print(json.dumps({"name": self.name, "peer": peer, "checked": checked, "waits": True}), flush=True)
        while count := int(sys.stdin.readline() or 0):
            print(json.dumps({"ms": samples(count)}), flush=True)

    def say_device(self, peer, checked, body, event, spin):
        """Times a body that queues work on a device: samples of 0.2 ms, back to back, queued behind a spin so that no
        launch's gap is in them, as ours are; of a sample in turns with ours. event() makes an event, spin(us) keeps the device busy for so long.
        A sample counts where its first event had not passed when its last was queued; where 50 ms do not do, the
        body waits for the device itself: ten runs or more a sample then, gaps and all."""
        if checked.startswith("WRONG"):
            return self.say(peer, checked, lambda: [])
        for _ in range(3):
            body()
        begin, end, pause = event(), event(), 100.0

        def once(runs):
            nonlocal pause
            while True:
                if pause:
                    spin(pause)
                begin.record()
                for _ in range(runs):
                    body()
                end.record()
                in_time = not begin.query()
                end.synchronize()
                if in_time or not pause:
                    return begin.elapsed_time(end) / runs
                pause = pause * 2 if pause < 50e3 else 0

        runs = min(50, max(1 if pause else 10, int(0.2 / max(once(1), 1e-3))))
        if sample:
            return self.answer_turns(peer, checked + ("" if pause else ", waits for each"), lambda count: [once(runs) for _ in range(count)])
        samples = []
        while len(samples) < 15 or (sum(samples) * runs < seconds * 1e3 and len(samples) < 100):
            samples.append(once(runs))
            if sum(samples) * runs > 3e3:
                break
        self.say(peer, checked + ("" if pause else ", waits for each"), lambda: samples)

    def say(self, peer, checked, samples):
        """samples() times the way, where its result is right."""
        ms = [] if checked.startswith("WRONG") else samples()
        print(json.dumps({"name": self.name, "peer": peer, "checked": checked, "ms": ms}), flush=True)


backend = words.get("--backend", "cpu").split(":")[0]


def serve(backends, start):
    """start() gives measure(case); a peer that has nothing to offer on a backend ends at once, and with 77 where a module
    is not installed."""
    if backend not in backends or "--cold" in sys.argv:
        return
    try:
        import numpy  # noqa: F401
        measure = start()
    except ModuleNotFoundError as missing:
        print(f"{sys.argv[0]}: SKIP: {sys.executable} has no {missing.name}", file=sys.stderr)
        sys.exit(77)
    while line := sys.stdin.readline():
        case = Case(line)
        if case.kind:
            try:
                measure(case)
            except Exception as error:  # an op that this version does not have, or no memory
                print(f"{case.name}: {error}", file=sys.stderr, flush=True)
        print(json.dumps({"done": True}), flush=True)
