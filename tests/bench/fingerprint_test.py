#!/usr/bin/env python3
"""fingerprint_test.py TOOLS [LOCKSTEP] - a fingerprint changes with kernels and with the numbers that they read, and with nothing else; the
program's are the script's."""
import json
import pathlib
import subprocess
import sys
import unittest

tools = sys.argv.pop(1)
program = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
sys.path.insert(0, tools)
sys.dont_write_bytecode = True
import fingerprint  # noqa: E402

texts = fingerprint.Tree.here().texts
before = fingerprint.everything(fingerprint.Tree(texts))


def changed(name, old, new, renamed=None):
    """The (backend, row, operation) whose fingerprints another text of one file changes."""
    assert old in texts[name], f"{name} no longer has {old!r}: mend this test"
    other = {**texts, name: texts[name].replace(old, new)}
    if renamed:
        other[renamed] = other.pop(name)
    after = fingerprint.everything(fingerprint.Tree(other))
    return {a[:3] for a, b in zip(after, before) if a != b}


def backends(of):
    return {backend for backend, _, _ in of}


class Fingerprints(unittest.TestCase):
    def test_comments_spaces_and_texts_change_nothing(self):
        for name in ("backends/cpu/tuning.hpp", "backends/cuda/tuning.cpp", "backends/cpu/isa/float_sums.cpp", "backends/cuda/reduce/reduce.cu", "lib/bits/order.hpp"):
            first = texts[name].split("\n")[0]
            self.assertTrue(first.startswith("//"))
            self.assertEqual(changed(name, first, first + " Another word.\n/* and \"more\" */\n\n"), set())
        self.assertEqual(changed("backends/cpu/tiles.hpp", "whole lines from a block in L2", "other words"), set())
        self.assertEqual(fingerprint.tokens_of('f("a b");'), fingerprint.tokens_of('f( "c" ) ; // d'))

    def test_instructions_of_asm_are_no_texts(self):
        self.assertNotEqual(fingerprint.tokens_of('asm volatile("fma.rn %0" : "=f"(x));'), fingerprint.tokens_of('asm volatile("add.rn %0" : "=f"(x));'))

    def test_a_kernel_changes_the_operations_made_of_it(self):
        found = changed("backends/cpu/isa/stencil.cpp", "namespace", "inline namespace")
        self.assertEqual(found, {("cpu", row, "stencil") for row in fingerprint.ROWS["cpu"]})
        self.assertIn(("cpu", "default", "reduce"), changed("backends/cpu/isa/exact_sums.cpp", "namespace", "inline namespace"))
        found = changed("backends/cpu/isa/sums.cpp", "namespace", "inline namespace")
        self.assertIn(("cpu", "default", "sums"), found)
        self.assertNotIn(("cpu", "default", "reduce"), found)
        self.assertIn(("cpu", "default", "transpose"), changed("backends/cpu/staged_lines.cpp", "namespace", "inline namespace"))
        found = changed("backends/cuda/shuffle/shuffle.cu", "namespace", "inline namespace")
        self.assertEqual(found, {("cuda", row, "shuffle") for row in fingerprint.ROWS["cuda"]})
        self.assertEqual(backends(changed("lib/bits/order.hpp", "namespace", "inline namespace")), {"cpu", "cuda"})

    def test_a_group_is_of_its_own_operation(self):
        found = changed("backends/cuda/group/normalize.cu", "namespace", "inline namespace")
        self.assertEqual(found, {("cuda", row, "group/normalize") for row in fingerprint.ROWS["cuda"]})
        found = changed("backends/cuda/group/table.cu", "namespace", "inline namespace")
        self.assertEqual(found, {("cuda", row, f"group/{op}") for row in fingerprint.ROWS["cuda"] for op in fingerprint.GROUPED})
        found = changed("backends/cpu/isa/normalize.cpp", "namespace", "inline namespace")
        self.assertIn(("cpu", "default", "group/normalize"), found)
        self.assertNotIn(("cpu", "default", "group/square_sum"), found)

    def test_a_number_of_the_tuning_changes_what_reads_it(self):
        found = changed("backends/cuda/tuning.hpp", "shuffle_threads = 128", "shuffle_threads = 256")
        self.assertEqual(found, {("cuda", row, "shuffle") for row in fingerprint.ROWS["cuda"]})
        found = changed("backends/cpu/tuning.hpp", "task_elements = 1 << 16", "task_elements = 1 << 17")
        self.assertIn(("cpu", "zen4", "stencil"), found)
        self.assertNotIn(("cpu", "zen4", "reduce"), found)
        # By a function of the tuning: cached_bytes gives cached_4.
        self.assertIn(("cpu", "default", "reduce"), changed("backends/cpu/tuning.hpp", "cached_4 = 0", "cached_4 = 1"))
        self.assertIn(("cuda", "hopper", "transpose"), changed("backends/cuda/tuning.hpp", "{512, 128, 256, false, 1.025, 0.97}", "{512, 128, 256, false, 1.03, 0.97}"))
        self.assertIn(("cpu", "default", "stencil"), changed("backends/cpu/tuning.hpp", "plane_u = 2", "plane_u = 3"))

    def test_a_number_of_another_chip_changes_nothing(self):
        found = changed("backends/cpu/tuning.cpp", "two_streams_of_2_bytes = false", "two_streams_of_2_bytes = true")
        self.assertIn(("cpu", "zen4", "reduce"), found)
        self.assertEqual({row for _, row, _ in found}, {"zen4"})
        found = changed("backends/cpu/tuning.hpp", ".extreme_step = 128", ".extreme_step = 64")
        self.assertEqual({row for _, row, _ in found}, {"zen4"})
        found = changed("backends/cuda/tuning.cpp", "copy_engine = true", "copy_engine = false")
        self.assertIn(("cuda", "hopper", "reduce"), found)
        self.assertEqual({row for _, row, _ in found}, {"hopper"})
        self.assertEqual({row for _, row, _ in changed("backends/cuda/tuning.cpp", "keeps_reads = true", "keeps_reads = false")}, {"ampere", "hopper"})

    def test_the_way_of_a_call_and_names_of_files_change_nothing(self):
        self.assertEqual(changed("backends/cpu/backend.cpp", "namespace", "inline namespace"), set())
        self.assertEqual(changed("backends/cpu/isa/stencil.cpp", "namespace", "namespace", "backends/cpu/isa/other_name.cpp"), set())

    def test_every_source_belongs_to_an_operation(self):
        tree = fingerprint.Tree(texts)
        covered = {name for backend in ("cpu", "cuda") for op in fingerprint.OPS for name in tree.files(backend, op)}
        self.assertEqual([n for n in texts if n.endswith((".cu", ".cpp")) and n not in covered and not fingerprint.OUTSIDE.match(n)], [],
                         "no operation's fingerprint has these files: see DECLARES and OUTSIDE in tools/fingerprint.py")
        self.assertEqual([(b, o) for b, _, o, found in before if not found], [])

    def test_rows_of_chips_are_those_of_the_tuning(self):
        for backend in ("cpu", "cuda"):
            source = texts[f"backends/{backend}/tuning.cpp"]
            self.assertEqual({f"tuning {row}(" in source for row in fingerprint.ROWS[backend] if row != "default"}, {True})
            self.assertEqual(source.count("\ntuning ") - source.count("\ntuning tuning_for("), len(fingerprint.ROWS[backend]) - 1)
        self.assertEqual([fingerprint.row_of("cuda", f"sm_{sm}, driver 580") for sm in (75, 86, 90, 120)], ["default", "ampere", "hopper", "hopper"])
        self.assertEqual(fingerprint.row_of("cpu", "avx512 tuned for zen4, 2 threads"), "zen4")
        self.assertEqual(fingerprint.row_of("cpu", "avx512, 2 threads"), "default")

    @unittest.skipIf(program is None, "no program given")
    def test_bench_writes_them(self):
        done = subprocess.run([program, "bench", "--backend", "cpu", "--case", "shuffle/b4/xor/w32/op1/n16384", "--case", "group/2/square_sum/norm2/f32/full/4096",
                               "--json", "-", "--seconds", "0.01"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        run = json.loads(done.stdout)
        tree, ours = fingerprint.Tree(texts), [r for r in run["benchmarks"] if r["source"] == "lockstep"]
        chip = fingerprint.row_of("cpu", run["meta"]["devices"]["cpu"]["detail"])
        self.assertEqual([r["fingerprint"] for r in ours], [tree.fingerprint("cpu", chip, op) for op in ("shuffle", "group/square_sum")])
        self.assertEqual(len(ours), 2)


if __name__ == "__main__":
    unittest.main()
