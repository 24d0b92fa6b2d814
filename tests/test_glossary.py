"""Every term of the glossary is used, and its first use in each chapter is a link."""

import re

import nbformat
import pytest

from tools import glossary, notebook_form, prose
from tools.glossary import Term

KNOWN = glossary.terms()


def term(name, *also):
    return Term(name, "A sentence.", tuple(dict.fromkeys([name, *also, *map(glossary.plural, (name, *also))])))


def linked(*texts, known=(term("graph"), term("graph break"), term("guard"), term("Dynamo"), term("entry point"))):
    made, used = glossary.linked(list(texts), list(known))
    return (made[0] if len(made) == 1 else made), used


# --- the book's own ---------------------------------------------------------------------


def test_every_term_is_used_and_its_first_use_is_a_link():
    found = list(glossary.faults(notebook_form.teaching(), KNOWN))
    assert not found, "\n".join(found)


def test_the_glossary_is_in_order():
    names = [found.name.lower() for found in KNOWN]
    assert names == sorted(names) and 30 <= len(names) == len(set(names)) <= 60
    assert len({found.anchor for found in KNOWN}) == len(KNOWN)
    forms = [form.lower() for found in KNOWN for form in found.forms]
    assert len(forms) == len(set(forms))
    for found in KNOWN:
        assert 1 <= len(found.text.splitlines()) <= 3, found.name
    assert prose.sentence_faults(glossary.PAGE.read_text(encoding="utf-8")) == []
    assert prose.measured_numbers(glossary.PAGE.read_text(encoding="utf-8")) == []


def test_its_own_links_lead_to_its_terms():
    anchors = {found.anchor for found in KNOWN}
    for found in KNOWN:
        targets = set(re.findall(r"\]\(#([\w-]+)\)", found.text))
        assert targets <= anchors - {found.anchor}, found.name


# --- what is linked -----------------------------------------------------------------------


def test_the_first_use_and_no_other():
    text, used = linked("A guard and a guard.\nDynamo has guards.")
    assert text == "A [guard](glossary.md#guard) and a guard.\n[Dynamo](glossary.md#dynamo) has guards."
    assert used == {"guard", "Dynamo"}


def test_the_longest_term_wins_and_cells_go_on():
    texts, _ = linked("A graph break.", "The graph breaks, a graph.", "Graphs.")
    assert texts == ["A [graph break](glossary.md#graph-break).", "The graph breaks, a [graph](glossary.md#graph).",
                     "Graphs."]


@pytest.mark.parametrize("text, made", [
    ("Guards hold.", "[Guards](glossary.md#guard) hold."),
    ("| a guard | b |", "| a [guard](glossary.md#guard) | b |"),
    ("**A guard.**", "**A [guard](glossary.md#guard).**"),
    ("- it looks for *entry points*", "- it looks for *[entry points](glossary.md#entry-point)*"),
    ("`guard` is code, a guard not", "`guard` is code, a [guard](glossary.md#guard) not"),
    ("[a guard](x.md) and a guard", "[a guard](x.md) and a [guard](glossary.md#guard)"),
    ("# A guard\n\nA guard.", "# A guard\n\nA [guard](glossary.md#guard)."),
    ("```\na guard\n```\na guard", "```\na guard\n```\na [guard](glossary.md#guard)"),
    ("<details>\na guard\n</details>\n\na guard", "<details>\na guard\n</details>\n\na [guard](glossary.md#guard)"),
    ("<details>\n\na guard\n</details>", "<details>\n\na [guard](glossary.md#guard)\n</details>"),
    ("a <b title='guard'>guard</b>", "a <b title='guard'>[guard](glossary.md#guard)</b>"),
])
def test_where(text, made):
    assert linked(text)[0] == made


@pytest.mark.parametrize("text", [
    "safeguard", "guard-rail", "own-guard", "x.guard", "guarded", "graphic", "# guard", "`a guard`",
    "![a guard](a.png)", "https://a.org/guard", "~~~\nguard\n~~~"])
def test_what_is_no_use(text):
    assert linked(text) == (text, set())


@pytest.mark.parametrize("old", [
    "A [guard](glossary.md#guard).\nA guard.", "A guard.\nA [guard](glossary.md#guard).",
    "A [guard](glossary.md#graph).\nA guard.", "[A](glossary.md#gone) guard.\nA guard."])
def test_links_that_are_not_right_are_set_anew(old):
    once, _ = linked(old)
    assert once == "A [guard](glossary.md#guard).\nA guard."
    assert linked(once)[0] == once


def test_terms_are_read_with_their_forms():
    found = glossary.terms("# G\n\nText.\n\n## entry\n<!-- also: way in -->\n\nOne.\n\n## box\n\nTwo.\n")
    assert [(f.name, f.forms, f.text) for f in found] == [
        ("entry", ("entry", "way in", "entries", "way ins"), "One."), ("box", ("box", "boxes"), "Two.")]


# --- the notebooks ------------------------------------------------------------------------


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """A chapter of three cells, the only one of the book."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_markdown_cell("# T\n\nWhat is a guard?", id="title"),
                      nbformat.v4.new_code_cell("guard = 1", id="code"),
                      nbformat.v4.new_markdown_cell("A guard.", id="text")]
    path = tmp_path / "10_small.ipynb"
    path.write_text(glossary.notebook_form.canonical(notebook), encoding="utf-8")
    monkeypatch.setattr(glossary.chapters, "find", lambda: [path])
    monkeypatch.setattr(glossary, "PAGE", tmp_path / "glossary.md")
    glossary.PAGE.write_text("# G\n\n## guard\n\nOne.\n\n## ring\n\nTwo.\n", encoding="utf-8")
    return path


def command(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["glossary", *words])
    with pytest.raises(SystemExit) as ended:
        glossary.main()
    return ended.value.code


def test_the_command(chapter, monkeypatch, capsys):
    before = chapter.read_bytes()
    assert command(monkeypatch) == 1 and chapter.read_bytes() == before
    said = capsys.readouterr().out
    assert "10_small.ipynb, text: links to the glossary are not" in said and "no chapter uses 'ring'" in said
    assert command(monkeypatch, "--fix") == 1  # there is still the ring
    assert capsys.readouterr().out == "10_small.ipynb: links set\nglossary.md: no chapter uses 'ring'\n"
    cells = {cell.id: cell.source for cell in glossary.chapters.read(chapter).cells}
    assert cells == {"title": "# T\n\nWhat is a guard?", "code": "guard = 1", "text": "A [guard](glossary.md#guard)."}
    after = chapter.read_bytes()
    glossary.PAGE.write_text("# G\n\n## guard\n\nOne.\n", encoding="utf-8")
    assert command(monkeypatch, "--fix") == 0 and chapter.read_bytes() == after
