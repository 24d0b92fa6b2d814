"""The first use of a glossary's term in each chapter is a link: python -m tools.glossary [--fix]

Prints every first use that is not linked, every link that is not at a first use, and every
term that no chapter uses, and exits 1 if there is one; --fix sets the links in the
notebooks. Links to the glossary are this tool's: those that it would not set go. Text in
headings, code, links and HTML stays as it is, and so does the title with its question,
which also stands in lists of chapters.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from functools import cache

import nbformat

from tools import chapters, notebook_form, prose
from tools.chapters import REPO
from tools.workshop import anchor
from utils.recorded import replace_file

PAGE = REPO / "chapters" / "glossary.md"
_LINK = re.compile(r"\[([^\]]+)\]\(glossary\.md#[\w-]+\)")
# What is no running text within a line: code, links and pictures, HTML, addresses.
_OTHER = re.compile(r"(?P<tick>`+).+?(?P=tick)|!?\[[^\]]*\]\([^)]*\)|<[^>]*>|https?://\S+")


@dataclass(frozen=True)
class Term:
    """name: as its heading has it; forms: how it stands in a text, the plural among them."""

    name: str
    text: str
    forms: tuple[str, ...]

    @property
    def anchor(self) -> str:
        return anchor(self.name)


def terms(source: str | None = None) -> list[Term]:
    """The terms of the glossary, in its order. A comment "also: a, b" below a heading names
    more forms."""
    source = PAGE.read_text(encoding="utf-8") if source is None else source
    found = []
    for part in re.split(r"^## ", source, flags=re.M)[1:]:
        name, _, text = part.partition("\n")
        also = re.search(r"<!-- also: (.+?) -->", text)
        forms = [name.strip(), *(also[1].split(", ") if also else [])]
        forms = tuple(dict.fromkeys([*forms, *map(plural, forms)]))
        found.append(Term(name.strip(), re.sub(r"<!--.*?-->", "", text).strip(), forms))
    return found


def plural(word: str) -> str:
    """The regular plural."""
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if re.search(r"(s|x|ch|sh)$", word) else "s")


@cache
def _pattern(known: tuple[Term, ...]) -> re.Pattern:
    """Finds any form, the longest first: "graph break" is no use of "graph"."""
    forms = sorted((form for term in known for form in term.forms), key=len, reverse=True)
    # A line break may stand for a blank; the first letter may be large.
    words = "|".join("(?i:%s)%s" % (re.escape(form[0]), re.escape(form[1:])) for form in forms)
    return re.compile(rf"(?<![\w.-])(?:{words})(?![\w-])")


def linked(texts: list[str], known: list[Term]) -> tuple[list[str], set[str]]:
    """(the Markdown texts of one chapter with each term's first use linked and no other,
    the names of the terms that they use)."""
    by_form = {form.lower(): term for term in known for form in term.forms}
    pattern, used, made = _pattern(tuple(known)), set(), []

    def link(found):
        term = by_form[found[0].lower()]
        if term.name in used:
            return found[0]
        used.add(term.name)
        return f"[{found[0]}](glossary.md#{term.anchor})"

    for text in texts:
        lines = []
        for line, running in _running(_LINK.sub(r"\1", text)):
            lines.append(_outside(line, lambda part: pattern.sub(link, part)) if running else line)
        made.append("\n".join(lines))
    return made, used


def _running(text: str):
    """(line, is it running text?): not headings, fenced code and HTML, in which Markdown is
    not read up to the next blank line."""
    html = False
    for line, fenced in prose.lines(text):
        html = bool(line.strip()) and (html or line.lstrip().startswith("<"))
        yield line, not (fenced or html or re.match(r"#+ ", line))


def _outside(line: str, change) -> str:
    """The line with `change` done to what is neither code nor link nor HTML."""
    made, at = [], 0
    for other in _OTHER.finditer(line):
        made += [change(line[at:other.start()]), other[0]]
        at = other.end()
    return "".join([*made, change(line[at:])])


# --- the notebooks ------------------------------------------------------------------------


def fixed(notebook, known: list[Term]):
    """(a copy of the notebook with the links in place, the names of the terms it uses)."""
    notebook = nbformat.from_dict(notebook)
    cells = [cell for cell in notebook.cells[1:] if cell.cell_type == "markdown"]  # without the title
    texts, used = linked([cell.source for cell in cells], known)
    for cell, text in zip(cells, texts):
        cell.source = text
    return notebook, used


def faults(paths, known: list[Term]):
    """Sentences: each Markdown cell that --fix would change, each term without a use."""
    everywhere = set()
    for path in paths:
        notebook = chapters.read(path)
        right, used = fixed(notebook, known)
        everywhere |= used
        for cell, wanted in zip(notebook.cells, right.cells):
            if cell.source != wanted.source:
                yield (f"{path.name}, {cell.id}: links to the glossary are not those of the first uses; "
                       "python -m tools.glossary --fix sets them")
    for term in known:
        if term.name not in everywhere:
            yield f"glossary.md: no chapter uses {term.name!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true", help="set the links first")
    options = parser.parse_args()
    known = terms()
    if options.fix:
        for path in notebook_form.teaching():
            notebook = chapters.read(path)
            right, _ = fixed(notebook, known)
            if right != notebook:
                replace_file(path, notebook_form.canonical(right))
                print(f"{path.name}: links set")
    found = list(faults(notebook_form.teaching(), known))
    print(*found, sep="\n", end="\n" * bool(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
