"""Every program of tools/examples/python ends well, and the documentation shows each of them."""
import os
import pathlib
import re
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


@pytest.mark.parametrize("language", ["en", "zh"])
def test_there_are_examples_and_each_is_shown(language):
    page = (ROOT / f"tools/docs/{language}/python.md").read_text()
    assert len(EXAMPLES) >= 12
    for path in EXAMPLES:
        assert f"examples/python/{path.name}" in page


def test_the_quick_start_of_the_readme():
    text = (ROOT / "README.md").read_text()
    block, = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(block.splitlines()) <= 5
    done = subprocess.run([sys.executable, "-W", "error", "-c", block], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr


def test_the_readme_stays_short():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 250 and len(text.split()) <= 3000
