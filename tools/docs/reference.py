"""reference.py - the pages of the API reference, made from the doc blocks of lockstep.h, group.h, backend_peer.h and ranks.h.

A section of the header ("/* ---- plans ---- */") becomes a page; each doc block goes with the declarations that follow
it; its slots ("Shapes", "Aliasing" ...) become a list of terms."""
import ast
import re
import textwrap

SECTION = re.compile(r"^/\* -+ (.+?) -+ \*/$", re.M)
BLOCK = re.compile(r"/\*(.*?)\*/", re.S)
SLOT = re.compile(r"^([A-Z][a-z]+) +(\S.*)$")
SLOTS = {"Computes", "Shapes", "Order", "How", "Types", "Results", "Exactness", "Memory", "Aliasing", "Asynchrony", "Empty", "Errors",
         "Threads", "Operand", "Everything", "Lifetime", "Moves", "Status", "Fills", "Stream", "Workspace"}


def sections(header):
    """(title, text) of each section."""
    found = list(SECTION.finditer(header))
    ends = [match.start() for match in found[1:]] + [len(header)]
    return [(match.group(1), header[match.end():end]) for match, end in zip(found, ends)]


def lines_of(comment):
    return [re.sub(r"^ \* ?", "", line).rstrip() for line in comment.strip().split("\n")]


def prose(comment):
    """A doc block as Markdown: its slots as terms, the rest as paragraphs."""
    out, term = [], None
    for line in lines_of(comment):
        slot = SLOT.match(line)
        if slot and slot.group(1) in SLOTS:
            term = slot.group(1)
            out += ["", f"{term}", f":   {escaped(slot.group(2))}"]
        elif term and line.startswith(" " * 8):
            out.append(f"    {escaped(line.strip())}")
        else:
            if term:
                out.append("")
            term = None
            out.append(escaped(line.strip()))
    return "\n".join(out).strip()


def escaped(text):
    return re.sub(r"([*_<>\[\]|`])", r"\\\1", text)


def declarations(code):
    """Code as a reader of the reference wants it: prototypes without macros, wrapped anew."""
    code = re.sub(r"LOCKSTEP_(NODISCARD|API|INT) ", "", code)
    prototype = re.compile(r"^(?!typedef)\w[^{}/;]+?\);", re.S | re.M)
    return prototype.sub(lambda found: wrapped(" ".join(found.group(0).split())), code).strip()


def wrapped(prototype, width=88):
    if len(prototype) <= width:
        return prototype
    head, arguments = prototype.split("(", 1)
    return textwrap.fill(f"{head}({arguments}", width, subsequent_indent=" " * 4, break_long_words=False)


def symbols(code):
    """What a piece of a header defines: functions, types, enumerators and macros."""
    code = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
    found = re.findall(r"\b(lockstep_\w+)\(", code) + re.findall(r"^\} (lockstep_\w+);|^typedef struct \w+ (lockstep_\w+);", code, re.M)
    found = [a if isinstance(a, str) else a[0] or a[1] for a in found]
    for body in re.findall(r"\benum[^{;]*\{(.*?)\}", code, re.S):
        found += re.findall(r"^\s*(LOCKSTEP_\w+)", body, re.M)
    found += [name for name in re.findall(r"^#define (LOCKSTEP_\w+|lockstep_\w+)", code, re.M) if not re.search(r"_H$|_(API|INT|NODISCARD)$", name)]
    return list(dict.fromkeys(found))


def indexed(code):
    """Entries of the index of symbols for a piece of a header."""
    found = symbols(code)
    return ["```{index} " + ", ".join(found), "```", ""] if found else []


def page(title, text):
    """The page of a section: doc blocks at the start of a line, each with the declarations up to the next."""
    out = [f"# {title}", ""]
    text = re.sub(r"^(#ifdef __cplusplus.*|\}\n#endif.*)", "", text, flags=re.S | re.M)
    blocks = [b for b in BLOCK.finditer(text) if b.start() == 0 or text[b.start() - 1] == "\n"]
    head = text[:blocks[0].start()] if blocks else text
    if head.strip():
        out += [*indexed(head), "```c", head.strip(), "```", ""]
    for index, block in enumerate(blocks):
        end = blocks[index + 1].start() if index + 1 < len(blocks) else len(text)
        code = declarations(text[block.end():end])
        names = re.findall(r"^\w[\w* ]*?\b(lockstep_\w+)\(|^\} (lockstep_\w+);", code, re.M)
        if names:
            out += ["## " + ", ".join(f"`{a or b}`" for a, b in names), ""]
        out += [prose(block.group(1)), ""]
        if code:
            out += [*indexed(code), "```c", code, "```", ""]
    return "\n".join(out)


def pages(header, prefix=""):
    """The header's introduction and {file name: Markdown} in the order of its sections."""
    intro = BLOCK.search(header).group(1)
    made = {}
    for title, text in sections(header):
        title = f"{prefix}{title.strip()}"
        made[re.sub(r"\W+", "-", title) + ".md"] = page(title, text)
    return prose(intro), made


def all_pages(include):
    """The same for lockstep.h, group.h, backend_peer.h and ranks.h of a folder; the introduction is lockstep.h's, that of ranks.h a page."""
    intro, made = pages((include / "lockstep.h").read_text())
    ranks_intro, of_ranks = pages((include / "ranks.h").read_text(), "ranks: ")
    for name in ("group.h", "backend_peer.h"):
        made.update(pages((include / name).read_text())[1])
    return intro, {**made, "ranks-conventions.md": f"# ranks: conventions\n\n{ranks_intro}\n", **of_ranks}


# ---- Python ------------------------------------------------------------------
UNDERLINED = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.M)
MACRO = re.compile(r"^#define (DOC_\w+)(?:\(([^)]*)\))? +(.*)$", re.M)
PIECE = re.compile(r'R"doc\((.*?)\)doc"|("(?:[^"\\]|\\.)*")|(\w+)|([(),])', re.S)
ARRAY = re.compile(r"^constexpr const char\* \w+\[\] = \{\n(.*?)\n\};$", re.M | re.S)


def docstrings(header):
    """The docstrings of the operations, whose pieces are texts and macros, as the compiler puts them together."""
    header = re.sub(r"^//.*\n", "", header, flags=re.M).replace("\\\n", " ")
    macros = {name: (parameters.split(", ") if parameters else [], body) for name, parameters, body in MACRO.findall(header)}

    def expand(pieces, given):  # up to the comma or bracket that ends them
        text = ""
        while pieces and pieces[0][3] not in (",", ")"):
            raw, quoted, name, _ = pieces.pop(0)
            if not name:
                text += raw or ast.literal_eval(quoted)
            elif name in given:
                text += given[name]
            else:
                parameters, body = macros[name]
                values = []
                while len(values) < len(parameters):
                    pieces.pop(0)  # the bracket, a comma
                    values.append(expand(pieces, given))
                if parameters:
                    pieces.pop(0)
                text += expand(PIECE.findall(body), dict(zip(parameters, values)))
        return text

    for body in ARRAY.findall(header):
        pieces = PIECE.findall(body)
        while pieces:
            yield expand(pieces, {})
            pieces = pieces[1:]  # without the comma


def numpydoc(text):
    """A docstring in NumPy's style as Markdown: its sections in bold, their entries as terms, examples as sessions."""
    parts = UNDERLINED.split(textwrap.dedent(text).strip() + "\n")
    out = [parts[0].strip()]
    for title, body in zip(parts[1::2], parts[2::2]):
        body = body.strip("\n")
        if title == "Examples":
            out.append(f"**{title}**\n\n```pycon\n{body}\n```")
        elif title == "Notes":
            out.append(f"**{title}**\n\n{body}")
        else:
            entries = re.split(r"\n(?=\S)", body)
            terms = []
            for entry in entries:
                term, _, rest = entry.partition("\n")
                rest = textwrap.dedent(rest).strip().replace("\n", "\n  ")
                terms.append(f"`{term}`\n: {rest or '-'}")
            out.append(f"**{title}**\n\n" + "\n\n".join(terms))
    return "\n\n".join(out)


def signature_of(function):
    return f"{function.name}({ast.unparse(function.args).removeprefix('self').removeprefix(', ')})"


def fields_of(node):
    """The fields of a named tuple or dataclass, each with the text below it."""
    terms, body = [], node.body
    for at, item in enumerate(body):
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and not item.target.id.startswith("_"):
            below = body[at + 1] if at + 1 < len(body) else None
            told = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else ""
            terms.append(f"`{item.target.id}: {ast.unparse(item.annotation)}`\n: {told or '-'}")
    return "\n\n".join(["**Fields**", *terms]) if terms else ""


def documented(source, names=None):
    """(heading, Markdown) of each function and class of a Python file with a docstring, or of those named, and of the classes' methods."""
    for node in ast.parse(source).body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or node.name.startswith("_") or not ast.get_docstring(node) or \
                names is not None and node.name not in names:
            continue
        if isinstance(node, ast.FunctionDef):
            yield signature_of(node), numpydoc(ast.get_docstring(node))
            continue
        methods = [n for n in node.body if isinstance(n, ast.FunctionDef)]
        made = next((n for n in methods if n.name == "__init__"), None)
        heading = signature_of(made).replace("__init__", node.name, 1) if made else node.name
        parts = [numpydoc(ast.get_docstring(node)), fields_of(node)]
        parts += [f"#### `{node.name}.{signature_of(n)}`\n\n{numpydoc(ast.get_docstring(n))}" for n in methods
                  if not n.name.startswith("_") and ast.get_docstring(n)]
        yield heading, "\n\n".join(filter(None, parts))


TEXT = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'  # a string of C++ in one piece or several


def text_of(literal):
    return "".join(ast.literal_eval(piece) for piece in re.findall(r'"(?:[^"\\]|\\.)*"', literal))


def extension_type(source):
    """The docstring of a type of the extension module with its methods and attributes, from its C++."""
    about = text_of(re.search(r"Py_tp_doc,\s*const_cast<char\*>\(" + TEXT, source).group(1))
    methods = [text_of(found).partition("\n--\n\n") for found in re.findall(r"METH_VARARGS \| METH_KEYWORDS,\s*" + TEXT, source)]
    terms = [f"`{name}`\n: {text_of(told)}" for name, told in re.findall(r'\{"(\w+)", get_\w+, nullptr,\s*' + TEXT, source)]
    methods = [f"`{head.replace('$self, ', '')}`\n: {' '.join(told.split())}" for head, _, told in methods if told]
    return "\n\n".join([about, "**Methods and attributes**", *methods, *terms])


def public(path):
    """The names in __all__ of a Python file."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return [e.value for e in node.value.elts if isinstance(e, ast.Constant)]
    return []


def python_page(folder, title):
    """The reference of the package in a folder of its sources, as one page."""
    header = "".join((folder.parent / name).read_text() for name in ("docs.hpp", "docs_rows.hpp", "docs_sums.hpp", "docs_functions.hpp"))
    operations = []
    for text in docstrings(header):
        signature, _, told = text.partition("\n--\n\n")
        operations.append((signature.partition(", out=None")[0] + ", ...)", told))
    named = re.findall(r'^(\w+) = _Maker\(', (folder / "plan.py").read_text(), re.M)
    found, unplanned = [heading.partition("(")[0] for heading, _ in operations], {"mean", "var", "std", "matrix_transpose", "vdot"}  # (mean_var, transpose and dot plan them)
    if [name for name in found if name not in unplanned] != named or not unplanned < set(found):
        raise SystemExit(f"reference: the operations read in docs.hpp and its sisters are not those of plan.py, {named}")
    package = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())).partition(">>>")[0]
    out = [f"# {title}", package, "## Operations"]
    for heading, text in operations:
        out += [f"### `{heading}`", numpydoc(text)]
    out.append("Names of the Array API for the same functions: `permute_dims` is `permute`, `vector_norm` is `norm`.")

    def section(title, names, prefix, *files):
        out.append(f"## {title}")
        for name in files:
            for heading, text in documented((folder / f"{name}.py").read_text(), names):
                out.extend([f"### `{prefix}{heading}`", text])

    everything = public(folder / "__init__.py")
    section("Stencils by name, and filters", everything, "", "_stencils", "_filters")
    section("Means without NaNs", everything, "", "_where")
    section("Digests", everything, "", "_digest")
    section("NumPy's own functions", everything, "", "_accelerate")
    section("The array API: lockstep.array_api", public(folder / "array_api.py"), "array_api.", "array_api")
    section("Contexts and scopes", everything, "", "_contexts")
    # Functions of each element are made by one function from their names.
    def each_element(module: str, file: str, what: str) -> None:
        for name in re.findall(r'"(\w+)"', " ".join(re.findall(r"_public\(n\) for n in \(([^)]*)\)", (folder / file).read_text()))):
            out.extend([f"### `{module}.{name}(x, *, dtype=None, times=None)`", f"`lockstep.{name}` of each element, {what}; times, the factors, has one too."])

    section("What ran and what there is", everything, "", "_info")
    section("Exceptions", everything, "", "_errors")
    plans = ast.get_docstring(ast.parse((folder / "plan.py").read_text()))
    out += ["## Plans", "The functions of `lockstep.plan`: " + ", ".join(f"`{name}`" for name in named) + ".",
            plans.replace("\n>>>", "\n```pycon\n>>>", 1) + "\n```"]
    group = (folder / "group.py").read_text()
    groups = ast.get_docstring(ast.parse(group))
    of_each = re.findall(r'^(\w+) = _(?:of|by_one)\("\1"\)', group, re.M)
    out += ["## Many arrays: lockstep.group", "The functions of `lockstep.group`: " + ", ".join(f"`{name}`" for name in of_each) + ".",
            groups.replace("\n>>>", "\n```pycon\n>>>", 1) + "\n```"]
    section("Plans and norms of many arrays", ["plan", "norms"], "group.", "group")
    out.append("## Types")
    for name, file in (("Plan", "plan"), ("GroupPlan", "group_plan"), ("Buffer", "buffer")):
        out += [f"### `{name}`", extension_type((folder.parent / f"{file}.cpp").read_text())]
    section("PyTorch: lockstep.torch", public(folder / "torch.py"), "torch.", "torch", "_torch_rows", "_torch_softmax", "_torch_sums", "_torch_stencils", "_torch_clip",
            "_deterministic")
    each_element("torch", "_torch_functions.py", "with a gradient that is computed in double")
    section("JAX: lockstep.jax", public(folder / "jax.py"), "jax.", "jax", "_jax_rows", "_jax_functions")
    each_element("jax", "_jax_functions.py", "with a gradient")
    section("Many ranks: lockstep.ranks", public(folder / "ranks.py"), "ranks.", "ranks", "_ranks_plan")
    section("Many ranks of PyTorch: lockstep.distributed", public(folder / "distributed.py"), "distributed.", "distributed", "_distributed_work")
    return "\n\n".join(out) + "\n"
