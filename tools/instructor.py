"""The computed parts of the page for instructors: schedules, exercises, and the quiz as a
handout. tools.answers puts them in while the site is built.
"""

from __future__ import annotations

import re
from html import escape

from tools import chapters, schedule
from tools.workshop import anchor, without_note
from utils import preflight


def parts() -> dict[str, str]:
    """Place in the page -> Markdown."""
    book, recorded = preflight.chapters(), preflight.reference()
    notebooks = {path.stem: chapters.read(path) for path in chapters.find() if path.stem[:2] in book}
    return {"schedules": schedules(book, recorded), "minutes": minutes(book, recorded),
            "audiences": audiences(book, recorded), "exercises": exercises(notebooks), "quiz": quiz(notebooks)}


def _table(head: list[str], rows: list[list]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def schedules(book: dict, recorded: dict) -> str:
    """Each plan as a table of clock times."""
    made = []
    for word, plan in schedule.PLANS.items():
        rows = [[schedule.clock("09:00", slot.start), slot.minutes, slot.what]
                for slot in schedule.slots(plan, book, recorded)]
        rows.append([schedule.clock("09:00", plan.minutes), schedule.spare(plan, book, recorded),
                     "End; these minutes are left over"])
        made.append(f"### {plan.title}\n\n`make dry-run SCHEDULE={word}` rehearses it.\n\n"
                    + _table(["clock", "minutes", "what"], rows))
    return "\n\n".join(made)


def minutes(book: dict, recorded: dict) -> str:
    """What each chapter takes in a room."""
    rows = [[f"{number} {chapter['title']}", chapter["reading"], chapter["exercises"],
             schedule.waiting(number, recorded) or "not timed", schedule.needed(number, book, recorded)]
            for number, chapter in book.items()]
    return _table(["chapter", "reading", "exercises", "running", "in all"], rows)


def audiences(book: dict, recorded: dict) -> str:
    """Which chapters for whom, with the minutes they take together."""
    rows = []
    for who, numbers, why in schedule.AUDIENCES:
        there = [number for number in numbers if number in book]
        rows.append([who, ", ".join(there), sum(schedule.needed(number, book, recorded) for number in there), why])
    return _table(["who", "chapters", "minutes", "why"], rows)


def exercises(notebooks: dict) -> str:
    """All exercises, each with its minutes and where its solution is."""
    rows = []
    for name, notebook in notebooks.items():
        for cell in notebook.cells:
            for title, number, took in re.findall(r"^### (Exercise (\d\d\.\d): .+ \((\d+) min\))$", cell.source, re.M):
                what = re.sub(r"^Exercise \d\d\.\d: | \(\d+ min\)$", "", title)
                page = f'<a href="{name}.html#{anchor(title)}">{number}</a>'
                rows.append([page, escape(what), took, f"`solution-{number.replace('.', '-')}`"])
    return _table(["exercise", "task", "minutes", "cell of the solution"], rows)


def quiz(notebooks: dict) -> str:
    """The questions of all chapters, with their folded answers, as the chapters have them."""
    made = []
    for name, notebook in notebooks.items():
        text = "\n\n".join(without_note(cell.source) for cell in notebook.cells if cell.cell_type == "markdown")
        title = re.search(r"^# (.+)$", text, re.M)[1]
        questions = re.search(r"^## Quiz$\n+(.+?)(?=^## |\Z)", text, re.M | re.S)
        made.append(f"### Questions of chapter {name[:2]}: {title}\n\n{questions[1].strip()}")
    return "\n\n".join(made)
