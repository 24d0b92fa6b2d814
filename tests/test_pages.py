"""The pages made while the site is built, and the gates' committed answers."""

import json
import os
import re
import time

import pytest
import test_recorded
import torch

from tools import chapters, gates, notebook_form, pages
from utils import claims, environment, recorded


# --- the scoreboard ----------------------------------------------------------------------


def test_the_scoreboard_shows_a_new_recorded_file(tmp_path, monkeypatch):
    """A real run in a new kernel, of the scoreboard alone."""
    (tmp_path / "recorded").mkdir()
    data = test_recorded.changed("machine", "b-desktop")
    (tmp_path / "recorded" / recorded.file_name(data)).write_text(json.dumps(data), encoding="utf-8")
    (tmp_path / "recorded" / "evil.json").write_text('{"machine": "<script>"}', encoding="utf-8")
    monkeypatch.setenv("BOOK_RECORDED", str(tmp_path / "recorded"))
    monkeypatch.setattr(pages, "EXECUTED", tmp_path / "_build" / "99_scoreboard.ipynb")
    before = pages.SCOREBOARD.read_bytes()
    text = pages.executed_scoreboard()
    assert pages.SCOREBOARD.read_bytes() == before  # nothing that is committed changes
    shown = "".join("".join(out.get("text", "")) + "".join(out.get("data", {}).get("text/html", ""))
                    for cell in json.loads(text)["cells"] for out in cell.get("outputs", []))
    assert shown.count('<article class="claim"') == len(claims.load()) and "b-desktop, torch 2.13.0" in shown
    assert "Left out: evil.json: " in shown and "<script" not in shown
    assert '.ipynb"' not in shown and 'href="20_regional_compilation.html"' in shown
    assert list(notebook_form.output_faults(chapters.read(pages.EXECUTED))) == []


def test_it_runs_when_something_changed_and_else_not(tmp_path, monkeypatch):
    for name in ("claims.yml", "utils/scoreboard.py", "recorded/a.json", "room/a.json", "chapters/99_scoreboard.ipynb"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pages.SCOREBOARD.read_bytes())
    runs = []

    def runs_now():
        """Whether it ran, once."""
        before = len(runs)
        pages.executed_scoreboard()
        once = len(runs)
        pages.executed_scoreboard()
        assert len(runs) == once
        return once > before

    def run(notebook, path, env):
        assert os.listdir(env["BOOK_RESULTS"]) == []  # no last run of who builds the site
        runs.append(path)

    monkeypatch.setattr(pages.chapters, "execute", run)
    monkeypatch.setattr(pages, "SCOREBOARD", tmp_path / "chapters" / "99_scoreboard.ipynb")
    monkeypatch.setattr(pages, "REPO", tmp_path)
    monkeypatch.setattr(pages, "EXECUTED", tmp_path / "_build" / "99_scoreboard.ipynb")
    monkeypatch.setenv("BOOK_RECORDED", str(tmp_path / "recorded"))
    assert runs_now()
    for name in ("claims.yml", "utils/scoreboard.py", "recorded/a.json", "chapters/99_scoreboard.ipynb"):
        for when in (20, -20):  # an older file is another file too
            os.utime(tmp_path / name, (time.time() + when,) * 2)
            assert runs_now(), name
    (tmp_path / "recorded" / "b.json").symlink_to("nowhere")
    assert runs_now()
    (tmp_path / "recorded" / "b.json").unlink()
    assert runs_now()
    monkeypatch.setenv("BOOK_RECORDED", str(tmp_path / "room"))
    assert runs_now()


def test_the_committed_scoreboard_has_no_outputs():
    assert not any(cell.get("outputs") for cell in chapters.read(pages.SCOREBOARD).cells)


# --- corrections ---------------------------------------------------------------------------


def test_every_correction_is_there_once_with_its_addresses():
    text = pages.corrections(recorded.load(chapters.REPO / "recorded"))
    wanted = [row for row in claims.load().values() if "correction" in row]
    assert sorted(re.findall(r'id="([^"]+)"', text)) == sorted(row["id"] for row in wanted)
    for row in wanted:
        for address in [row["source"]["url"], *(s["url"] for s in row["said_by"] if "url" in s)]:
            assert f'href="{address}"' in text
    assert "## Chapter 20 regional compilation" in text and 'href="20_regional_compilation.html"' in text
    # A blank line in a card would end its HTML, and what follows would be read as Markdown.
    assert all(re.fullmatch(r"## .*|<article .*</article>", part) for part in text.split("\n\n"))


# --- since 2.5 -----------------------------------------------------------------------------


def test_the_committed_gates_are_what_the_gates_say_today():
    """Of each lane; another torch has no committed answers. The machine plays no part."""
    committed = gates.load()
    assert {"2.5.1", "2.13.0"} <= set(committed)
    release = torch.__version__.split("+")[0]
    answers = gates.answers()
    assert committed.get(release, answers) == answers, "run python -m tools.gates --write in each lane"
    assert set(answers) | gates.OF_THE_MACHINE == set(environment.GATES)


def test_the_gates_of_a_version_are_the_same_on_every_machine(monkeypatch):
    here = gates.answers()
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    monkeypatch.setitem(environment._gates, "compiler", environment.Gate(False, "No compiler."))
    assert gates.answers() == here


def test_every_gate_that_changed_is_told_with_both_sentences(monkeypatch):
    answers = {"2.5.1": {"a_flag": {"ok": False, "reason": "No <b>."}, "same": {"ok": True, "reason": "Yes."}},
               "2.13.0": {"a_flag": {"ok": True, "reason": "Yes & more."}, "same": {"ok": True, "reason": "Yes."},
                          "new": {"ok": True, "reason": "New."}}}
    monkeypatch.setattr(gates, "load", lambda: answers)
    text = pages.since()
    assert "<strong>torch 2.5.1</strong>: No &lt;b&gt;." in text and "Yes &amp; more." in text
    assert text.count("<article") == 1 and "New." not in text


def test_since_links_to_the_chapters_that_ask():
    text = pages.since()
    assert 'Gate <code>inline_flag</code>, asked in <a href="20_regional_compilation.html">chapter 20</a>' in text
    assert list(gates.load()) == sorted(gates.load(), key=lambda v: [int(n) for n in v.split(".")])


def test_the_command_tells_what_changed(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", ["gates"])
    monkeypatch.setattr(gates, "answers", lambda: {**gates.load()["2.5.1"],
                                                   "inline_flag": {"ok": False, "reason": "Now it is always on."}})
    gates.main()
    said = capsys.readouterr().out
    assert said.startswith("1 of ") and "Now it is always on." in said
    monkeypatch.setattr("sys.argv", ["gates", "--write"])
    monkeypatch.setattr(gates, "FOLDER", tmp_path / "gates")
    monkeypatch.setattr(gates, "answers", lambda: {"a": {"ok": True, "reason": "Yes."}})
    gates.main()
    assert list(gates.load().values()) == [{"a": {"ok": True, "reason": "Yes."}}]
