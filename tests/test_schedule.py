"""Schedules fit their time, and the page for instructors has what the book has."""

import json
import os
import re
from importlib.metadata import version

import pytest

from tools import answers, chapters, dry_run, instructor, notebook_form, prose, schedule
from tools.chapters import REPO
from tools.schedule import Plan
from utils import environment, preflight

BOOK = preflight.chapters()
RECORDED = preflight.reference()
NOTEBOOKS = {path.stem: chapters.read(path) for path in notebook_form.teaching()}
PAGE = (REPO / "chapters" / "instructor.md").read_text(encoding="utf-8")


def made_up(**seconds):
    """(book, recorded) of chapters of 20 + 10 minutes: made_up(a=61)."""
    book = {name: {"title": name.upper(), "reading": 20, "exercises": 10} for name in seconds}
    return book, {"chapters": {name: {"seconds": s} for name, s in seconds.items() if s is not None}}


# --- the book's own ---------------------------------------------------------------------


@pytest.mark.parametrize("plan", schedule.PLANS.values(), ids=schedule.PLANS)
def test_no_schedule_overruns(plan):
    assert schedule.overruns(plan, BOOK, RECORDED) == []


@pytest.mark.parametrize("plan", schedule.PLANS.values(), ids=schedule.PLANS)
def test_a_schedule_uses_its_time(plan):
    """Not much is left over, and nobody sits longer than two hours."""
    assert schedule.spare(plan, BOOK, RECORDED) <= 0.15 * plan.minutes
    sitting = 0
    for slot in schedule.slots(plan, BOOK, RECORDED):
        sitting = 0 if slot.what.lower() in schedule.PAUSES else sitting + slot.minutes
        assert sitting <= 120, f"{plan.title}: {sitting} minutes without a pause before {slot.what}"


def test_the_seconds_were_measured_on_one_machine():
    assert RECORDED["effort"] == "read" and RECORDED["cores"] >= 1 and RECORDED["calibration"]["python"] > 0
    assert set(RECORDED["chapters"]) <= {path.stem[:2] for path in chapters.find()}
    assert all(entry["seconds"] > 0 for entry in RECORDED["chapters"].values())


def test_every_chapter_has_its_three_points():
    for number, chapter in BOOK.items():
        found = re.search(rf"^### {number} (.+)\n\n((?:- .+\n)+)", PAGE, re.M)
        assert found and found[1] == chapter["title"], f"instructor.md says nothing about chapter {number}"
        assert [line.split(":")[0] for line in found[2].splitlines()] == [
            "- Stumbling point", "- Skip when late", "- Ask the room"]


def test_every_audience_begins_with_the_timer():
    for _, numbers, _ in schedule.AUDIENCES:
        assert numbers[0] == "00" and len(set(numbers)) == len(numbers)
    assert {number for _, numbers, _ in schedule.AUDIENCES for number in numbers} >= set(BOOK)


def test_the_page_has_a_place_for_each_part_and_no_measured_number():
    parts = instructor.parts()
    assert sorted(re.findall(r"<!-- made when the site is built: (\w+) -->", PAGE)) == sorted(parts)
    assert prose.sentence_faults(PAGE) == [] and prose.measured_numbers(PAGE) == []


# --- the parts of the page ----------------------------------------------------------------


def test_all_exercises_with_minutes_and_solution():
    text = instructor.exercises(NOTEBOOKS)
    solutions = [cell.id for notebook in NOTEBOOKS.values() for cell in notebook.cells if cell.id.startswith("solution-")]
    assert re.findall(r"`(solution-[\d-]+)`", text) == solutions and len(solutions) >= 20
    minutes = [int(found) for found in re.findall(r"\| (\d+) \| `", text)]
    assert sum(minutes) == sum(chapter["exercises"] for chapter in BOOK.values())
    assert '<a href="20_regional_compilation.html#exercise-20-1-find-the-regions-yourself-8-min">20.1</a>' in text
    assert "| Find the regions yourself | 8 |" in text


def test_the_handout_has_three_questions_a_chapter_with_folded_answers():
    text = instructor.quiz(NOTEBOOKS)
    sections = re.split(r"^### Questions of chapter ", text, flags=re.M)[1:]
    assert [section[:2] for section in sections] == list(BOOK)
    for section in sections:
        assert section.count("<summary>Answer</summary>") == 3 == section.count("</details>")
    assert "Further reading" not in text and "Instructor note" not in text


def test_minutes_and_audiences_are_sums():
    book, recorded = made_up(a=61, b=None)
    assert "| a A | 20 | 10 | 2 | 32 |" in instructor.minutes(book, recorded)
    assert "| b B | 20 | 10 | not timed | 30 |" in instructor.minutes(book, recorded)
    rows = instructor.audiences({"00": BOOK["00"]}, {"chapters": {}}).splitlines()[2:]
    assert len(rows) == len(schedule.AUDIENCES)
    assert all(row.split(" | ")[1:3] == ["00", str(BOOK["00"]["reading"] + BOOK["00"]["exercises"])] for row in rows)


def test_schedules_have_clock_times():
    text = instructor.schedules(BOOK, RECORDED)
    assert text.count("| 09:00 | 10 | Opening") == len(schedule.PLANS)
    assert "### 90 minutes" in text and "| 10:30 | " in text and "`make dry-run SCHEDULE=half`" in text


def test_parts_are_put_into_the_page(monkeypatch):
    class Env:
        book_additions = {"chapters/instructor": {"quiz": "Q", "minutes": "M"}}

    source = [f"a {answers.PART % 'minutes'} b {answers.PART % 'quiz'} c"]
    answers.put_in(type("App", (), {"env": Env}), "chapters/instructor", source)
    assert source == ["a M b Q c"]


# --- schedules --------------------------------------------------------------------------


def test_slots_follow_each_other():
    book, recorded = made_up(a=61, b=59)
    plan = Plan("T", 120, ("a", "break", "b", "later"))  # a chapter that the book has not yet
    found = [(slot.start, slot.minutes, slot.chapter) for slot in schedule.slots(plan, book, recorded)]
    assert found == [(0, 10, ""), (10, 32, "a"), (42, 15, ""), (57, 31, "b"), (88, 5, "")]
    assert schedule.spare(plan, book, recorded) == 27 and schedule.overruns(plan, book, recorded) == []


@pytest.mark.parametrize("seconds, minutes, told", [
    (60, 46, []), (61, 46, ["T: it takes 1 minutes more than the 46 it has."]),
    (21 * 60, 90, ["T: chapter a runs longer than it takes to read."]), (20 * 60, 90, []),
    (None, 90, ["T: chapter a was not timed; python -m tools.dry_run a --write does it."])])
def test_overruns_are_told(seconds, minutes, told):
    book, recorded = made_up(a=seconds)
    assert schedule.overruns(Plan("T", minutes, ("a",)), book, recorded) == told


def test_clock():
    assert schedule.clock("09:00", 75) == "10:15" and schedule.clock("23:30", 45) == "00:15"
    for wrong in ("9", "24:00", "x:y", "09:60"):
        with pytest.raises(ValueError):
            schedule.clock(wrong, 0)


# --- the dry run ------------------------------------------------------------------------


@pytest.fixture
def room(monkeypatch, tmp_path):
    """A book of two chapters that run 61 and 30 seconds, and a plan of both."""
    book, recorded = made_up(a=61, b=30)
    recorded |= {"cpu": environment.cpu_name(), "cores": os.cpu_count(), "torch": version("torch"), "effort": "read"}
    monkeypatch.setattr(preflight, "chapters", lambda: book)
    monkeypatch.setattr(preflight, "reference", lambda: recorded)
    monkeypatch.setattr(preflight, "REFERENCE", str(tmp_path / "seconds" / "reference.json"))
    monkeypatch.setattr(preflight, "calibrate", lambda: {"python": 0.0123456})
    monkeypatch.setitem(schedule.PLANS, "t", Plan("T", 80, ("a", "b")))
    return tmp_path / "seconds" / "reference.json"


def command(monkeypatch, runs, *words):
    """Runs the command with these (seconds, share) instead of chapters; its exit status."""
    monkeypatch.setattr(dry_run, "run", lambda number: runs[number])
    monkeypatch.setattr("sys.argv", ["dry_run", *words])
    try:
        return dry_run.main() or 0
    except SystemExit as ended:
        return ended.code


def test_a_dry_run_in_time(room, monkeypatch, capsys):
    assert command(monkeypatch, {"a": (100, 0), "b": (20, 0)}, "t", "--start", "13:30") == 0
    said = capsys.readouterr().out
    assert "13:40   32 min  a A" in said and "13:40 to 14:12  a A: ran in 100 s\n" in said
    assert "14:12 to 14:43  b B: ran in 20 s\n" in said and said.endswith("The room ends in time, with 2 minutes left over.\n")
    assert not room.exists()


def test_a_dry_run_that_is_late(room, monkeypatch, capsys):
    assert command(monkeypatch, {"a": (121, 0), "b": (181, 0)}, "t") == 1
    said = capsys.readouterr()
    assert "09:10 to 09:43  a A: ran in 121 s, 1 min more than planned" in said.out
    assert "09:43 to 10:17  b B: ran in 181 s, 3 min more" in said.out
    assert said.err == "The room would end 2 minutes late.\n"


def test_the_seconds_are_kept(room, monkeypatch, capsys):
    assert command(monkeypatch, {"a": (99.44, 0.01)}, "a", "--write") == 0
    found = json.loads(room.read_text())
    assert found["chapters"] == {"a": {"seconds": 99.4, "other_load": 0.01}, "b": {"seconds": 30}}
    assert found["calibration"] == {"python": 0.01235} and found["effort"] == "read" and found["torch"]


def test_seconds_of_two_machines_are_not_mixed(room, monkeypatch, capsys):
    """The machine check divides them by one calibration."""
    preflight.reference()["cpu"] = "another"
    assert command(monkeypatch, {"a": (99, 0)}, "a", "--write") == 1 and not room.exists()
    assert "are another machine's, and chapters b are missing" in capsys.readouterr().err
    assert command(monkeypatch, {"a": (99, 0), "b": (1, 0)}, "all", "--write") == 0 and room.exists()


def test_a_busy_machine_keeps_nothing(room, monkeypatch, capsys):
    assert command(monkeypatch, {"a": (99, 0.5)}, "a", "--write") == 1 and not room.exists()
    assert "used 50 % of the cores" in capsys.readouterr().err
    assert command(monkeypatch, {"a": (99, 0.5)}, "a", "--write", "--allow-busy") == 0
    assert json.loads(room.read_text())["chapters"]["a"]["other_load"] == 0.5


@pytest.mark.parametrize("words, said", [(["c"], "no schedule or chapter 'c'"), (["t", "--start", "25:00"], "--start 25:00")])
def test_a_wrong_word_is_one_sentence(room, monkeypatch, capsys, words, said):
    assert command(monkeypatch, {}, *words) == 2
    told = capsys.readouterr().err
    assert said in told and len(told.splitlines()) == 1


def test_all_is_every_chapter(room, monkeypatch):
    assert command(monkeypatch, {"a": (1, 0), "b": (2, 0)}, "all", "--write") == 0
    assert [entry["seconds"] for entry in json.loads(room.read_text())["chapters"].values()] == [1, 2]


def test_a_chapter_that_fails_ends_the_run(monkeypatch, capsys):
    def fail(*_):
        raise chapters.Failed("00_measure, cell naive: no")

    monkeypatch.setattr(chapters, "execute", fail)
    with pytest.raises(SystemExit) as ended:
        dry_run.run("00")
    assert ended.value.code == 1 and "cell naive" in capsys.readouterr().err
