#!/usr/bin/env python3
"""released_test.py - released.py lets an ABI grow and lets nothing else pass."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from released import broken

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


if __name__ == "__main__":
    unittest.main()
