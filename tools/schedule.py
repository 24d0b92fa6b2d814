"""Schedules of a workshop, from the minutes in the notebooks' metadata and the seconds
that the chapters were measured to run (recorded/seconds/, see tools.dry_run). Needs no torch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from utils import preflight

OPENING, CLOSING = 10, 5             # minutes: welcome and machine check; questions, where it goes on
PAUSES = {"break": 15, "lunch": 60}  # minutes


@dataclass(frozen=True)
class Plan:
    """title; minutes: from the first word to the last; order: chapters and pauses."""

    title: str
    minutes: int
    order: tuple[str, ...]


PLANS = {
    "90": Plan("90 minutes", 90, ("00", "20")),
    "half": Plan("Half a day", 210, ("00", "20", "break", "30", "50")),
    "full": Plan("A full day", 420, ("00", "20", "break", "30", "lunch", "50", "10", "break", "60", "70")),
}
# Who, chapters, why these.
AUDIENCES = [
    ("everybody who will time code", ("00",), "all other chapters build on it"),
    ("users of `torch.compile` on laptops and servers without a GPU", ("00", "20", "30", "40", "45"),
     "cold starts, what the compiler writes, sixteen bits, tuned matrix products"),
    ("people who train or serve transformers", ("00", "10", "50", "20"),
     "which attention runs, masks that skip work, a start that does not grow with depth"),
    ("people who train on many machines", ("00", "60", "70"), "one graph for the backward, jobs that hang"),
    ("Windows users", ("00", "35", "20"), "the compiler's demands, and what they bring"),
    ("makers and users of other devices", ("00", "80", "90"), "how a device becomes part of torch, code that names none"),
    ("readers of release notes", ("00", "95"), "what changes for programs that never asked"),
]


@dataclass(frozen=True)
class Slot:
    """One line of a schedule. start, minutes: whole minutes; chapter: its number or ""."""

    start: int
    minutes: int
    what: str
    chapter: str = ""


def waiting(number: str, recorded: dict) -> int:
    """Minutes that a chapter runs, rounded up: nobody is let wait for less than planned."""
    took = recorded["chapters"].get(number)
    return math.ceil(took["seconds"] / 60) if took else 0


def needed(number: str, book: dict, recorded: dict) -> int:
    """Minutes of a chapter in a room: reading, exercises, and the run."""
    return book[number]["reading"] + book[number]["exercises"] + waiting(number, recorded)


def slots(plan: Plan, book: dict, recorded: dict) -> list[Slot]:
    """The plan's lines, of the chapters that the book has."""
    found, at = [], 0

    def add(minutes, what, chapter=""):
        nonlocal at
        found.append(Slot(at, minutes, what, chapter))
        at += minutes

    add(OPENING, "Opening: the machine check, a first guess")
    for step in plan.order:
        if step in PAUSES:
            add(PAUSES[step], step.capitalize())
        elif step in book:
            add(needed(step, book, recorded), f"{step} {book[step]['title']}", step)
    add(CLOSING, "Closing: questions, and where it goes on")
    return found


def overruns(plan: Plan, book: dict, recorded: dict) -> list[str]:
    """What does not fit, a sentence each: the whole, a chapter that runs longer than it is
    read, a chapter that nobody has timed."""
    told = []
    if (over := spare(plan, book, recorded)) < 0:
        told.append(f"{plan.title}: it takes {-over} minutes more than the {plan.minutes} it has.")
    for number in plan.order:
        if number not in book:
            continue
        if number not in recorded["chapters"]:
            told.append(f"{plan.title}: chapter {number} was not timed; python -m tools.dry_run {number} --write does it.")
        elif waiting(number, recorded) > book[number]["reading"]:
            told.append(f"{plan.title}: chapter {number} runs longer than it takes to read.")
    return told


def spare(plan: Plan, book: dict, recorded: dict) -> int:
    """Minutes that the plan leaves over; below 0 where it has too few."""
    last = slots(plan, book, recorded)[-1]
    return plan.minutes - last.start - last.minutes


def clock(start: str, minutes: int) -> str:
    """The time on the clock: clock("09:00", 75) is "10:15". Raises ValueError."""
    hour, minute = map(int, start.split(":"))
    if not (0 <= hour < 24 and 0 <= minute < 60):
        raise ValueError(f"{start} is no time")
    return "%02d:%02d" % divmod((60 * hour + minute + minutes) % (24 * 60), 60)


def lines(plan: Plan, start: str, book: dict | None = None, recorded: dict | None = None):
    """The plan with clock times, a line a slot."""
    book, recorded = book or preflight.chapters(), recorded or preflight.reference()
    for slot in slots(plan, book, recorded):
        yield f"{clock(start, slot.start)}  {slot.minutes:3} min  {slot.what}"
    yield f"{clock(start, plan.minutes)}           End; {spare(plan, book, recorded)} minutes are left over."
