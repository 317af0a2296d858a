"""Every program of tools/examples/python ends well, and the documentation shows each of them; pictures and notebooks hold what
the programs compute."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import lockstep as ls

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


NEW_NUMPY = pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="a NumPy that shows its scalars otherwise")


def docs(name):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / f"tools/docs/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_gallery_is_drawn_anew_byte_for_byte():
    gallery = docs("gallery")
    names = []
    for name, picture in gallery.drawn():
        ET.fromstring(picture)
        assert (gallery.HERE / f"gallery/{name}.svg").read_text() == picture, f"{name}: draw it by tools/docs/gallery.py --write and look at it"
        names.append(name)
    assert len(names) >= 12
    for language in ("en", "zh"):
        shown = re.findall(r"\(pictures/gallery_(\w+)\.svg\)\n\n```{literalinclude} examples/python/(\w+)\.py", (ROOT / f"tools/docs/{language}/gallery.md").read_text())
        assert sorted(shown) == sorted((name, name) for name in names)


def test_the_reference_has_every_public_name():
    reference = docs("reference")
    folder = ROOT / "lib/python/lockstep"
    page = reference.python_page(folder, "Python")
    headings = set(re.findall(r"^###+ `([\w.]+)", page, re.M))
    listed = {m: set(re.findall(r"`(\w+)`", line)) for m, line in re.findall(r"^The functions of `lockstep\.(\w+)`: (.*)\.$", page, re.M)}
    aliases = set(re.findall(r"`(\w+)` is `\w+`", page))
    assert set(ls.__all__) - headings - aliases == {"group", "plan", "order", "norms"} and "group.norms" in headings and "## Plans" in page
    assert set(ls.plan.__all__) - listed["plan"] == {"Plan"} and "Plan" in headings
    assert set(ls.group.__all__) - listed["group"] - {h.removeprefix("group.") for h in headings if h.startswith("group.")} == {"GroupPlan"}
    for module in ("torch", "jax", "ranks", "distributed"):
        named = reference.public(folder / f"{module}.py")
        assert named and not [n for n in named if f"{module}.{n}" not in headings], module
    empty = [h for h, text in re.findall(r"^### `([^`]*)`\n\n(.*)", page, re.M) if not text.strip() or text.startswith("#")]
    assert not empty


@NEW_NUMPY
def test_notebooks_give_what_is_stored_in_them():
    notebook = docs("notebook")
    books = sorted(notebook.FOLDER.glob("*.ipynb"))
    assert len(books) >= 2
    for book in books:
        assert notebook.differing(book) == [], f"{book.name}: store what its cells give by tools/docs/notebook.py --write"
        assert json.loads(book.read_text())["nbformat"] == 4 and "```python" in notebook.markdown(book)


def test_a_notebook_of_other_results_is_found(tmp_path):
    notebook = docs("notebook")
    book = json.loads(sorted(notebook.FOLDER.glob("*.ipynb"))[0].read_text())
    book["cells"] = [{"cell_type": "code", "execution_count": None, "id": "a", "metadata": {}, "outputs": [], "source": ["x = 2\n", "print(x)\n", "x + 1"]}]
    (tmp_path / "a.ipynb").write_text(json.dumps(book))
    assert notebook.differing(tmp_path / "a.ipynb", write=True) == [1] and notebook.differing(tmp_path / "a.ipynb") == []
    assert "```text\n2\n```\n\n```text\n3\n```" in notebook.markdown(tmp_path / "a.ipynb")


def test_the_quick_start_of_the_readme():
    text = (ROOT / "README.md").read_text()
    block, = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(block.splitlines()) <= 5
    done = subprocess.run([sys.executable, "-W", "error", "-c", block], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr
