"""The lines and the picture that the site computes from recorded results."""

import json
import re
import shutil
from html import escape
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import answers, site
from utils import preflight
from utils.ratio import Ratio
from utils.recorded import load, numbers, release


def comparison(baseline, ratios, first_call_s=10.0):
    """A recorded comparison: name -> (value, low, high)."""
    return {"kind": "comparison", "baseline": baseline,
            "entries": {name: {"median_s": 0.001, "first_call_s": first_call_s} for name in (baseline, *ratios)},
            "ratios": {name: dict(zip(("value", "low", "high"), r)) for name, r in ratios.items()}}


def rows(*items):
    return {"kind": "rows", "rows": list(items)}


def case(name, low, word):
    return {"case": name, "value": low + 0.1, "low": low, "high": low + 0.2, "word": word}


def machine(torch="2.13.0+cpu", name="reference", **results):
    chapters = {}
    for key, entry in results.items():
        number, _, rest = key[1:].partition("_")
        chapters.setdefault(number, {"results": {}})["results"][f"{number}.{rest}"] = entry
    return {"machine": name, "provenance": {"torch": torch, "cores": 2, "cpu": "A & B"}, "chapters": chapters}


def length_row(backend, length, value):
    return {"backend": backend, "length": length, "ratio": value, "low": value, "high": value,
            "peak_bytes": 5e6 if backend == "flash" else 5e8}


def operator(name, dtype, value, word):
    return {"operator": name, "dtype": dtype, "ratio": value, "low": value, "high": value, "word": word}


FULL = {
    "r00_steady": comparison("eager", {"compiled": (5, 4.5, 5.5)}),
    "r00_tiny": comparison("eager", {"compiled": (0.3, 0.2, 0.4)}),
    "r20_cold_depth": rows({"layers": 4, "whole_s": 4.0, "regional_s": 3.0, "ratio": 4 / 3},
                           {"layers": 48, "whole_s": 30.0, "regional_s": 3.0, "ratio": 10.0,
                            "low": 9.0, "high": 11.0}),
    "r30_cases": rows(case("relu small", 0.8, "slower"), case("gelu large", 5.0, "faster"),
                      case("norm large", 1.2, "faster")),
    "r50_window_4096": comparison("SDPA, additive mask",
                                  {"SDPA, bool mask": (2, 2, 2), "flex, compiled": (16, 14, 18)}),
    "r10_by_length": rows(*(length_row(name, n, ratio) for n in (128, 4096)
                            for name, ratio in (("math", 1.0), ("flash", n / 1024)))),
    "r35_large": comparison("eager", {"compiled": (3, 2.5, 3.5)}),
    "r35_tiny": comparison("eager", {"compiled": (0.2, 0.1, 0.3)}),
    "r40_operators": rows(operator("matmul", "float16", 0.1, "slower"), operator("add", "float16", 1.5, "faster"),
                          operator("sum", "float16", 0.9, "slower"), operator("matmul", "bfloat16", 2.0, "faster")),
    "r45_next_token": comparison("default", {"max-autotune": (1.2, 1.1, 1.3)}),
    "r45_shapes": rows({"shape": "1x64x64", "value": 1.5, "low": 1.4, "high": 1.6},
                       {"shape": "geometric mean", "value": 1.1, "low": 1.05, "high": 1.15}),
    "r60_hooks": comparison("eager", {"in pieces": (1, 1, 1), "one backward": (2, 1.8, 2.2)}),
    "r60_step": comparison("eager", {"in pieces": (0.6, 0.5, 0.7), "one backward": (0.5, 0.45, 0.55)}),
    "r70_overhead_number": comparison("off", {"on": (0.9, 0.85, 0.95)}),
    "r80_import": comparison("no backend", {"five backends": (0.98, 0.9, 1.1)}),
    "r90_step_by_batch": rows(*[{"device": device, "batch": batch, "step_s": 1.0, "value": value, "low": value - 0.1,
                                 "high": value + 0.1} for batch in (1, 256)
                                for device, value in (("cpu", 1.0), ("own", 0.2 if batch == 1 else 0.5))]),
    "r95_starts": rows({"start": "empty folder", "first_call_s": 6.0}, {"start": "full folder", "first_call_s": 2.0}),
}


def test_a_line_for_each_chapter():
    lines = {chapter: answers.under_title(*said) for chapter, said in answers.answers([machine(**FULL)]).items()}
    assert list(lines) == list(answers.ANSWERS) == sorted(lines)
    assert "Yes, also without cuDNN: over 4096 tokens flash runs 4.00× [4.00, 4.00]" in lines["10"]
    assert "5.00 MB of memory instead of 500 MB" in lines["10"]
    assert "Yes, for a million numbers: 3.00×" in lines["35"] and "for eight it is 0.20×" in lines["35"]
    assert "Seldom, on this CPU: 1 of 3 operators run faster in float16 and 2 slower" in lines["40"]
    assert "Yes, for the next token of a small decoder: it comes 1.20× [1.10, 1.30] as fast" in lines["45"]
    assert "the mean is 1.10× [1.05, 1.15]" in lines["45"]
    assert "Yes, for a step whose hooks work on the gradients" in lines["60"] and "runs 2.00× [1.80, 2.20] as" in lines["60"]
    assert "without hooks runs 0.50× [0.45, 0.55] as fast" in lines["60"]
    assert "0.90×" in lines["70"] and "takes 1.00 ms without a backend" in lines["80"]
    assert ("on a device that PyTorch does not know: with 256 sequences" in lines["90"] and "0.50× [0.40, 0.60]" in lines["90"]
            and "with 1 it runs 0.20×" in lines["90"])
    assert "Yes, from the second start on: the first call takes 2.00 s instead of 6.00 s" in lines["95"]
    assert "No: the first compiled call took 10.0 s, later ones 1.00 ms" in lines["00"]
    assert "with 48 layers it takes 3.00 s with one block compiled, 30.0 s as a whole" in lines["20"]
    assert "Mostly: 2 of 3 cases run faster compiled and 1 slower; the best is gelu large" in lines["30"]
    assert "runs 8.00× [7.00, 9.00] as fast as with the faster dense mask" in lines["50"]
    assert all("(2 cores, A &amp; B, torch 2.13.0)" in line for line in lines.values())


def test_the_dense_mask_to_beat_is_the_faster_one():
    slow_bool = comparison("SDPA, additive mask", {"SDPA, bool mask": (0.5, 0.5, 0.5), "flex, compiled": (6, 5, 7)})
    assert answers.window(machine(r50_window_4096=slow_bool)) == Ratio(6, 5, 7)


@pytest.mark.parametrize("r, word", [((2, 1.04, 3), "Yes"), ((0.9, 0.8, 0.96), "No"),
                                     ((2, 1.02, 3), "No clear difference")])
def test_the_word_needs_interval_and_margin(r, word):
    assert answers.yes_or_no(Ratio(*r)) == word


def test_the_margin_is_that_of_the_timer():
    assert answers.Ratio is pytest.importorskip("utils.timing").Ratio


def test_what_is_not_recorded_is_not_answered():
    assert answers.answers([]) == answers.answers([machine()]) == {}
    assert answers.answers([machine(name="laptop", **FULL)]) == {}
    assert answers.headline([machine()]) is None
    assert "Nothing is recorded yet" in answers.headline_markdown([])


def test_the_newest_torch_that_has_an_answer_gives_it():
    old = machine("2.5.1", **FULL)
    new = machine("2.13.0", r00_steady=FULL["r00_steady"])
    said = answers.answers([old, new])
    assert said["00"][-1].endswith("torch 2.13.0") and said["50"][-1].endswith("torch 2.5.1")


def test_headline(monkeypatch, tmp_path):
    monkeypatch.setattr(answers, "PICTURE", tmp_path / "headline.png")
    files = [machine("2.5.1", **FULL), machine("2.13.0", **FULL)]
    nightly = machine("2.15.0", **FULL)
    nightly["machine"], nightly["provenance"]["torch"] = "somebody", "2.15.0a0+git"
    files.append(nightly)  # a contributor's: no word in the reference's picture
    text = answers.headline_markdown(files)
    assert text.startswith("![Bars of measured ratios") and text.endswith("(_build/headline.png)")
    assert "dense mask / FlexAttention, 2.13.0: 8.00" in text and "whole / one block compiled, 2.5.1: 10.00" in text
    first = answers.PICTURE.stat().st_mtime_ns
    assert answers.PICTURE.stat().st_size < 60_000
    answers.headline_markdown(files)
    assert answers.PICTURE.stat().st_mtime_ns == first  # nothing changed: nothing to build again


@pytest.fixture
def app(monkeypatch, tmp_path):
    monkeypatch.setattr(answers, "PICTURE", tmp_path / "headline.png")
    monkeypatch.setattr(answers, "pages", SimpleNamespace(  # tests/test_pages.py makes them
        corrections=lambda files: "corrected", since=lambda: "changed", executed_scoreboard=lambda: "executed"))
    return SimpleNamespace(env=SimpleNamespace(found_docs={"index", "chapters/50_flex", "chapters/setup"}))


def outdated(app, monkeypatch, *files):
    monkeypatch.setattr(answers, "load", lambda: list(files))
    return set(answers.find_outdated(app, app.env, set(), set(), set()))


def test_pages_are_read_again_when_their_answer_changes(app, monkeypatch):
    assert outdated(app, monkeypatch) == {"index"}
    assert outdated(app, monkeypatch) == set()
    assert outdated(app, monkeypatch, machine(**FULL)) == {"index", "chapters/50_flex"}
    assert outdated(app, monkeypatch, machine(**FULL)) == set()


def test_the_line_goes_under_the_title_and_nowhere_else(app, monkeypatch):
    outdated(app, monkeypatch, machine(**FULL))
    notebook = {"cells": [{"source": ["# FlexAttention\n", "\n", "A question?"]}, {"source": "code"}]}
    source = [json.dumps(notebook)]
    answers.put_in(app, "chapters/50_flex", source)
    title, code = json.loads(source[0])["cells"]
    assert title["source"].startswith('# FlexAttention\n\n<p class="answer">') and title["source"].endswith("A question?")
    assert code == {"source": "code"}
    source = ["# Set up"]
    answers.put_in(app, "chapters/setup", source)
    assert source == ["# Set up"]


@pytest.mark.parametrize("results, answered", [(FULL, True), ({}, False)])
def test_the_landing_page_has_the_picture_answers_and_minutes(app, monkeypatch, repo, results, answered):
    outdated(app, monkeypatch, machine(**results))
    source = [(repo / "index.md").read_text(encoding="utf-8")]
    answers.put_in(app, "index", source)
    assert answers.MARK[:-4] not in source[0]  # no place is left empty
    assert ("![Bars of measured" in source[0]) == answered
    rows = dict(re.findall(r"^\| \[(\d\d) (.+) \|$", source[0], re.M))
    assert list(rows) == list(answers.ANSWERS)
    full = answers.answers([machine(**FULL)])
    for number, chapter in preflight.chapters().items():
        assert f"{chapter['reading']} min to read, {chapter['exercises']} min of exercises</small>" in rows[number]
        assert (f"<br><small>{escape(' '.join(full[number][:2]))}</small>" in rows[number]) == answered


def test_made_pages_are_put_in(app, monkeypatch):
    outdated(app, monkeypatch)
    for name, text, made in (("99_scoreboard", "{}", "executed"), ("since", f"a {answers.MARK} b", "a changed b"),
                             ("corrections", f"a {answers.MARK} b", "a corrected b")):
        source = [text]
        answers.put_in(app, f"chapters/{name}", source)
        assert source == [made]


@pytest.mark.parametrize("page", ["chapters/corrections", "chapters/since"])
def test_pages_have_a_place_for_what_is_made(repo, page):
    assert (repo / f"{page}.md").read_text(encoding="utf-8").count(answers.MARK) == 1


def test_the_recorded_results_answer_every_chapter(repo):
    """A renamed result would silently cost the chapter its answer, and the picture its bar."""
    files = load(repo / "recorded")
    assert sorted(answers.answers(files)) == list(answers.ANSWERS)
    newest = max((data for data in files if data["machine"] == answers.MACHINE), key=lambda data: numbers(release(data)))
    assert [what for what, ask in answers.HEADLINES.items() if not ask(newest)] == []


# --- tools.site: what needs no build ---------------------------------------------------------


def test_buttons_only_with_an_address(monkeypatch, tmp_path, repo):
    monkeypatch.setattr(site, "REPO", tmp_path)
    shutil.copy(repo / "_config.yml", tmp_path)
    made = site.with_buttons(tmp_path / "_config.yml", "https://github.com/a/book").read_text(encoding="utf-8")
    assert "url: https://github.com/a/book" in made and "use_repository_button: true" in made
    assert "use_repository_button" not in (repo / "_config.yml").read_text(encoding="utf-8")
    for wrong in ("javascript:alert(1)", "https://example.org/a/book", "github.com/a/book"):
        with pytest.raises(SystemExit, match="GitHub, GitLab or Bitbucket"):
            site.with_buttons(tmp_path / "_config.yml", wrong)


def test_serving_is_for_this_machine_only_and_finds_a_free_port(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(site.http.server.ThreadingHTTPServer, "serve_forever", lambda self: None)
    monkeypatch.setattr(site, "HTML", tmp_path)
    with pytest.raises(SystemExit, match="make book"):
        site.serve(0)
    Path(tmp_path / "index.html").touch()
    with site.server(0, tmp_path) as taken:
        address, port = taken.server_address
        assert address == "127.0.0.1"
        site.serve(port)
    said = capsys.readouterr().out
    assert f"Port {port} is taken" in said and "http://127.0.0.1:" in said
