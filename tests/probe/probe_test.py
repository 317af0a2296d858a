#!/usr/bin/env python3
"""probe_test.py LOCKSTEP - lockstep probe as its users meet it, on the CPU's rows."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv.pop(1)
VERDICTS = {"agrees", "moved on", "fitted", "differs"}


def run(*args, **more):
    return subprocess.run([TOOL, "probe", *map(str, args)], capture_output=True, text=True, timeout=280, **more)


class Probe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ran = run("--backend", "cpu", "--seconds", "0.001", "--threads", "2", "--json", "-", "--note", "a note")
        cls.report = json.loads(cls.ran.stdout)
        # Of aliasing, H6, nothing is predicted for Intel's processors.
        intel = "GenuineIntel" in pathlib.Path("/proc/cpuinfo").read_text()
        cls.judged = [f"H{i}" for i in range(1, 9) if i != 6 or not intel]

    def test_every_row_is_measured_and_right(self):
        self.assertEqual(self.ran.returncode, 0, self.ran.stderr)
        rows = {row["id"]: row for row in self.report["rows"]}
        self.assertEqual(sorted(rows), self.judged if os.uname().machine == "x86_64" else sorted(rows))
        for row in rows.values():
            self.assertIn(row["verdict"], VERDICTS, row["id"])
            self.assertTrue(row["taught"] and row["lesson"] and row["counterpart"], row["id"])
            self.assertTrue(row["lines"], row["id"])
            for line in row["lines"]:
                self.assertTrue(line["values_right"], line)
                self.assertIn(line["verdict"], VERDICTS)
                self.assertTrue(line["predicted"].get("rule"), line)
                holds = lambda r: r.get("low", float("-inf")) <= line["measured"] <= r.get("high", float("inf"))
                self.assertEqual(line["verdict"] in ("agrees", "moved on"), holds(line["predicted"]), line)
                self.assertEqual(line["witness"], "fitted" if line["verdict"] == "fitted" else "rule")
                if line["verdict"] == "fitted":
                    self.assertTrue(holds(line["fitted"]) and line["fitted"]["why"], line)
                    self.assertTrue(any(line["name"] in text for text in row["fitted"]), line)
        self.assertTrue(all(reading["values_right"] for reading in self.report["readings"]))

    def test_series(self):
        series = {s["name"]: s for row in self.report["rows"] for s in row["series"]}
        latency = series["Latency by working set"]
        self.assertEqual([p["x"] for p in latency["points"]], [4096 << k for k in range(17)])
        self.assertTrue(all(p["y"] > 0 for p in latency["points"]))
        # 256 MiB at random are slower than 4 KiB on any machine.
        self.assertGreater(latency["points"][-1]["y"], 3 * latency["points"][0]["y"])
        self.assertEqual([m["label"] for m in latency["marks"]], ["L1", "L2", "L3"])

    def test_meta(self):
        meta = self.report["meta"]
        self.assertEqual(meta["note"], "a note")
        self.assertTrue(meta["commit"] and meta["date"] and meta["devices"]["cpu"]["name"])

    def test_selection(self):
        listed = run("--list").stdout.splitlines()
        self.assertEqual([line.split()[0] for line in listed], [f"E{i}" for i in range(1, 16)] + [f"H{i}" for i in range(1, 9)])
        one = json.loads(run("--backend", "cpu", "--row", "h7", "--seconds", "0.001", "--threads", "2", "--json", "-").stdout)
        self.assertEqual([row["id"] for row in one["rows"]], ["H7"])
        by_counterpart = run("--backend", "cpu", "--row", "E3", "--seconds", "0.001", "--json", "-")
        found = json.loads(by_counterpart.stdout)
        self.assertEqual(by_counterpart.returncode, 0, by_counterpart.stderr)
        self.assertEqual([row["id"] for row in found["rows"]], ["H6"] if "H6" in self.judged else [])
        self.assertTrue(any(reading["row"] == "H6" for reading in found["readings"]))
        self.assertEqual(found["missing"], [] if found["rows"] else
                         ["H6 Addresses 4 KiB apart: nothing is predicted for this processor; --json has what was measured"])

    def test_results_are_judged_again(self):
        with tempfile.TemporaryDirectory() as folder:
            data, page = os.path.join(folder, "p.json"), os.path.join(folder, "p.html")
            with open(data, "w") as f:
                json.dump(self.report, f)
            again = json.loads(run("--from", data, "--html", page, "--json", "-").stdout)
            self.assertEqual([(r["id"], r["verdict"], r["lines"]) for r in again["rows"]],
                             [(r["id"], r["verdict"], r["lines"]) for r in self.report["rows"]])
            self.assertEqual(again["readings"], self.report["readings"])
            self.assertEqual(again["meta"]["commit"], self.report["meta"]["commit"])
            self.assertTrue(again["meta"]["judged"] and os.path.getsize(page) > 10000)
            one = json.loads(run("--from", data, "--row", "H2", "--json", "-").stdout)
            self.assertEqual([row["id"] for row in one["rows"]], ["H2"])
            with open(data, "w") as f:
                f.write('{"meta": {}}')
            for path, code, text in ((data, 2, "holds no readings"), (os.path.join(folder, "none"), 1, "No such file")):
                r = run("--from", path)
                self.assertEqual((r.returncode, r.stderr.count("\n")), (code, 1), r.stderr)
                self.assertIn(text, r.stderr)

    def test_usage(self):
        for args, text in ((["--row", "("], "--row"), (["--row", "X9"], "--list"), (["--backend", "tpu"], "--backend"),
                           (["--seconds", "-1"], "--seconds"), (["--seconds", "nan"], "--seconds")):
            r = run(*args)
            self.assertEqual((r.returncode, r.stderr.count("\n")), (2, 1), r.stderr)
            self.assertIn(text, r.stderr)

    def test_missing_device_is_named(self):
        """Where CUDA cannot run, its rows are missing for the reason that info gives."""
        with tempfile.TemporaryDirectory() as empty:
            for more in ({}, {"LOCKSTEP_BACKEND_PATH": empty}):
                environment = {**os.environ, **more}
                info = json.loads(subprocess.run([TOOL, "info", "--json"], capture_output=True, env=environment, timeout=60).stdout)
                cuda = next((b for b in info["backends"] if b["name"] == "cuda"), {"usable": False, "reason": "there is no probe-cuda.so in"})
                r = run("--row", "E3|H7", "--seconds", "0.001", "--threads", "2", env=environment)
                self.assertIn("H7", r.stdout)
                if cuda["usable"]:
                    self.assertNotIn("missing", r.stdout)
                else:
                    self.assertTrue(cuda["reason"])
                    self.assertIn(f"missing: E3 Bank conflicts of shared memory: {cuda['reason']}", r.stdout)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            page, data = os.path.join(folder, "p.html"), os.path.join(folder, "p.json")
            r = run("--row", "H1", "--seconds", "0.001", "--html", page, "--json", data)
            self.assertEqual(r.returncode, 0, r.stderr)
            with open(page) as f:
                text = f.read()
            self.assertIn("Latency by working set", text)
            self.assertIn("<svg", text)
            with open(data) as f:
                self.assertEqual(json.load(f)["rows"][0]["id"], "H1")
            r = run("--row", "H7", "--seconds", "0.001", "--threads", "2", "--json", os.path.join(folder, "no", "p.json"))
            self.assertEqual((r.returncode, r.stdout), (1, ""))  # said before anything is measured
            self.assertIn("--json: there is no folder", r.stderr)

    def test_committed_results_say_their_rules(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "results")
        for name in ("probe-h200.json", "probe-zen5.json"):
            again = json.loads(run("--from", os.path.join(folder, name), "--json", "-").stdout)
            for row in again["rows"]:
                self.assertTrue(row["taught"] and row["lesson"], row["id"])
                for line in row["lines"]:
                    self.assertTrue(line["predicted"].get("rule") or line["predicted"]["text"] == "no rule", (name, row["id"], line["name"]))


if __name__ == "__main__":
    unittest.main()
