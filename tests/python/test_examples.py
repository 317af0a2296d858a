"""Every program of tools/examples/python ends well, and the documentation shows each of them."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = sorted((ROOT / "tools/examples/python").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path):
    done = subprocess.run([sys.executable, "-W", "error", str(path)], capture_output=True, text=True, timeout=300, env=dict(os.environ))
    if done.returncode == 77:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_there_are_examples_and_each_is_shown():
    page = (ROOT / "tools/docs/en/python.md").read_text()
    assert len(EXAMPLES) >= 10
    for path in EXAMPLES:
        assert f"examples/python/{path.name}" in page
