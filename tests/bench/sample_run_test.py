#!/usr/bin/env python3
"""sample_run_test.py LOCKSTEP MODULES PEERS - bench --sample as its users meet it: small draws on the CPU, beside scripted
peers and those of PEERS; a wrong result; what is printed of results made up here."""
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

TOOL, MODULES, PEERS = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
PEERS_BUILT = os.path.join(os.path.dirname(TOOL), "peers")  # with programs, if they were built
PEERS_BUILT = PEERS_BUILT if os.path.exists(PEERS_BUILT) else PEERS
SMALL = ("--backend", "cpu", "--sample", "86", "--count", "4")  # 5 MB in all
DRAWN = ["square_sum/ssq/f64/rows/2132x32", "permute/b2/4x577x16x40/perm0,2,3,1", "transpose/b4/1268x168",
         "stencil/f32/symmetric/nearest/r1/171856"]
HEAD = "#!/usr/bin/env python3\nimport json, sys\nsay = lambda **a: print(json.dumps(a), flush=True)\nfor line in sys.stdin:\n  name = line.split()[0]\n"
TURNS = HEAD + ("  say(name=name, peer='{}', checked='bits equal', waits=True)\n"
                "  while n := int(sys.stdin.readline()): say(ms=[{}] * n)\n  say(done=True)\n")
# A device whose clock says half a millisecond a run: what peer_common makes of events.
DEVICE = f"""#!{sys.executable}
import sys
sys.path.insert(0, {PEERS!r})
from peer_common import serve
runs = 0
class Event:
    def record(self): self.at = runs
    def query(self): return False
    def synchronize(self): pass
    def elapsed_time(self, end): return 0.5 * (end.at - self.at)
def body():
    global runs
    runs += 1
serve(["cpu"], lambda: lambda case: case.say_device("Device 1.0", "bits equal", body, Event, lambda us: None))
"""


def bench(*args, **more):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LOCKSTEP_") or k == "LOCKSTEP_MUTANT"}
    return subprocess.run([TOOL, "bench", *map(str, args)], capture_output=True, text=True, env={**environment, **more}, timeout=400)


class Sample(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = lambda name: os.path.join(folder.name, name)

    def ok(self, *args, **more):
        r = bench(*args, **more)
        self.assertEqual(r.returncode, 0, (args, r.stdout[-500:], r.stderr[-2000:]))
        return r.stdout

    def results(self, *args, **more):
        self.ok(*args, "--json", self.path("r.json"), **more)
        with open(self.path("r.json")) as f:
            return json.load(f)

    def peers(self, **scripts):
        os.makedirs(self.path("peers"), exist_ok=True)
        for name, text in scripts.items():
            with open(os.path.join(self.path("peers"), "peer_" + name), "w") as f:
                f.write(text)
            os.chmod(f.name, 0o755)
        return self.path("peers")

    def test_a_draw_is_verified_and_timed(self):
        found = self.results(*SMALL)
        self.assertEqual([row["name"] for row in found["benchmarks"]], DRAWN)
        self.assertEqual({row["checked"] for row in found["benchmarks"]}, {"bits equal"})
        self.assertEqual({key: found["meta"]["sample"][key] for key in ("seed", "count", "first", "rounds", "behind_below")},
                         {"seed": 86, "count": 4, "first": 0, "rounds": 9, "behind_below": 0.97})
        self.assertTrue(all(row["median_ms"] > 0 and "behind" not in row for row in found["benchmarks"]))
        self.assertIn("name peer programs by --peers", self.ok("--from", self.path("r.json")))

    def test_names_without_timing_and_parts(self):
        self.assertEqual(self.ok(*SMALL, "--list").split(), DRAWN)
        self.assertEqual(self.ok(*SMALL, "--first", "2", "--list").split(), DRAWN[2:])
        self.assertEqual([row["name"] for row in self.results(*SMALL, "--first", "3")["benchmarks"]], DRAWN[3:])

    def test_judged_beside_the_best_peer(self):
        folder = self.peers(slow=TURNS.format("Slow 1.0", 5000.0), fast=TURNS.format("Fast 1.0, float", 1e-9),
                            wrong=HEAD + "  say(name=name, peer='Wrong 1.0', checked='WRONG: bits differ', ms=[]); say(done=True)\n")
        found = self.results(*SMALL, "--peers", folder, "--threads", 1, "--html", self.path("p.html"))
        ours = [row for row in found["benchmarks"] if row["source"] == "lockstep"]
        self.assertEqual([(row["sample_peer"], row["behind"]) for row in ours], [("Fast 1.0, float", True)] * 4)
        for row in found["benchmarks"]:
            if row["source"] != "lockstep":
                self.assertEqual((row["rounds"], len(row["rounds_ms"])), (9, 9), row["name"])
                own = sorted(theirs / mine for mine, theirs in row["rounds_ms"])
                self.assertAlmostEqual(row["ratio"] / own[4], 1, places=3)
        self.assertNotIn("Wrong 1.0", {row["source"] for row in found["benchmarks"]})
        self.assertEqual(sum("Wrong 1.0: WRONG" in text for text in found["skipped"]), 4)
        with open(self.path("p.html"), encoding="utf-8") as f:
            page = f.read()
        for text in ("Ratio by bytes moved", "The worst ten", *DRAWN):
            self.assertIn(text, page)
        # The same rounds beside others.
        said = self.ok("--from", self.path("r.json"), "--against", "^slow", "--json", self.path("slow.json"))
        self.assertRegex(said, r"\nall +4 +0 ")
        with open(self.path("slow.json")) as f:
            again = [row for row in json.load(f)["benchmarks"] if row["source"] == "lockstep"]
        self.assertEqual([(row["sample_peer"], row["behind"]) for row in again], [("Slow 1.0", False)] * 4)
        self.assertRegex(self.ok(*SMALL, "--first", 3, "--peers", folder, "--threads", 1, "--against", "slow"), r"\nall +1 +0 ")

    def test_a_devices_peer_takes_turns(self):
        found = self.results(*SMALL, "--first", 3, "--peers", self.peers(device=DEVICE), "--threads", 1)
        row = found["benchmarks"][1]
        self.assertEqual((row["source"], row["rounds"], row["median_ms"], {its for _, its in row["rounds_ms"]}), ("Device 1.0", 9, 0.5, {0.5}))

    def test_a_wrong_result_fails(self):
        """Draw 0 of this seed on a device is a transpose of 4096x16 that a planted backend gets wrong by a bit."""
        drawn = ("--backend", "wrong", "--sample", "361", "--count", "1", "--json", self.path("w.json"))
        for variant, code in (("right", 0), ("wrong", 1)):
            r = bench(*drawn, "--variant", variant, LOCKSTEP_BACKEND_PATH=MODULES)
            self.assertEqual(r.returncode, code, (r.stdout, r.stderr))
            with open(self.path("w.json")) as f:
                found = json.load(f)
            self.assertEqual((len(found["benchmarks"]), len(found["wrong"])), (1 - code, code))
            self.assertEqual("transpose/b4/4096x16 on wrong variant wrong: WRONG: bits differ" in r.stdout, bool(code))

    def made_up(self, name, rows, size=2e6):
        """rows: name -> ratio of the peer P, of a sum "P, float"; 10 us each."""
        benchmarks = []
        for case, ratio in rows.items():
            row = {"name": case, "op": case.split("/")[0], "backend": "cpu", "device": "C", "variant": "v", "bytes": size, "median_ms": 0.01,
                   "noise": 0, "limit": "copy", "gb_s": 1, "limit_gb_s": 2, "fraction": 0.5, "checked": "bits equal"}
            benchmarks += [{**row, "source": "lockstep"}, {**row, "source": "P, float" if "/sum/" in case else "P", "median_ms": 0.01 * ratio}]
        with open(self.path(name), "w") as f:
            json.dump({"meta": {"devices": {"cpu": {"name": "C"}}, "sample": {"seed": 1, "count": len(rows), "first": 0}}, "limits": {},
                       "benchmarks": benchmarks}, f)
        return f.name

    def test_what_is_said_of_many(self):
        # 0.97 is not below 0.97.
        ratios = [0.5, 0.96, 0.97, 1, 1.1, 1.2, 1.3, 1.4, 2, 4, 8]
        said = self.ok("--from", self.made_up("a.json", {f"transpose/b4/{n}x8": r for n, r in enumerate(ratios, 100)} | {"reduce/max/f32/full/9": 0.25}))
        self.assertNotIn("adds in float", said)
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        self.assertRegex(said, rf"\ntranspose +11 +2 +0\.50 +0\.96 +1\.00 +1\.20 +2\.00 +4\.00 +{mean:.2f}\n")
        self.assertRegex(said, r"\nall +12 +3 +0\.25 ")
        self.assertRegex(said, r"\nreduction +1 +1 +0\.25 ")
        self.assertRegex(said, r"\n  1 to 8 MB +11 +2 ")
        self.assertRegex(said, r"\ntranspose v +11 +2 ")
        worst = re.findall(r"^((?:transpose|reduce)/\S+)", said.split("the worst")[1], re.M)
        self.assertEqual(worst, ["reduce/max/f32/full/9"] + [f"transpose/b4/{n}x8" for n in range(100, 109)])

        said = self.ok("--from", self.made_up("s.json", {"reduce/sum/f32/full/9": 0.5, "reduce/sum/f32/full/8": 2, "reduce/max/f32/full/9": 0.5}))
        self.assertIn("\n1 of those behind are behind a peer that adds in float", said)
        self.assertIn("median: 10.00 us of 3, reduction", self.ok("--from", self.made_up("t.json", {f"reduce/max/f32/full/{n}": 1 for n in (7, 8, 9)}, 1e6)))

    def test_behind_in_every_run(self):
        a = self.made_up("a.json", {"transpose/b4/100x8": 0.9, "transpose/b4/200x8": 0.9})
        b = self.made_up("b.json", {"transpose/b4/100x8": 0.95, "transpose/b4/200x8": 1.6})
        said = self.ok("--from", a, "--from", b, "--html", self.path("p.html"))
        self.assertRegex(said, rf"\nall +2 +1 +{math.sqrt(0.9 * 0.95):.2f} .* {(0.9 * 0.95 * 0.9 * 1.6) ** 0.25:.2f}\n")

    def test_what_does_not_fit_is_refused(self):
        for text, args in (("--sample", ("--count", 3)), ("--sample", ("--first", 3)), ("--sample", ("--against", "P")),
                           ("--preset", ("--sample", 1, "--preset", "quick")), ("--case", ("--sample", 1, "--case", "transpose/b4/8x8")),
                           ("--first 4", (*SMALL, "--first", 4)), ("--variants", (*SMALL, "--variants", "all")),
                           ("no regular expression", (*SMALL, "--against", "(")), ("--sample", ("--sample", -1)), ("--count", ("--sample", 1, "--count", 0)),
                           ("--against is for samples", ("--from", self.plain(), "--against", "P")), ("--html FILE", ("--from", self.plain()))):
            r = bench(*args)
            self.assertEqual(r.returncode, 2, (args, r.stdout[-300:], r.stderr))
            self.assertIn(text, r.stderr)
            self.assertEqual(r.stderr.count("\n"), 1, r.stderr)

    def plain(self):
        with open(self.path("plain.json"), "w") as f:
            json.dump({"meta": {}, "limits": {}, "benchmarks": []}, f)
        return f.name

    def test_python_peers_know_every_draw(self):
        names = [name for ops in ("old", "new") for name in self.ok("--backend", "cpu", "--sample", 4, "--count", 400, "--sample-ops", ops, "--list").split()]
        kinds = subprocess.run([sys.executable, "-c", "import sys; from peer_common import Case\n"
                                "for n in sys.stdin.read().split(): print(Case(n + ' 1 0.5').kind, n)"],
                               input="\n".join(names), capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": PEERS}).stdout
        unknown = [line for line in kinds.splitlines() if line.startswith("None ")]
        self.assertEqual((len(kinds.splitlines()), unknown), (len(names), []))

    def test_new_ops_beside_loops_and_numpy(self):
        """Small shapes of the second distribution: every peer's result is close to ours."""
        shapes = ("normalize/rms/f16/31x300/weight", "normalize/layer/bf16/9x64/weight/bias", "normalize/l2/f32/7x1000", "scan/sum/f32/columns/300x70",
                  "scan/sum/i32/full/40000", "scan/max/bf16/rows/70x300", "sums/dot/f32/full/50000", "sums/dot/f64/columns/300x70",
                  "sums/meanvar/f16/rows/70x300", "sums/meanvar/f32/columns/300x70", "sums/sqdiff/f32/rows/70x300", "sums/abs/bf16/full/50000",
                  "reduce_axes/sum/f32/20x30x40/axes0,2", "reduce_axes/norm2/f64/5x6x7x80/axes1", "reduce_axes/max/f32/5x60x80/axes0,1",
                  "convert/f32/bf16/70x300/perm1,0", "convert/f16/f32/20000/perm0", "convert/f32/f16/3x14x14x24/perm0,3,1,2",
                  "group/30/varied/square_sum/norm2/f32/full/3000", "group/12/transpose/b2/33x70", "group/12/normalize/rms/bf16/3x300")
        found = self.results("--backend", "cpu", "--seconds", 0.001, "--threads", 1, "--peers", PEERS_BUILT, *(word for one in shapes for word in ("--case", one)))
        self.assertEqual([row["name"] for row in found["benchmarks"] if row["source"] == "lockstep"], list(shapes))
        self.assertEqual([text for text in found["skipped"] if "SKIP" not in text], [])
        beside = {row["name"] for row in found["benchmarks"] if row["source"].startswith("omp")}
        if os.path.exists(os.path.join(PEERS_BUILT, "peer_omp")):
            self.assertEqual(set(shapes) - beside, set())
        for row in found["benchmarks"]:
            if row["source"] != "lockstep":
                self.assertRegex(row["checked"], "^(bits equal|equal|relative error)", row)
                self.assertTrue("error" not in row["checked"] or float(row["checked"].split()[-1]) < 0.02, row)

    def test_beside_python_peers(self):
        """NumPy and PyTorch, each where it is installed; a peer without its library is skipped, and that is said."""
        found = self.results(*SMALL, "--first", 2, "--threads", 1, "--peers", PEERS)
        sources = {row["source"].split()[0] for row in found["benchmarks"]}
        for peer, module in (("NumPy", "numpy"), ("PyTorch", "torch")):
            there = subprocess.run(["/usr/bin/python3" if peer == "NumPy" else "python3", "-c", f"import {module}, numpy"], capture_output=True).returncode == 0
            skipped = any(f"peer_{module}: SKIP" in text for text in found["skipped"])
            self.assertEqual((peer in sources, skipped), (there, not there), (found["skipped"], sources))
            print(f"{peer}: {'judged beside' if there else 'SKIP, not installed'}", file=sys.stderr)
        wrong = [row for row in found["benchmarks"] if "WRONG" in row["checked"]]
        self.assertEqual(wrong, [])


unittest.main(verbosity=1)
