"""The canonical form of the notebooks: python -m tools.notebook_form [--fix] [FILE ...]

Prints every fault as "file, cell: fault" and exits 1 if there is one. --fix first writes
what a program can write: order of keys, ids, metadata, alt texts, no widget state.
"""

import argparse
import ast
import re
import sys
from pathlib import Path
from symtable import symtable

import nbformat

from tools import chapters, prose
from utils.recorded import replace_file

TAGS = {"nbval-check-output", "solution", "hide-cell", "hide-input", "hide-output", "remove-cell", "answer"}
CHECKED = "nbval-check-output"
SETUP = "from utils.environment import begin\n\nhere = begin()"
LARGEST = 1_000_000  # bytes of a notebook
CODE_CELLS, LINES, COLUMNS = 40, 20, 78
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"}}
MIMES = ("text/plain", "text/html", "image/png")  # a widget's view needs a kernel
BOOK = ("minutes_reading", "minutes_exercises", "run")  # run: the id in recorded/ of the outputs
NO_CHAPTER = {"99"}  # pages of another kind: the template does not bind them
SECTIONS = ("| You will learn | You need |", "\n## Predict", "\n## Same answer?", "\n## When it does not help",
            "\n## What goes wrong", "\n## 2.5 and today", "\n## Claims", "\n## Key points", "\n## Quiz",
            "\n## Further reading", "<summary>Instructor note</summary>")


def teaching() -> list[Path]:
    """The chapters that the template binds."""
    return [path for path in chapters.find() if path.stem[:2] not in NO_CHAPTER]


# --- the part a program can write --------------------------------------------------


def canonical(notebook) -> str:
    """The notebook's text in the canonical form; the notebook stays as it is."""
    notebook = nbformat.from_dict(notebook)  # a copy
    book = {k: v for k, v in notebook.metadata.get("book", {}).items() if k in BOOK}
    notebook.metadata = nbformat.from_dict({**METADATA, **({"book": book} if book else {})})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell, name in zip(notebook.cells, _ids(notebook.cells)):
        cell.id, cell.source = name, cell.source.strip("\n")
        tags = sorted(set(cell.metadata.get("tags", [])))
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        cell.pop("attachments", None)
        if cell.cell_type == "code":
            cell.outputs = [_output(out) for out in _joined(cell.outputs)]
            if alts := _alts(cell.outputs):
                cell.metadata["mystnb"] = {"image": {"alt": alts[0]}}
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT).rstrip("\n") + "\n"


def _ids(cells):
    """The cells' ids; what is missing, random or there twice gets one after its heading."""
    taken, heading = {cell.get("id") for cell in cells if not _bad_id(cell.get("id", ""))}, "cell"
    used = set()
    for cell in cells:
        if cell.cell_type == "markdown" and (found := re.match(r"#+ (.*)", cell.source)):
            heading = re.sub(r"[^a-z0-9]+", "-", found[1].lower()).strip("-")[:40].strip("-") or "cell"
        name = cell.get("id", "")
        if _bad_id(name) or name in used:
            kind = "text" if cell.cell_type == "markdown" else "code"
            tries = (heading if n == 0 else f"{heading}-{kind}-{n}" for n in range(len(cells) + len(taken) + 1))
            name = next(t for t in tries if t not in taken | used and not _bad_id(t))
        used.add(name)
        yield name


def _bad_id(name: str) -> bool:
    """No words in small letters and hyphens, or one that a program made up."""
    return (not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) or len(name) > 64
            or bool(re.match(r"[0-9a-f]{8}(?![a-z0-9])", name)) or name.isdigit())


def _joined(outputs):
    """Neighbouring pieces of one stream as one output: how they were cut is chance."""
    joined = []
    for out in outputs:
        if joined and out.output_type == "stream" == joined[-1].output_type and out.name == joined[-1].name:
            joined[-1].text += out.text
        else:
            joined.append(out)
    return joined


def _output(out):
    if "data" in out:
        out.data = nbformat.from_dict({k: v for k, v in out.data.items() if k in MIMES})
        png = {k: v for k, v in out.metadata.get("image/png", {}).items() if k == "alt"}
        out.metadata = nbformat.from_dict({"image/png": png} if png else {})
    return out


def _alts(outputs):
    """The text of each figure; "" for one without."""
    return [out.metadata.get("image/png", {}).get("alt", "").strip()
            for out in outputs if "image/png" in out.get("data", {})]


# --- what is checked ------------------------------------------------------------------


def faults(path):
    """All faults of one notebook, as "cell: fault" texts ("notebook" for the whole).
    Raises chapters.Broken."""
    notebook = chapters.read(path)
    raw = path.read_bytes()
    if len(raw) > LARGEST:
        yield f"notebook: larger than {LARGEST // 1000} kB"
    yield from _form_faults(notebook)
    for cell in notebook.cells:
        find = _markdown_faults if cell.cell_type == "markdown" else _code_faults
        for fault in [*_mark_faults(cell), *find(cell)]:
            yield f"{cell.get('id', '(no id)')}: {fault}"
    yield from output_faults(notebook)
    if path.stem[:2] not in NO_CHAPTER:
        yield from _template_faults(notebook, path.stem[:2])
    if canonical(notebook).encode() != raw:
        yield "notebook: not in the canonical form; python -m tools.notebook_form --fix writes it"


def _form_faults(notebook):
    """What --fix mends, by name."""
    if (notebook.nbformat, notebook.nbformat_minor) != (4, 5):
        yield f"notebook: format {notebook.nbformat}.{notebook.nbformat_minor}; 4.5 is wanted"
    foreign = set(notebook.metadata) - {*METADATA, "book"}
    if foreign:
        yield f"notebook: metadata that does not belong there: {', '.join(sorted(foreign))}"
    fixed, seen = nbformat.reads(canonical(notebook), nbformat.NO_CONVERT), set()
    for cell, right in zip(notebook.cells, fixed.cells):
        name = cell.get("id", "(no id)")
        if name in seen:
            yield f"{name}: another cell has this id too"
        elif name != right.id:
            yield f"{name}: the id is not a name of small letters, digits and hyphens that says what the cell does"
        seen.add(name)
        for part in ("metadata", "outputs"):
            if cell.get(part) != right.get(part):
                yield f"{name}: its {part} are not in the canonical form"


def _mark_faults(cell):
    for tag in sorted(set(cell.metadata.get("tags", [])) - TAGS):
        yield f"unknown tag {tag!r}; there are {', '.join(sorted(TAGS))}"


def _markdown_faults(cell):
    yield from prose.sentence_faults(cell.source)


def _code_faults(cell):
    lines = cell.source.splitlines()
    if len(lines) > LINES:
        yield f"{len(lines)} lines of code; {LINES} at most"
    for line in lines:
        if len(line) > COLUMNS:
            yield f"a line of {len(line)} columns; {COLUMNS} at most: {line.strip()[:30]!r}"
    try:
        ast.parse(cell.source)
    except SyntaxError as error:
        yield f"not plain Python: {error.msg}"


def output_faults(notebook):
    """Outputs that must not be shown, as "cell: fault" texts."""
    code = [c for c in notebook.cells if c.cell_type == "code"]
    counts = [c.execution_count for c in code]
    if any(counts) and counts != list(range(1, len(code) + 1)):
        yield "notebook: the outputs are not one clean run (execution counts are not 1, 2, 3, ...)"
    for cell in code:
        if cell.outputs and not any(counts):
            yield f"{cell.id}: it has outputs but no execution count"
        for out in cell.outputs:
            if out.output_type == "error":
                yield f"{cell.id}: its output is an error"
            elif out.get("name") == "stderr":
                yield f"{cell.id}: it writes to stderr: {out.text.strip()[:60]!r}"
            for shown in _texts(out):
                if found := _PATH.search(shown):
                    yield f"{cell.id}: an absolute path in its output: {found[0][:40]!r}"
        alts = _alts(cell.outputs)
        if len(alts) > 1:
            yield f"{cell.id}: {len(alts)} figures; one a cell, as the site knows one alt text a cell"
        if not all(alts):
            yield f"{cell.id}: a figure without an alt text"


# Two parts at least: "/" alone is a division, "</div>" a tag.
_PATH = re.compile(r"(?<![\w.<:/~-])(?:/[\w.+@-]+){2,}|(?<!\w)[A-Za-z]:\\+\w+|\\\\\w+\\\w+")


_SCRUBBED = re.compile(r"(?:<|&lt;)(?:cache|site-packages|python|python-include|env|book|tmp|home|system)(?:>|&gt;)/\S*")


def _texts(out):
    """Texts of an output, without the pictures in them and the names that `scrub` gives folders."""
    shown = [out.get("text", ""), *(text for mime, text in out.get("data", {}).items() if mime.startswith("text/"))]
    return [_SCRUBBED.sub("", re.sub(r"base64,[\w+/=\s]+", "", text)) for text in shown]


# --- the template of a chapter ------------------------------------------------------------


def _template_faults(notebook, chapter):
    code = [c for c in notebook.cells if c.cell_type == "code"]
    text = "".join(f"\n{c.source}\n" for c in notebook.cells if c.cell_type == "markdown")
    if not code or code[0].id != "setup" or code[0].source != SETUP:
        yield "notebook: the first code cell is not the setup cell of all chapters"
    if not text.startswith("\n# "):
        yield "notebook: it does not begin with a title"
    for wanted in SECTIONS:
        if wanted not in text:
            yield f"notebook: nothing says {wanted.strip()!r}"
    if (quiz := _section(text, "Quiz").count("<summary>Answer</summary>")) != 3:
        yield f"notebook: {quiz} folded quiz answers; three are wanted"
    if not 3 <= (points := len(re.findall(r"^- ", _section(text, "Key points"), re.M))) <= 5:
        yield f"notebook: {points} key points; three to five are wanted"
    yield from _count_faults(code)
    yield from _exercise_faults(notebook, code, text, chapter)


def _section(text, title):
    return text.partition(f"\n## {title}")[2].partition("\n## ")[0]


def _count_faults(code):
    if len(code) > CODE_CELLS:
        yield f"notebook: {len(code)} code cells; {CODE_CELLS} at most"
    checked = [c for c in code if CHECKED in c.metadata.get("tags", [])]
    proved = [c for c in code if c in checked or re.search(r"^\s*assert\b", c.source, re.M)]
    if len(checked) < 5:
        yield f"notebook: {len(checked)} cells with a checked output; five at least"
    if 3 * len(proved) < len(code):
        yield f"notebook: {len(proved)} of {len(code)} code cells are checked or assert; a third at least"


def _exercise_faults(notebook, code, text, chapter):
    titles = re.findall(rf"^### Exercise {chapter}\.(\d): .+ \((\d+) min\)$", text, re.M)
    if len(titles) < 2:
        yield f"notebook: {len(titles)} exercises titled '### Exercise {chapter}.1: ... (6 min)'; two at least"
    minutes = notebook.metadata.get("book", {})
    reading, exercises = minutes.get("minutes_reading"), minutes.get("minutes_exercises")
    if not (isinstance(reading, int) and isinstance(exercises, int)):
        yield "notebook: no minutes_reading and minutes_exercises in its metadata (book)"
    else:
        if f"{reading} minutes reading + {exercises} minutes exercises" not in text:
            yield f"notebook: its box does not say '{reading} minutes reading + {exercises} minutes exercises'"
        if (total := sum(int(m) for _, m in titles)) != exercises:
            yield f"notebook: its exercises take {total} minutes, its metadata say {exercises}"
    ids = [c.id for c in code]
    for number, _ in titles:
        triple = [f"{part}-{chapter}-{number}" for part in ("check", "exercise", "solution")]
        missing = [name for name in triple if name not in ids]
        if missing:
            yield f"notebook: no cell {', '.join(missing)}"
        elif [name for name in ids if name in triple] != triple:
            yield f"{triple[0]}: check, exercise and solution are not in this order"
    yield from _solution_faults(code)


def _solution_faults(code):
    given, solved = set(), set()
    for cell in code:
        tags = set(cell.metadata.get("tags", []))
        if cell.id.startswith("solution-") != ("solution" in tags) or "solution" in tags and "hide-cell" not in tags:
            yield f"{cell.id}: a solution is called solution-NN-k and tagged solution and hide-cell"
        try:
            binds, uses = names(cell.source)
        except SyntaxError:
            continue  # told already
        if "solution" in tags:
            solved |= binds
            continue
        if used := uses & (solved - given - binds):
            yield f"{cell.id}: uses {', '.join(sorted(used))}, which only a solution defines"
        given |= binds


class AsGenerators(ast.NodeTransformer):
    """List, set and dict comprehensions as generator expressions: from Python 3.12 on a
    module's symbol table holds the variables of the former as if the module bound them."""

    def visit_ListComp(self, node):
        return self.visit(ast.GeneratorExp(node.elt, node.generators))

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node):
        return self.visit(ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators))


def names(source: str) -> tuple[set[str], set[str]]:
    """(names that a cell binds for the cells after it, names it takes from elsewhere:
    also from inside its functions)."""
    module = symtable(ast.unparse(AsGenerators().visit(ast.parse(source))), "cell", "exec")
    binds = {s.get_name() for s in module.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    uses, tables = {s.get_name() for s in module.get_symbols() if s.is_referenced()}, module.get_children()
    while tables:
        table = tables.pop()
        uses |= {s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()}
        tables += table.get_children()
    return binds, uses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true", help="write the canonical form first")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    found = 0
    for path in options.files or chapters.find():
        try:
            if options.fix and (text := canonical(chapters.read(path))).encode() != path.read_bytes():
                replace_file(path, text)
            told = [f"{path.name}, {fault}" for fault in faults(path)]
        except chapters.Broken as error:
            told = [str(error)]
        print(*told, sep="\n", end="\n" * bool(told))
        found += len(told)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
