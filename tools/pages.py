"""The pages that are made while the site is built: the executed scoreboard, "Corrections"
and "Since 2.5". tools.answers puts them in; nothing generated is committed.
"""

from __future__ import annotations

import re
import tempfile
from html import escape

from tools import chapters, gates, notebook_form
from tools.chapters import REPO
from utils import recorded, scoreboard
from utils.recorded import replace_file

SCOREBOARD = REPO / "chapters" / "99_scoreboard.ipynb"
EXECUTED = REPO / "_build" / SCOREBOARD.name


def to_pages(text: str) -> str:
    """Links to notebooks as links to their pages: Sphinx leaves those in HTML alone. (In
    a notebook's JSON a backslash stands before the quote.)"""
    return re.sub(r'(href=\\?"\d\d_\w+)\.ipynb', r"\1.html", text)


# --- the scoreboard ---------------------------------------------------------------------


def executed_scoreboard() -> str:
    """The notebook with its outputs, run when something it is made from changed.

    It is committed without outputs and executed here, in _build/: outputs in the committed
    notebook would be changed files in git after each build with another recorded file.
    It takes a few seconds and no other chapter runs.
    """
    now, stamp = _made_from(), EXECUTED.with_suffix(".made-from")
    if not (EXECUTED.exists() and stamp.exists() and stamp.read_text() == now):
        notebook = chapters.read(SCOREBOARD)
        with tempfile.TemporaryDirectory() as empty:  # the site shows no last run of who builds it
            chapters.execute(notebook, SCOREBOARD, {"BOOK_RESULTS": empty})
        EXECUTED.parent.mkdir(exist_ok=True)
        replace_file(EXECUTED, notebook_form.canonical(notebook))
        replace_file(stamp, now)
    return to_pages(EXECUTED.read_text(encoding="utf-8"))


def _made_from() -> str:
    """The files that the scoreboard is made from, with size and time. An older file may take
    the place of a newer one, and BOOK_RECORDED may name another folder: "newer" would not do."""
    files = [SCOREBOARD, REPO / "claims.yml", *(REPO / "utils").glob("*.*"), *recorded.named_folder().glob("*.json")]
    return "\n".join(f"{path} {path.lstat().st_size} {path.lstat().st_mtime_ns}" for path in sorted(files))


# --- corrections ------------------------------------------------------------------------


def corrections(files) -> str:
    """Markdown: a card for each claim that has a correction, chapter by chapter."""
    rows = [row for row in scoreboard.rows(files) if "correction" in row.claim]
    titles, parts = scoreboard.chapter_titles(rows), []
    for number, title in titles.items():
        parts.append(f"## Chapter {title}")
        parts += [scoreboard.card(row, folded=False) for row in rows if row.claim["chapter"] == number]
    return to_pages("\n\n".join(parts))


# --- since 2.5 --------------------------------------------------------------------------


def since() -> str:
    """Markdown: what each gate that changed says on the torch versions it was asked on."""
    by_release = gates.load()
    oldest, newest = list(by_release)[0], list(by_release)[-1]
    names = gates.changed(by_release[oldest], by_release[newest])
    return to_pages("\n\n".join(_change(name, by_release) for name in names))


def _change(name: str, by_release) -> str:
    told = "".join(f"<li><strong>torch {release}</strong>: {escape(answers[name]['reason'])}</li>"
                   for release, answers in by_release.items() if name in answers)
    shown = ", ".join(scoreboard.chapter_link(number) for number in _asked_in(name))
    return (f'<article class="claim"><ul>{told}</ul><p>Gate <code>{escape(name)}</code>'
            f'{f", asked in {shown}" if shown else ""}.</p></article>')


def _asked_in(name: str) -> list[str]:
    """The chapters whose cells ask a gate."""
    return [path.name[:2] for path in chapters.find() if f'gate(\\"{name}\\")' in path.read_text(encoding="utf-8")]
