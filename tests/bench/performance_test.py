#!/usr/bin/env python3
"""performance_test.py PERFORMANCE - tools/performance on results made up here: what is missing, level or behind is said."""
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import unittest
import xml.dom.minidom
from contextlib import redirect_stdout

loader = importlib.machinery.SourceFileLoader("performance", sys.argv.pop(1))
performance = importlib.util.module_from_spec(importlib.util.spec_from_loader("performance", loader))
sys.dont_write_bytecode = True
loader.exec_module(performance)


def row(name, ms=1.0, noise=0.002, fraction=0.9, source="lockstep", **more):
    return {"name": name, "backend": "cuda", "source": source, "variant": "wide" if source == "lockstep" else source, "bytes": 2e9,
            "median_ms": ms, "low_ms": ms * (1 - noise), "high_ms": ms * (1 + noise), "gb_s": 2e3 / ms, "fraction": fraction, **more}


def judged(rows):
    """The verdicts that `lockstep bench` would have stored (its own tests say whether they are right)."""
    for ours in (r for r in rows if r["source"] == "lockstep"):
        peers = [r for r in rows if r["name"] == ours["name"] and r["source"] != "lockstep"]
        for p in peers:
            level = ours["low_ms"] <= p["high_ms"] and p["low_ms"] <= ours["high_ms"]
            p["ratio"] = p["median_ms"] / ours["median_ms"]
            p["verdict"] = "level" if level else "ahead" if p["ratio"] > 1 else "behind"
        for keys, of in ((("best_peer", "over_best_peer", "verdict"), [p for p in peers if not p["source"].endswith("float")]),
                         (("float_peer", "over_float_peer", "float_verdict"), [p for p in peers if p["source"].endswith("float")])):
            if of:
                best = min(of, key=lambda p: (p["verdict"] != "behind", p["ratio"]))
                ours.update(zip(keys, (best["source"], best["ratio"], best["verdict"])))
    return rows


def run(rows, commit="aaa", limits=None, **meta):
    devices = {"cuda": {"name": "GPU", "detail": "sm_90, driver 580.1 for CUDA 13.0, 4 threads"}}
    return {"meta": {"commit": commit, "date": "2026-01-01", "cache": "hot", "threads": 0, "devices": devices, **meta},
            "limits": {"cuda": limits or {}}, "benchmarks": judged(rows)}


class Performance(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        (self.root / "tests/results").mkdir(parents=True)
        self.write("reasons.json", {})
        (self.root / "README.md").write_text("before\n" + performance.begin + performance.end + "after\n")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, what):
        (self.root / "tests/results" / name).write_text(json.dumps(what))

    def made(self, targets, result, shown=(), key="cuda"):
        """The README's text and the summary's."""
        self.write("targets.json", {key: targets, "shown": {key: shown}})
        if result:
            self.write("readme-gpu.json", result)
        said = io.StringIO()
        with redirect_stdout(said):
            self.assertEqual(performance.main([], self.root), 0)
            self.assertEqual(performance.main(["--summary"], self.root), 0)
            self.assertEqual(performance.main(["--check"], self.root), 0)
        return (self.root / "tests/results/README.md").read_text(), said.getvalue()

    def test_a_target_without_a_row_is_short(self):
        text, said = self.made({"a": 0.8, "b": 0.9}, run([row("a")]))
        self.assertIn("| `b` |  |  |  |  | not measured: **short** |  |", text)
        self.assertIn("1 of 2 targets met (1 not measured)", text)
        self.assertIn("short   b: not measured: short", said)
        self.assertIn("1 targets of readme-gpu.json not measured", said)

    def test_targets_without_a_results_file_are_told(self):
        text, said = self.made({"a": 0.8, "b": 0.9}, None)
        self.assertIn("**cuda: no results file, 2 targets not measured.**", text)
        self.assertIn("cuda: no results file", said)

    def test_a_factor_without_its_peer_is_short(self):
        text, _ = self.made({"a": {"factor": 1.05, "over": "CUB"}}, run([row("a"), row("a", 2, source="Thrust")]))
        self.assertIn("1.05 x CUB, which was not measured: **short**", text)
        self.assertIn("0 of 1 targets met (1 not measured)", text)

    def test_what_a_prototype_showed_and_nobody_measured(self):
        _, said = self.made({}, run([row("a")]), [["b*", 0.9]])
        self.assertIn("below   b*: not measured", said)

    def test_shown_at_its_target(self):
        rows = [row("a"), row("a", 0.9, source="CUB"), row("b"), row("b", 1.1, source="CUB")]
        of = {"factor": 1.0, "over": "CUB"}
        _, said = self.made({"a": of, "b": of}, run(rows), [["a", "target"], ["b", "target"]])
        self.assertIn("below   a: not the target", said)
        self.assertNotIn("below   b", said)

    def test_level_is_within_the_noise_of_both(self):
        rows = [row("a"), row("a", 0.997, source="CUB"), row("b"), row("b", 0.995, source="CUB"), row("c"), row("c", 1.005, source="CUB")]
        of = {"factor": 1.0, "over": "CUB"}
        text, _ = self.made({"a": of, "b": of, "c": of}, run(rows))
        self.assertIn("1.00 x CUB, 0.997, level: met | CUB: 0.997 level", text)
        self.assertIn("1.00 x CUB, 0.995, behind: **short** | CUB: **0.995 behind**", text)
        self.assertIn("1.00 x CUB, 1.005, ahead: met | CUB: 1.005 ahead", text)
        self.assertIn("1 of 3 rows with a peer are behind it, 1 level", text)

    def test_other_factors_have_no_tolerance_beyond_what_is_printed(self):
        text, _ = self.made({"a": {"factor": 1.1, "over": "CUB"}}, run([row("a"), row("a", 1.094, source="CUB")]))
        self.assertIn("1.10 x CUB, 1.094: **short**", text)

    def test_a_peer_that_is_behind_hides_none_that_is_ahead(self):
        rows = [row("a"), row("a", 0.99, 0.02, source="noisy"), row("a", 0.992, 0.001, source="sure")]
        text, _ = self.made({}, run(rows))
        self.assertIn("sure: **0.992 behind**", text)

    def test_times_have_no_tolerance(self):
        self.write("pinned.json", run([row("a", 24.01)]))
        text, _ = self.made({"a there": {"ms": 24, "file": "pinned.json"}, "b there": {"ms": 24, "file": "pinned.json"},
                             "c there": {"ms": 24, "file": "none.json"}}, run([row("a")]))
        self.assertIn("24.00 ms: **short**", text)
        self.assertIn("0 of 3 targets met (2 not measured)", text)

    def test_commits_of_other_files_are_told_where_they_differ(self):
        self.write("same.json", run([row("a", 2)]))
        self.write("other.json", run([row("a", 2)], commit="bbb"))
        text, _ = self.made({"a 1": {"ms": 3, "file": "same.json"}, "a 2": {"ms": 3, "file": "other.json"}}, run([row("a")]))
        self.assertIn("`a 1` ([file](same.json))", text)
        self.assertIn("`a 2` ([file](other.json), commit bbb)", text)

    def test_host_copies_bound_what_pageable_memory_allows(self):
        limits = {"host_copies_gb_s": 40, "both_pinned_gb_s": 100}
        targets = {"a by": {"host_copies": 0.85, "file": "pageable.json"}}
        for ms, verdict in ((58.8, "0.85 of the bound by host copies (40 GB/s), 0.85: met"), (60, "0.83 of the bound by host copies (40 GB/s), 0.85: **short**")):
            self.write("pageable.json", run([row("a", ms)], limits=limits))
            self.assertIn(verdict, self.made(targets, run([row("a")]))[0])
        limits["host_copies_gb_s"] = 400  # now the link bounds
        self.write("pageable.json", run([row("a", 20)], limits=limits))
        self.assertIn("1.00 of the bound", self.made(targets, run([row("a")]))[0])
        del limits["host_copies_gb_s"]
        self.write("pageable.json", run([row("a", 20)], limits=limits))
        self.assertIn("not measured: **short**", self.made(targets, run([row("a")]))[0])

    def test_auto_beside_the_better(self):
        calls = [row("a", memory="pageable", over_better=1.05), row("b", memory="pageable", over_better=1.3), row("c", memory="pinned", over_better=2)]
        of = {"over_better": 1.1, "memory": "pageable", "file": "crossover.json"}
        self.write("crossover.json", run(calls))
        text, _ = self.made({"auto": of}, run([row("a")]))
        self.assertIn("1 of 2 calls within 1.10 x the better, the worst 1.30: **short**", text)
        self.write("crossover.json", run(calls[:1]))
        self.assertIn("1 of 1 calls within 1.10 x the better, the worst 1.05: met", self.made({"auto": of}, run([row("a")]))[0])
        self.write("crossover.json", run(calls[2:]))
        self.assertIn("| `auto` |  |  |  |  | not measured: **short** |", self.made({"auto": of}, run([row("a")]))[0])

    def test_cold_stands_in_a_column(self):
        self.write("readme-gpu-cold.json", run([row("a", 2, fraction=0.77)], commit="ccc"))
        text, _ = self.made({}, run([row("a"), row("b")]))
        self.assertIn("| of limit | cold | target |", text)
        self.assertIn("| 0.90 | 2.00 ms, 0.77 |", text)
        self.assertIn("| `b` | wide | 1.00 ms | 2000 | 0.90 |  |  |  |", text)
        self.assertIn("readme-gpu-cold.json), commit ccc", text)
        self.assertEqual(text.count("## GPU"), 1)

    def test_the_head_says_things_once(self):
        text, _ = self.made({}, run([row("a")], note="driver 580.1", threads=1), key="cuda 1 thread")
        self.assertEqual(text.count("580.1"), 1)
        self.assertIn("1 of 4 threads", text)

    def test_chips_of_one_name_are_told_apart_and_have_reasons_of_their_own(self):
        self.write("reasons.json", {"cpu 1 thread": {"of any": ["a"]}, "zen9 cpu 1 thread": {"of this one": ["a"]}})
        for chip, cpu, name, reason in (("zen9", {"chip": "Zen 9"}, "Zen 9", "of this one"),
                                        ("zen8", {"family": "9", "model": "8", "stepping": "1"}, "family 9, model 8, stepping 1", "of any")):
            one = run([row("a", fraction=0.5, backend="cpu")], threads=1, cpu=cpu, devices={"cpu": {"name": "GPU", "detail": "d"}})
            self.write(f"readme-{chip}-1-thread.json", one)
            text, said = self.made({"a": 0.8}, None, key="cpu 1 thread")
            self.assertIn(f"## GPU ({name}), 1 thread", text)
            self.assertIn(f"short ({reason})", said)
            (self.root / f"tests/results/readme-{chip}-1-thread.json").unlink()

    def test_a_reason_names_its_cases(self):
        self.write("reasons.json", {"cuda": {"of all": ["*"]}})
        with self.assertRaises(SystemExit):
            self.made({"a": 0.8}, run([row("a", fraction=0.5)]))

    def test_equal_bytes_have_one_limit(self):
        read = {"limit": "read", "limit_gb_s": 1000.0, "gb_s": 900.0}
        text, _ = self.made({}, run([row("squares", **read), row("sums", **{**read, "limit_gb_s": 2000.0}),
                                     row("a few bytes more", **read) | {"bytes": 2e9 + 8}, row("half", **read) | {"bytes": 1e9},
                                     row("copied", **{**read, "limit": "copy"})]))
        for name, share in (("squares", 0.45), ("sums", 0.45), ("a few bytes more", 0.45), ("half", 0.9), ("copied", 0.9)):
            self.assertIn(f"| `{name}` | wide | 1.00 ms | 900 | {share:.2f} |", text)

    def test_the_chart_shows_each_operation_beside_its_peer(self):
        self.made({}, run([row("sum/a", 1.0), row("sum/a", 2.0, source="Peer"), row("move/b", 1.0)]))
        drawn = (self.root / "tools/docs/pictures/speed.svg").read_text()
        self.assertEqual([drawn.count(kind) for kind in ('<rect class="ours" x="96"', '<rect class="peer" x="96"')], [2, 1])
        self.assertIn(">0.45</text>", drawn)
        self.assertIn("prefers-color-scheme: dark", drawn)

    def test_a_target_is_compared_before_rounding(self):
        text, _ = self.made({"a": 0.9}, run([row("a", fraction=0.897)]))
        self.assertIn("0.90, -0.003: **short**", text)

    def test_a_faster_float_peer_stands_in_the_headline(self):
        text, _ = self.made({}, run([row("a"), row("a", 1.2, source="CUB"), row("a", 0.8, source="BLAS dot, float")]))
        self.assertIn("behind a peer that adds in float, where we add in double: a: 0.800 x BLAS dot, float", text)
        self.assertIn("- **[GPU](tests/results/README.md#gpu)**: 1 cases, median 0.90 of limit; 1 ahead, 0 level, 0 behind. Behind a peer that adds in float: "
                      "`a` (0.800). **Older than the code**: all rows.", (self.root / "README.md").read_text())

    def test_rows_of_older_code_are_marked(self):
        now = performance.tree.fingerprint("cuda", "hopper", "reduce")
        for fingerprints, said in (((now, now), ""), (("0" * 16, now), " **Older than the code**, marked †: 1 of 2 rows."), ((None, None), " **Older than the code**: all rows.")):
            rows = [row(name, op="reduce", **({"fingerprint": one} if one else {})) for name, one in zip("ab", fingerprints)]
            text = self.made({}, run(rows))[0]
            self.assertIn(f"results in [readme-gpu.json](readme-gpu.json).{said} 0 of", text)
            self.assertEqual("| `a` † |" in text, "marked" in said)
            self.assertNotIn("| `b` † |", text)
            self.assertEqual("**Older than the code**: 1 of 2 rows." in (self.root / "README.md").read_text(), "marked" in said)

    def test_a_cold_figure_of_older_code_marks_its_row(self):
        now = performance.tree.fingerprint("cuda", "hopper", "reduce")
        self.write("readme-gpu-cold.json", run([row("a", op="reduce", fingerprint="0" * 16)]))
        self.assertIn("| `a` † |", self.made({}, run([row("a", op="reduce", fingerprint=now), row("b", op="reduce", fingerprint=now)]))[0])

    def test_the_readme_has_five_rows_of_two_machines(self):
        self.write("targets.json", {"cuda": {}, "cpu": {}, "cpu 1 thread": {}, "cpu 2 threads": {}, "shown": {}})
        ops = ("transpose", "permute", "square_sum", "reduce", "stencil", "shuffle")
        rows = [row(f"{op}/{size}", op=op) | {"bytes": size} for op in ops for size in (10, 20)] + [row(f"{op}/20", 0.5 if op == "reduce" else 2, source="CUB") for op in ops]
        self.write("readme-gpu.json", run(rows))
        for threads, date in ((1, "2026-01-02"), (2, "2026-01-02")):
            one = run([{**r, "backend": "cpu"} for r in rows], threads=threads, date=date, devices={"cpu": {"name": "CPU", "detail": "avx512"}})
            self.write(f"readme-cpu-{threads}-threads.json", one)
        self.assertEqual(performance.main([], self.root), 0)
        text = (self.root / "README.md").read_text()
        self.assertEqual(text.count("\n| GPU | `"), 5)
        self.assertEqual(text.count("\n| CPU, 2 threads | `"), 5)
        self.assertNotIn("/10`", text)
        self.assertIn("Behind: `reduce/20` (0.500 x CUB).", text)
        self.assertIn("- Other machines: [CPU, 1 thread](tests/results/README.md#cpu-1-thread).", text)

    def test_each_chip_has_its_files_and_reasons(self):
        goals = {"a": 0.95, "b to b": {"ms": 5, "file": "host-{chip}.json"}}
        self.write("targets.json", {"cuda": goals, "shown": {"large cuda": [["a", 0.99]]}})
        self.write("reasons.json", {"large cuda": {"too few registers": ["a"]}})
        self.write("readme-large.json", run([row("a")], devices={"cuda": {"name": "Large", "detail": "sm_90"}}))
        self.write("host-large.json", run([row("b", 4.0)]))
        self.write("readme-small.json", run([row("a"), row("c")], date="2026-02-02", devices={"cuda": {"name": "Small", "detail": "sm_90"}}))
        said = io.StringIO()
        with redirect_stdout(said):
            self.assertEqual(performance.main(["--summary"], self.root), 0)
            self.assertEqual(performance.main([], self.root), 0)
        large, small = said.getvalue().split("Small")
        self.assertIn("1 of 2 targets met; ", large)
        self.assertIn("(too few registers)", large)
        self.assertIn("a: 0.900 of the 0.99 that a prototype showed", large)
        self.assertIn("0 of 2 targets met (1 not measured)", small)
        self.assertNotIn("registers", small)
        self.assertNotIn("of the 0.99", small)
        # The README shows the machine that most targets were measured on, though the other is the newer one.
        self.assertIn("- Other machines: [Small]", (self.root / "README.md").read_text())

    def test_releases_are_points_over_time(self):
        self.made({}, run([row("transpose/1"), row("reduce/1", 4.0)]))
        with redirect_stdout(io.StringIO()):
            self.assertEqual(performance.main(["--release", "0.1.0"], self.root), 0)
        figures = performance.figures
        self.assertIn("Not measured since that release.", figures.table(self.root, "en", performance))
        self.write("readme-gpu.json", run([row("transpose/1", 0.8, fraction=0.95), row("reduce/1", 2.0), row("scan/1")], commit="bbb", date="2026-02-02"))
        pictures = self.root / "pictures"
        pictures.mkdir()
        text = figures.table(self.root, "en", performance, pictures)
        self.assertIn("| 0.1.0 | 2026-01-01 | `aaa` | 2 |", text)
        self.assertIn("| tree | 2026-02-02 | `bbb` | 3 | 0.90 |  |  |  | 0.65 |", text)  # the median of 0.8 and 0.5
        self.assertIn("| transpose | 0.90 | 0.95 |", text)
        self.assertIn("| scan |  | 0.90 |", text)
        drawn = (pictures / "over_time_readme-gpu.svg").read_text()
        self.assertEqual(xml.dom.minidom.parseString(drawn).documentElement.tagName, "svg")
        self.assertEqual(drawn.count("<circle"), 5)
        performance.main(["--release", "0.2.0"], self.root)
        self.assertIn("| 0.2.0 | 2026-02-02 | `bbb` |", figures.table(self.root, "zh", performance))
        with self.assertRaises(SystemExit):
            performance.main(["--release", "next"], self.root)

    def test_added_cases_keep_their_commit_and_day(self):
        self.made({}, run([row("a"), row("a", 2, source="CUB"), row("b")]))
        self.write("newer.json", run([row("a", 0.5), row("c")], commit="bbb", date="2026-02-02"))
        results = self.root / "tests/results"
        self.assertEqual(performance.main(["--add", results / "newer.json", results / "readme-gpu.json"], self.root), 0)
        both = json.loads((results / "readme-gpu.json").read_text())
        self.assertEqual([(r["name"], r["source"], r.get("run", {}).get("commit")) for r in both["benchmarks"]],
                         [("a", "lockstep", "bbb"), ("b", "lockstep", None), ("c", "lockstep", "bbb")])
        self.assertEqual(performance.main([], self.root), 0)
        self.assertIn("Commit aaa, 2026-01-01; 2 cases of a later run at commit bbb, 2026-02-02; hot;", (results / "README.md").read_text())
        self.write("newer.json", run([row("a")], devices={"cuda": {"name": "another GPU", "detail": ""}}))
        with self.assertRaises(SystemExit):
            performance.main(["--add", results / "newer.json", results / "readme-gpu.json"], self.root)

    def test_check_fails_when_the_readme_is_another(self):
        self.made({"a": 0.8}, run([row("a")]))
        self.write("readme-gpu.json", run([row("a", 2)]))
        with redirect_stdout(io.StringIO()):
            self.assertEqual(performance.main(["--check"], self.root), 1)


unittest.main(verbosity=1)
