"""A deck of slides a chapter, from the same notebooks: python -m tools.slides

Writes _build/slides/<chapter>.html and an index. A deck is one file that asks for nothing
else. A section is a slide: its first text, its figures, else its first short table; the
rest is folded. Checks, solutions and the instructor's note are left out. Needs no torch.
"""

import base64
import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt

from tools import answers, chapters, notebook_form, prose
from tools.chapters import REPO
from tools.page import HERE, page
from tools.workshop import without_note
from utils import plots
from utils.recorded import load, replace_file

BUILT = REPO / "_build" / "slides"
STYLE = "slides.css"
LONGEST = 12             # lines of a printed table that stands open
ROOM, DENSE = 500, 1200  # characters of text that leave room for a table, that need small print
ROW = 40                 # characters that a new row, item or paragraph costs in height
LEFT_OUT = ("check-", "solution-")  # cells by the beginning of their ids


@dataclass
class Slide:
    """One section. shown, figures, tables, folded: pieces of HTML."""

    heading: str
    level: int
    part: str = ""  # the section that a subsection belongs to
    shown: list = field(default_factory=list)
    figures: list = field(default_factory=list)
    tables: list = field(default_factory=list)
    folded: list = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not (self.shown or self.figures or self.folded)


# --- from a notebook to slides ----------------------------------------------------------


def slides(notebook, known: list[str], answer: str = "") -> list[Slide]:
    """The slides of a chapter. known: the chapters that have decks, for links between
    them; answer: HTML that the recorded results say, for the slide of the key points."""
    found, part = [], ""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            # The title's code is the setup.
            if len(found) > 1 and not cell.id.startswith(LEFT_OUT):
                _add_code(found[-1], cell)
            continue
        for level, heading, text in pieces(linked(without_note(cell.source), known)):
            if level:
                part = part if level > 2 else heading
                found.append(Slide(heading, level, part if level > 2 else ""))
                if heading == "Key points" and answer:
                    found[-1].shown.append(answer)
            _add_text(found[-1], text, first=bool(level) or len(found) == 1)
    return [slide for slide in found if not slide.empty]


def pieces(source: str):
    """(level, heading, text) of each part of a Markdown text; level 0 before a heading."""
    level, heading, lines = 0, "", []
    for line, fenced in prose.lines(source):
        found = None if fenced else re.match(r"(#{1,3}) (.+)", line)
        if not found:
            lines.append(line)
            continue
        if level or "".join(lines).strip():
            yield level, heading, "\n".join(lines).strip()
        level, heading, lines = len(found[1]), found[2], []
    yield level, heading, "\n".join(lines).strip()


def linked(source: str, known: list[str]) -> str:
    """Links between chapters as links between decks; of other pages only the text."""
    def link(found):
        text, name = found[1], found[2]
        return f"[{text}]({name}.html)" if found[3] == "ipynb" and name in known else text
    return re.sub(r"\[([^\]]+)\]\((\w+)\.(md|ipynb)(?:#[^)]*)?\)", link, source)


def _add_text(slide: Slide, text: str, first: bool):
    """A section's first text stands open; of a later one only what it begins with in bold,
    such as the name of a trap."""
    bold, _, rest = text.partition("\n") if re.match(r"\*\*.+\*\*$", text.partition("\n")[0]) else ("", "", text)
    if first:
        bold, rest = text, ""
    for place, part in ((slide.shown, bold), (slide.folded, rest)):
        if part.strip():
            place.append(markdown(part))


def _add_code(slide: Slide, cell):
    code = _pre(cell.source, f"Code of {cell.id.replace('-', ' ')}")
    # A starter is what the room works on.
    (slide.shown if cell.id.startswith("exercise-") else slide.folded).append(code)
    for out in cell.outputs:
        data = out.get("data", {})
        if out.output_type == "stream":
            _add_printed(slide, out.text, cell.id)
        elif "text/html" in data:
            slide.figures.append(data["text/html"])
        elif "image/png" in data:
            picture = base64.b64decode(data["image/png"])
            slide.figures.append(plots.img(picture, out.metadata["image/png"]["alt"]))


def _add_printed(slide: Slide, text: str, name: str):
    table = _pre(text.rstrip("\n"), f"Printed by {name.replace('-', ' ')}")
    short = text.count("\n") <= LONGEST and not name.startswith("exercise-")
    if short and not slide.tables:
        slide.tables.append(table)
    else:
        slide.folded.append(table)


# --- from text to HTML --------------------------------------------------------------------


def _pre(text: str, label: str) -> str:
    """Text that keeps its columns: it scrolls inside itself, by keyboard too."""
    return f'<pre tabindex="0" role="group" aria-label="{escape(label)}"><code>{escape(text)}</code></pre>'


def _renderer() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": True}).enable("table")
    made.renderer.rules["fence"] = lambda tokens, place, *_: _pre(tokens[place].content.rstrip("\n"), "Code")
    scrolls = '<div class="wide" tabindex="0" role="group" aria-label="Table">'
    made.renderer.rules["table_open"] = lambda *_: f"{scrolls}<table>"
    made.renderer.rules["table_close"] = lambda *_: "</table></div>"
    return made


_MARKDOWN = _renderer()


def markdown(text: str) -> str:
    return _MARKDOWN.render(text)


def _inline(text: str) -> str:
    return _MARKDOWN.renderInline(text)


def section(slide: Slide, number: int, total: int) -> str:
    """The HTML of one slide."""
    head = "h1" if slide.level == 1 else "h2"
    shown, folded = list(slide.shown), list(slide.folded)
    if slide.figures:
        shown.append(f'<div class="figures">{"".join(slide.figures)}</div>')
    length = len(re.sub(r"<[^>]+>", "", "".join(shown)))
    (folded if slide.figures or length > ROOM else shown).extend(slide.tables)
    length += ROW * len(re.findall(r"<(?:tr|li|p)\b", "".join(slide.shown)))
    more = f'<details class="more"><summary>Code and more</summary>{"".join(folded)}</details>' if folded else ""
    part = f'<p class="part">{_inline(slide.part)}</p>' if slide.part else ""
    dense = " dense" if length > DENSE else ""
    return (f'<section id="slide-{number}" class="level-{slide.level}{dense}" tabindex="-1" role="group" '
            f'aria-roledescription="slide" aria-label="{number} of {total}">'
            f'{part}<{head}>{_inline(slide.heading)}</{head}>{"".join(shown)}{more}</section>')


def deck(notebook, known: list[str], answer: str = "") -> str:
    """The HTML file of a chapter."""
    found = slides(notebook, known, answer)
    body = "\n".join(section(slide, n, len(found)) for n, slide in enumerate(found, 1))
    # Hidden until the script can move the slides.
    bar = ('<nav aria-label="Slides" hidden><button type="button" aria-label="Previous slide">&larr;</button>'
           f'<output aria-live="polite">1 of {len(found)}</output>'
           '<button type="button" aria-label="Next slide">&rarr;</button> <a href="index.html">all decks</a></nav>')
    scripts = [HERE / "slides.js", *([REPO / "_assets" / "explore.js"] if 'class="explore"' in body else [])]
    return page(f"{found[0].heading} - PyTorch 2.5, Measured", STYLE, f"<main>\n{body}\n</main>\n{bar}",
                "\n".join(path.read_text(encoding="utf-8") for path in scripts))


# --- the folder -----------------------------------------------------------------------------


def index(notebooks: dict) -> str:
    """The page that leads to all decks."""
    items = []
    for name, notebook in notebooks.items():
        title, question = next((heading, text) for _, heading, text in pieces(notebook.cells[0].source))
        minutes = notebook.metadata.get("book", {}).get("minutes_reading")
        told = f", {minutes} minutes to read" if minutes else ""
        items.append(f'<li><a href="{name}.html">{name[:2]} {_inline(title)}</a>{told}<br>'
                     f"{_inline(question.splitlines()[0])}</li>")
    return page("Slides - PyTorch 2.5, Measured", STYLE,
                '<main><section class="level-1"><h1>PyTorch 2.5, Measured: slides</h1>'
                "<p>Left and right arrow keys, or Page Up and Page Down, turn the slides; "
                "printing a deck gives a page a slide.</p>"
                f"<ul>{''.join(items)}</ul></section></main>")


def write(folder: Path, paths: list[Path]):
    """The decks of chapters, and the index of them."""
    folder.mkdir(parents=True, exist_ok=True)
    notebooks = {path.stem: chapters.read(path) for path in paths}
    lines = {number: answers.under_title(*said) for number, said in answers.answers(load()).items()}
    for name, notebook in notebooks.items():
        replace_file(folder / f"{name}.html", deck(notebook, list(notebooks), lines.get(name[:2], "")))
    replace_file(folder / "index.html", index(notebooks))


def main():
    paths = notebook_form.teaching()
    write(BUILT, paths)
    print(f"{len(paths)} decks are in _build/slides/: open index.html in a browser.")


if __name__ == "__main__":
    main()
