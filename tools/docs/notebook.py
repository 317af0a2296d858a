#!/usr/bin/env python3
"""notebook.py [--write] - runs the notebooks of tools/examples/notebooks, cell after cell, and says whose output is another
than the one that is stored in them; with --write it is stored. Needs the package lockstep and NumPy, and no Jupyter."""
import ast
import contextlib
import io
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "examples/notebooks"


def outputs(source, names):
    """What a cell gives in Jupyter: what it prints, and its last line's value."""
    tree, said, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(said):
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    made = []
    if said.getvalue():
        made.append({"name": "stdout", "output_type": "stream", "text": said.getvalue().splitlines(keepends=True)})
    if value is not None:
        made.append({"data": {"text/plain": repr(value).splitlines(keepends=True)}, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return made


def differing(path, write=False):
    """The numbers of the code cells whose output is not what they give."""
    book, names, wrong, count = json.loads(path.read_text()), {"__name__": "__main__"}, [], 0
    for cell in book["cells"]:
        if cell["cell_type"] != "code":
            continue
        count += 1
        made = outputs("".join(cell["source"]), names)
        for output in made:
            if "execution_count" in output:
                output["execution_count"] = count
        if (cell["outputs"], cell["execution_count"]) != (made, count):
            wrong.append(count)
            cell["outputs"], cell["execution_count"] = made, count
    if write and wrong:
        path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n")
    return wrong


def markdown(path):
    """A notebook as a page: text as it is, code and what it gave."""
    out = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        out.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", ()):
            given = "".join(output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"])
            out.append(f"```text\n{given.rstrip()}\n```")
    return "\n\n".join(out) + "\n"


def main(*options):
    books, failed = sorted(FOLDER.glob("*.ipynb")), False
    for path in books:
        wrong = differing(path, "--write" in options)
        failed |= bool(wrong)
        print(f"{path.name}: {len(wrong)} cells {'written' if '--write' in options else 'give something else'} {wrong or ''}")
    return 0 if "--write" in options else failed or not books


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
