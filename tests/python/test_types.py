"""The package's types, strictly, and its stubs against what is there."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

import lockstep as ls

pytest.importorskip("mypy")
if tuple(int(part) for part in metadata.version("mypy").split(".")[:2]) < (1, 18) or int(np.__version__.split(".")[0]) < 2:
    pytest.skip("a mypy or a NumPy from before the types that are named here", allow_module_level=True)


def test_mypy_is_content(tmp_path):
    use = tmp_path / "use.py"
    use.write_text("import numpy as np\nimport lockstep as ls\n"
                   "x: np.ndarray[tuple[int, int], np.dtype[np.float32]] = ls.transpose(np.ones((2, 3), np.float32))\n"
                   "with ls.backend('cpu'), ls.record() as runs:\n    ls.sum(x, axis=(0, 1), dtype='float64')\n"
                   "name: str = runs[0].variant\nbad: int = ls.last_run().backend  # type: ignore[assignment]\n")
    # As where PyTorch is not installed: its own types differ from release to release.
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nstrict = True\nignore_missing_imports = True\ndisallow_subclassing_any = False\n[mypy-torch.*]\nfollow_imports = skip\n")
    for target in (pathlib.Path(ls.__file__).parent, use):
        done = subprocess.run([sys.executable, "-m", "mypy", f"--config-file={settings}", f"--cache-dir={tmp_path}/cache", str(target)],
                              capture_output=True, text=True, env={"MYPYPATH": str(pathlib.Path(ls.__file__).parent.parent)})
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(importlib.util.find_spec("basedpyright") is None, reason="no basedpyright")
def test_basedpyright_is_content(tmp_path):
    folder = pathlib.Path(ls.__file__).parent
    # The package's files import one another by design, and the tree's root is not the checker's.
    settings = {"include": [str(folder)], "extraPaths": [str(folder.parent)], "pythonVersion": "3.12", "reportImportCycles": False,
                "reportMissingImports": all(importlib.util.find_spec(name) for name in ("torch", "jax", "mpi4py")), "ignore": [*([] if importlib.util.find_spec("torch") else ["**/*torch*", "**/_deterministic*.py"]), *([] if importlib.util.find_spec("jax") else ["**/jax.py"])]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run([sys.executable, "-m", "basedpyright", "--level", "error", "--pythonpath", sys.executable, "-p", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0 and "0 errors" in done.stdout, done.stdout + done.stderr


def test_stubs_say_what_is_there(tmp_path):
    done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "--ignore-disjoint-bases", "lockstep._core", "lockstep._verify"], capture_output=True, text=True,
                          cwd=tmp_path, env={"MYPYPATH": str(pathlib.Path(ls.__file__).parent.parent),
                                             "PYTHONPATH": str(pathlib.Path(ls.__file__).parent.parent)})
    assert done.returncode == 0, done.stdout + done.stderr


def test_methods_of_contexts_are_known(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import lockstep as ls\nc = ls.Context()\nc.sum([1.0], axis=0)\nc.stencil([1.0], [1.0, 2.0, 1.0], mode='sideways')\nc.summ(1)\nc.convert()\n")
    done = subprocess.run([sys.executable, "-m", "mypy", f"--cache-dir={tmp_path}/cache", str(wrong)], capture_output=True, text=True, timeout=600, cwd=tmp_path,
                          env={**os.environ, "MYPYPATH": str(pathlib.Path(ls.__file__).parent.parent)})
    lines = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line and "wrong.py" in line}
    assert lines == {4, 5, 6}, done.stdout + done.stderr
