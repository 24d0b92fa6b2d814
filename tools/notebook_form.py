"""The canonical form of the notebooks: python -m tools.notebook_form [--fix] [FILE ...]

Without --fix it prints every fault as "file, cell: fault" and exits 1 if there is one.
--fix writes the form's own part: key order, tags, metadata, alt texts, no widget state.
What only a person can mend (a missing section, two sentences on a line) it reports.
"""

import argparse
import ast
import re
import sys
from pathlib import Path

import nbformat

from tools import chapters
from tools.prose import measured_numbers

TAGS = {"nbval-check-output", "solution", "hide-cell", "hide-input", "hide-output", "remove-cell"}
SETUP = "from utils.environment import begin\n\nhere = begin()"
LARGEST = 1_000_000  # bytes of a notebook
COLUMNS = 78
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"}}
KEPT_MIMES = ("text/plain", "text/html", "image/png")


# --- the part a program can write --------------------------------------------------


def canonical(notebook) -> str:
    """The notebook's text in the canonical form."""
    notebook = nbformat.from_dict(dict(notebook))
    book = notebook.metadata.get("book")
    notebook.metadata = nbformat.from_dict({**METADATA, **({"book": book} if book else {})})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        kept = {k: v for k, v in cell.metadata.items() if k in ("tags", "mystnb", "book") and v}
        if "tags" in kept:
            kept["tags"] = sorted(set(kept["tags"]))
        if cell.cell_type == "code":
            cell.outputs = [_output(out) for out in _joined(cell.outputs)]
            alt = next((out.metadata["image/png"]["alt"] for out in cell.outputs
                        if out.get("metadata", {}).get("image/png", {}).get("alt")), None)
            kept.pop("mystnb", None)
            if alt:
                kept["mystnb"] = {"image": {"alt": alt}}
        cell.metadata = nbformat.from_dict(kept)
    return nbformat.writes(notebook, version=4) + "\n"


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
        out.data = nbformat.from_dict({k: v for k, v in out.data.items() if k in KEPT_MIMES})
        png = out.metadata.get("image/png", {})
        out.metadata = nbformat.from_dict({"image/png": png} if png else {})
    return out


# --- what is checked ------------------------------------------------------------------


def faults(path):
    """All faults of one notebook, as "cell: fault" texts."""
    text = path.read_text(encoding="utf-8")
    notebook = chapters.read(path)
    if len(text.encode()) > LARGEST:
        yield f"notebook: larger than {LARGEST // 1000} kB"
    if canonical(notebook) != text:
        yield "notebook: not in the canonical form; run python -m tools.notebook_form --fix"
    code = [c for c in notebook.cells if c.cell_type == "code"]
    markdown = [c for c in notebook.cells if c.cell_type == "markdown"]
    yield from _numbering(code)
    for cell in notebook.cells:
        for fault in _cell_faults(cell):
            yield f"{cell.id}: {fault}"
    yield from _template(notebook, code, "\n\n".join(c.source for c in markdown), path.stem[:2])


def _numbering(code):
    counts = [c.execution_count for c in code]
    if counts != list(range(1, len(code) + 1)) and any(counts):
        yield "notebook: the outputs are not one clean run (execution counts are not 1, 2, 3, ...)"


def _cell_faults(cell):
    if re.fullmatch(r"[0-9a-f]{8}(-.*)?", cell.id) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", cell.id):
        yield "the id is not a name in kebab-case"
    for tag in set(cell.metadata.get("tags", [])) - TAGS:
        yield f"unknown tag {tag!r}; there are {', '.join(sorted(TAGS))}"
    lines = cell.source.splitlines()
    if cell.cell_type == "markdown":
        yield from _markdown_faults(lines)
        return
    if len(lines) > 20:
        yield f"{len(lines)} lines of code; 20 at most"
    for line in lines:
        if len(line) > COLUMNS:
            yield f"a line of {len(line)} columns; {COLUMNS} at most: {line[:30]!r}"
    for out in cell.outputs:
        if out.output_type == "error" or out.get("name") == "stderr":
            yield "its output is an error, or goes to stderr"
        for shown in _texts(out):
            found = re.search(r"(?<![\w.<>:/])(/(?!/)[\w.-]+){2,}|[A-Z]:\\\w+", shown)
            if found:
                yield f"an absolute path in its output: {found[0][:40]!r}"


def _texts(out):
    yield out.get("text", "")
    for mime, shown in out.get("data", {}).items():
        if mime == "text/plain":
            yield shown


_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bNo)(?<![A-Z])[.!?][)\"*]* +(?=[A-Z`*(\"])")


def _markdown_faults(lines):
    fenced = False
    for line in lines:
        fenced ^= line.startswith("```")
        if fenced or line.lstrip().startswith(("|", "<", "#", "```")):
            continue
        text = re.sub(r"`[^`]*`|\]\([^)]*\)", "_", re.sub(r"^\s*(\d+\.|[-*])\s+", "", line))
        if not line[:1].isdigit() and not line.startswith("- ") and _SENTENCE_END.search(text):
            yield f"two sentences on a line: {line[:40]!r}"
    for number in measured_numbers("\n".join(lines)):
        yield f"a measured number in the text: {number!r}"


def _template(notebook, code, text, chapter):
    """The sections of design and didactics that every chapter has."""
    if code and code[0].source != SETUP:
        yield "notebook: the first code cell is not the setup cell of all chapters"
    minutes = notebook.metadata.get("book", {})
    if not {"minutes_reading", "minutes_exercises"} <= set(minutes):
        yield "notebook: no minutes in its metadata (book.minutes_reading, book.minutes_exercises)"
    elif not all(re.search(rf"\b{n} minutes", text) for n in minutes.values()):
        yield "box: its minutes are not those of the metadata"
    if len(code) > 40:
        yield f"notebook: {len(code)} code cells; 40 at most"
    checked = [c for c in code if "nbval-check-output" in c.metadata.get("tags", [])]
    proved = [c for c in code if c in checked or "assert" in c.source]
    if len(checked) < 5:
        yield f"notebook: {len(checked)} checked cells; at least 5"
    if 3 * len(proved) < len(code):
        yield f"notebook: {len(proved)} of {len(code)} code cells are checked or assert; at least a third"
    for wanted in ("| You will learn | You need |", "## Predict", "## Same answer?", "## When it does not help",
                   "## What goes wrong", "## 2.5 and today", "## Claims", "## Key points", "## Quiz",
                   "## Further reading", "Instructor note"):
        if wanted not in text:
            yield f"notebook: nothing says {wanted!r}"
    quiz = text.partition("## Quiz")[2].partition("\n## ")[0]
    if quiz.count("<details>") != 3:
        yield f"notebook: {quiz.count('<details>')} quiz answers; three are wanted"
    yield from _exercises(code, text, chapter)


def _exercises(code, text, chapter):
    titles = re.findall(rf"^### Exercise {chapter}\.(\d): .+ \(\d+ min\)$", text, re.M)
    if len(titles) < 2:
        yield f"notebook: {len(titles)} exercises with minutes; two at least"
    ids = [c.id for c in code]
    for number in titles:
        for part in ("check", "exercise", "solution"):
            if f"{part}-{chapter}-{number}" not in ids:
                yield f"notebook: no cell {part}-{chapter}-{number}"
    given, solved = set(), set()
    for cell in code:
        tree = ast.parse(cell.source)
        loaded = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if "solution" in cell.metadata.get("tags", []):
            solved |= _defined(tree)
        elif used := loaded & solved - given - _defined(tree):
            yield f"{cell.id}: uses {', '.join(sorted(used))}, which only a solution defines"
        else:
            given |= _defined(tree)


def _defined(tree):
    """Names that a cell gives to the cells after it."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).split(".")[0] for a in node.names}
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    found = 0
    for path in options.files or chapters.find():
        if options.fix:
            text = canonical(chapters.read(path))
            if text != path.read_text(encoding="utf-8"):
                path.write_text(text, encoding="utf-8", newline="\n")
        for fault in faults(path):
            print(f"{path.name}, {fault}")
            found += 1
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
