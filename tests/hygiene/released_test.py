#!/usr/bin/env python3
"""released_test.py - released.py lets an ABI grow and lets nothing else pass."""
import contextlib
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from released import broken, main

OLD = """\
struct lockstep_options: 16 bytes
  lockstep_options.size at 0, 8
  lockstep_options.flags at 8, 4
struct lockstep_allocator: 8 bytes
  lockstep_allocator.user at 0, 8
struct lockstep_call: 24 bytes
  lockstep_call.op at 0, 4
LOCKSTEP_SHUFFLE = 5
LOCKSTEP_OP_COUNT = 6
LOCKSTEP_ABI_VERSION = 0
LOCKSTEP_BACKEND_ABI = 2
lockstep_options_defaults gives 16 bytes
lockstep_status lockstep_run(const lockstep_options* options)
symbol lockstep_run@@LOCKSTEP_0""".splitlines()


def after(*pairs):
    text = "\n".join(OLD)
    for a, b in pairs:
        assert a in text, a
        text = text.replace(a, b)
    return broken(OLD, text.splitlines(), {"lockstep_call"})


class Released(unittest.TestCase):
    def test_what_may_change(self):
        self.assertEqual(after(), [])
        for pairs in ([("options: 16", "options: 24"), ("flags at 8, 4", "flags at 8, 4\n  lockstep_options.more at 16, 8")],
                      [("COUNT = 6", "COUNT = 7\nLOCKSTEP_SCAN = 6")], [("symbol", "symbol lockstep_more@@LOCKSTEP_0\nsymbol")],
                      [("ABI = 2", "ABI = 3"), ("call: 24", "call: 32"), ("op at 0", "op at 8")],
                      [("VERSION = 0", "VERSION = 1"), ("user at 0", "user at 8")]):
            self.assertEqual(after(*pairs), [], pairs)

    def test_what_may_not(self):
        for pairs in ([("flags at 8, 4", "flags at 12, 4")], [("flags at 8, 4", "flags at 8, 8")], [("  lockstep_options.flags at 8, 4\n", "")],
                      [("options: 16", "options: 12")], [("allocator: 8", "allocator: 16")], [("SHUFFLE = 5", "SHUFFLE = 6")],
                      [("COUNT = 6", "COUNT = 5")], [("call: 24", "call: 32")], [("call.op at 0", "call.op at 4")],
                      [("gives 16", "gives 24")], [("const lockstep_options*", "lockstep_options*")], [("@@LOCKSTEP_0", "@@LOCKSTEP_1")],
                      [("symbol lockstep_run@@LOCKSTEP_0", "")], [("ABI = 2", "ABI = 3"), ("flags at 8", "flags at 12")]):
            self.assertEqual(len(after(*pairs)), 1, pairs)

    @unittest.skipUnless(shutil.which("gcc") and shutil.which("nm"), "no gcc")
    def test_a_library_that_lost_a_function(self):
        """Against every release with a library of its names, without one of them, and with all but under no version."""
        newest = max((HERE / "released").glob("*.txt"), key=lambda p: [int(n) for n in p.stem.split(".")])
        names = re.findall(r"^symbol (\w+)@@(\w+)$", newest.read_text(), re.M)
        include = HERE.parent.parent / "lib/include/lockstep"
        for kept, node, wanted in ((names, names[0][1], 0), (names[1:], names[0][1], 1), (names, "ANOTHER_0", 1)):
            with tempfile.TemporaryDirectory() as folder:
                library = pathlib.Path(folder) / "library.so"
                (library.with_suffix(".c")).write_text("".join(f"void {name}(void) {{}}\n" for name, _ in kept))
                (library.with_suffix(".map")).write_text(f"{node} {{ global: lockstep_*; local: *; }};\n")
                subprocess.run(["gcc", "-shared", "-fPIC", f"-Wl,--version-script={library.with_suffix('.map')}", "-o", library, library.with_suffix(".c")], check=True)
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    self.assertEqual(main(HERE / "released", HERE / "layout.txt", include, library), wanted)
                if kept is not names:
                    self.assertIn(f"has not: symbol {names[0][0]}@@", said.getvalue())


if __name__ == "__main__":
    unittest.main()
