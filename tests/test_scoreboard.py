"""The scoreboard: what runs say about the ledger's claims, and that bad files cost a sentence."""

import json
import re
from html.parser import HTMLParser

import pytest
import test_claims
import test_recorded

from utils import claims, plots, recorded, scoreboard
from utils.ratio import Ratio


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """Recorded and own results of the test alone."""
    for name in ("BOOK_RECORDED", "BOOK_RESULTS"):
        monkeypatch.setenv(name, str(tmp_path / name))
        (tmp_path / name).mkdir()
    monkeypatch.setattr(recorded, "_told", set())
    claims.load.cache_clear()
    return tmp_path


def claim(name="a.ratio", **changes):
    return {"id": name, "row": 1, "chapter": "20", "claim": "It is faster.", "kind": "measured",
            "said_by": [{"who": "A post", "url": "https://example.org/said"}],
            "source": {"title": "Its source", "url": "https://example.org/source"},
            "quantity": "time before over after", "test": "at_least 1.5", **changes}


STATEMENT = {"kind": "statement", "test": "statement", "correction": "It is not."}


def run(machine="laptop", torch="2.13.0", word="holds here", **measured):
    """A recorded run: a_ratio=... is what it measured for the claim a.ratio."""
    return {"machine": machine, "provenance": {"torch": torch, "cpu": "A & B", "cores": 2, "device": "cpu",
                                               "os": "Linux", "python": "3.11.7"},
            "chapters": {"20": {"run": {"date": "2026-01-02T03:04:05Z"}, "results": {}, "verdicts": {
                name.replace("_", ".", 1): {"measured": value, "word": word} for name, value in measured.items()}}}}


def ratio(low, high):
    return {"value": (low + high) / 2, "low": low, "high": high}


def rows(files, *listed):
    return scoreboard.rows(files, {c["id"]: c for c in listed or (claim(),)})


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


# --- words -----------------------------------------------------------------------------


def test_the_word_is_computed_and_not_believed():
    [row] = rows([run(word="holds here", a_ratio=ratio(1.1, 1.2)), run(torch="2.5.1", a_ratio=ratio(1.6, 1.7))])
    assert [(v.word, v.torch) for v in row.verdicts] == [("does not hold here", "2.13.0"), ("holds here", "2.5.1")]
    assert row.verdicts[1].measured == Ratio(1.65, 1.6, 1.7)


def test_what_could_not_be_measured_says_what_it_needs():
    [row] = rows([run(word="not measurable here (needs a CUDA device)", a_ratio=None)])
    assert row.verdicts[0].word == "not measurable here (needs a CUDA device)"
    assert row.words == ["not measurable here"] and row.group == scoreboard.NEEDS


def test_a_share_and_a_count():
    listed = [claim("a.share", test="share 0.5"), claim("a.count", test="equals 1", kind="exact")]
    share, count = rows([run(a_share={"wins": 24, "total": 24, "low": 0.8, "high": 1}, a_count=3)], *listed)
    assert share.words == ["holds here"] and "100 % [86, 100]" in scoreboard.card(share)
    assert count.words == ["does not hold here"] and "measured 3" in scoreboard.card(count)


def test_a_statement_rests_on_the_ledger_alone():
    statement = claim("a.statement", **STATEMENT)
    [row] = rows([run(word="holds here", a_statement=True)], statement)
    assert row.verdicts == (scoreboard.Verdict("wrong as stated"),)


def test_what_nobody_recorded_is_said():
    [row] = rows([])
    assert row.words == [scoreboard.NOT_YET] and "not recorded yet" in scoreboard.card(row)


def test_of_several_chapters_the_last_one_counts():
    data = run(a_ratio=ratio(1.1, 1.2))
    data["chapters"]["95"] = run(a_ratio=ratio(1.6, 1.7))["chapters"]["20"]
    [row] = rows([data])
    assert row.words == ["holds here"]


@pytest.mark.parametrize("measured, said", [
    ({"a_other": 1}, "a.other: no such claim is in the ledger."),
    ({"a_ratio": "fast"}, "a.ratio: at_least 1.5: a Ratio or a number is wanted, got str."),
    ({"a_ratio": {"wins": 1, "total": 2, "low": 0, "high": 1}}, "a.ratio: at_least 1.5: a Ratio"),
    ({"a_ratio": None}, "a.ratio: nothing was measured, and not said what that needs."),
])
def test_a_verdict_that_does_not_fit_costs_a_sentence(measured, said, capsys):
    [row] = rows([run(**measured), run("desktop", a_ratio=2)])
    assert [v.machine for v in row.verdicts] == ["desktop"]
    out = capsys.readouterr().out
    assert out.startswith("Left out: laptop.torch-2.13.0.json: ") and said in out.replace("a.ratio: a.ratio", "a.ratio")


# --- classes ------------------------------------------------------------------------------


HOLDS, FAILS, UNSURE = ratio(2, 3), ratio(1, 1.2), ratio(1.4, 1.6)
NEEDED = "not measurable here (needs a GPU)"


@pytest.mark.parametrize("runs, changes, group", [
    ([HOLDS, HOLDS], {}, claims.HOLDS), ([HOLDS, None], {}, claims.HOLDS), ([HOLDS, UNSURE], {}, scoreboard.MIXED),
    ([HOLDS, FAILS], {}, scoreboard.MIXED), ([FAILS, UNSURE], {}, claims.FAILS), ([FAILS, None], {}, claims.FAILS),
    ([UNSURE, UNSURE], {}, claims.UNSURE), ([None, None], {}, scoreboard.NEEDS), ([], {}, scoreboard.NOT_YET),
    ([FAILS, UNSURE], {"test": "reaches 1.5"}, claims.NOT_REACHED), ([], STATEMENT, claims.WRONG),
])
def test_every_claim_is_in_one_class(runs, changes, group):
    files = [run(f"m{n}", word=NEEDED, a_ratio=measured) for n, measured in enumerate(runs)]
    [row] = rows(files, claim(**changes))
    assert row.group == group
    text = Tags(scoreboard.summary([row])).text
    assert f"{scoreboard.GROUPS[group][0]}: 1 of 1." in text and text.count(" of 1.") == 1


def test_the_summary_says_where_words_differ_and_what_is_needed():
    files = [run("m1", a_ratio=HOLDS), run("m2", a_ratio=FAILS, word=NEEDED, a_gpu=None)]
    text = Tags(scoreboard.summary(rows(files, claim(), claim("a.gpu")))).text
    assert "The runs are of 2 machines." in text and "a.gpu (needs a GPU)" in text
    assert "a.ratio (m1, torch 2.13.0: holds here; m2, torch 2.13.0: does not hold here)" in text
    assert "No machine has recorded" in scoreboard.summary(rows([]))


def test_the_books_own_ledger_and_files(monkeypatch, capsys):
    monkeypatch.delenv("BOOK_RECORDED")
    files = scoreboard.files()
    found = scoreboard.rows(files)
    assert [row.claim["id"] for row in found] == list(claims.load()) and "Left out" not in capsys.readouterr().out
    cards = Tags(scoreboard.board(found))
    assert [a["id"] for tag, a in cards.tags if tag == "article"] == [row.claim["id"] for row in found]
    assert all(word in scoreboard.WORDS for row in found for word in row.words)
    assert sum(row.group in scoreboard.GROUPS for row in found) == len(found)
    links = {a["href"].removeprefix("#") for tag, a in Tags(scoreboard.summary(found)).tags if tag == "a"}
    assert links == {row.claim["id"] for row in found}
    assert scoreboard.runs(files).count("<li>") == len(files)


# --- pages ----------------------------------------------------------------------------------


def test_a_card_names_both_sides_and_the_correction():
    [row] = rows([run(a_ratio=HOLDS)], claim(correction="A & B.", conditions="On a Monday."))
    html = scoreboard.card(row)
    for part in ("https://example.org/said", "https://example.org/source", "A &amp; B.", "On a Monday.",
                 "time before over after: at least 1.50×", "laptop, torch 2.13.0, measured 2.50× [2.00, 3.00]"):
        assert part in html
    assert 'href="20_regional_compilation.ipynb"' in html
    assert "chapter 77, to come" in scoreboard.card(rows([], claim(chapter="77"))[0])


def test_the_lists_hold_what_occurs():
    listed = [claim(), claim("a.other", chapter="77")]
    html = Tags(scoreboard.board(rows([run(a_ratio=HOLDS)], *listed)))
    assert [a["value"] for tag, a in html.tags if tag == "option"] == [
        "", "20", "77", "", "holds here", "not recorded yet"]
    assert [tag for tag, _ in html.tags].count("label") == [tag for tag, _ in html.tags].count("select") == 2
    assert ("div", {"class": "choice", "hidden": None}) in html.tags  # without a script everything is visible
    assert "2 of 2 claims shown" in html.text


EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>'


def test_text_is_never_markup():
    """Even what the schemas would refuse: the pages do not rely on them."""
    bad = claim(claim=EVIL, quantity=EVIL, correction=EVIL, conditions=EVIL, chapter=EVIL,
                said_by=[{"who": EVIL, "url": "https://example.org/" + EVIL}], source={"title": EVIL, "url": EVIL})
    data = run(EVIL, EVIL, word=f"not measurable here (needs {EVIL})", a_ratio=None)
    data["provenance"] |= {"cpu": EVIL, "os": EVIL, "device": EVIL, "python": EVIL}
    found = rows([data], bad) + rows([run(EVIL, a_ratio=EVIL)], claim(test="equals yes", kind="exact"))
    for html in (scoreboard.board(found), scoreboard.summary(found), scoreboard.runs([data])):
        assert not {"script", "img"} & {tag for tag, _ in Tags(html).tags}
        assert "onerror" not in json.dumps(Tags(html).tags).replace(json.dumps(EVIL)[1:-1], "")


# --- the figure --------------------------------------------------------------------------------


def test_the_figure_draws_ratios_and_shares():
    listed = [claim(), claim("a.count", test="equals 1", kind="exact"), claim("a.most", test="at_most 3"),
              claim("a.share", test="share 0.975"),
              claim("a.range", test="within [1.01, 1.05]"), claim("a.best", test="reaches 7"), claim("a.none")]
    files = [run(a_ratio=HOLDS, a_count=1, a_most=2.0, a_range=ratio(1, 1.02), a_best=5,
                 a_share={"wins": 6, "total": 24, "low": 0, "high": 1}),
             run("desktop", a_ratio={"value": 1e300, "low": 1e-300, "high": 1e300}, a_most=0,
                 a_best={"value": 8, "low": 0, "high": 1e300})]
    figure, alt = scoreboard.figure(rows(files, *listed))
    ax, below = figure.axes
    assert [label.get_text() for label in below.get_yticklabels()] == ["a.\nshare"] and below.get_xlim() == (0, 1)
    [claimed] = below.patches
    assert (claimed.get_x(), claimed.get_width()) == pytest.approx((0.975, 0.025))
    [[[x, _], [x_high, _]]] = [bar.get_segments()[0] for bar in below.collections]
    assert (x, x_high) == pytest.approx(claims.wilson(6, 24))
    assert [label.get_text().replace("\n", "") for label in ax.get_yticklabels()] == [
        "a.ratio", "a.most", "a.range", "a.best"]
    # One absurd ratio leaves the others readable.
    assert ax.get_xlim() == pytest.approx((scoreboard.SMALLEST / 1.3, scoreboard.LARGEST * 1.3))
    assert "a.most, time before over after: at most 3.00×: 2.00× on laptop, torch 2.13.0;" in alt
    assert "claimed" in alt.lower() and len(plots.png(figure)) < 60_000


def test_the_figure_of_shares_alone():
    figure, _ = scoreboard.figure(rows([run(a_share={"wins": 6, "total": 24, "low": 0, "high": 1})],
                                       claim("a.share", test="share 0.975")))
    assert len(figure.axes) == 1 and figure.legends


def test_no_figure_without_a_ratio_or_a_share():
    assert scoreboard.figure(rows([])) is None


# --- hostile files -----------------------------------------------------------------------------


FILES = {**test_recorded.BAD_DATA, **test_recorded.BAD_BYTES}
JUDGED = {name: row for name, row in test_claims.ROWS.items() if name in recorded.verdicts(test_recorded.GOOD)}


def put(folder, data, name):
    (folder / "BOOK_RECORDED" / name).write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())


@pytest.mark.parametrize("case", FILES)
def test_a_hostile_recorded_file_leaves_the_rest_standing(case, folders, capsys):
    put(folders, FILES[case][0], test_recorded.NAME)
    put(folders, test_recorded.changed("machine", "b-desktop"), "b-desktop.torch-2.13.0.json")
    files = scoreboard.files()
    html = scoreboard.board(scoreboard.rows(files, JUDGED)) + scoreboard.runs(files)
    assert [data["machine"] for data in files] == ["b-desktop"]
    assert "cannot tell here</strong>: b-desktop, torch 2.13.0" in html and "a-laptop" not in html
    assert "script" not in {tag for tag, _ in Tags(html).tags}
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Left out: ")]
    assert len(told) == 1 and told[0].startswith(f"Left out: {test_recorded.NAME}: ") and len(told[0]) < 350


def ledger_texts():
    """Case -> (the file's bytes, the claims that stand)."""
    good = test_claims.GOOD
    yield from ((f"row: {case}", (json.dumps([good, row]).encode(), ["a.good"]))
                for case, (row, _) in test_claims.BAD_ROWS.items())
    yield from ((f"yaml: {case}", (f"- {json.dumps(good)}\n{text}".encode(), ["a.good"]))
                for case, (text, _) in test_claims.BAD_TEXT.items())
    yield from ((f"file: {case}", (content, [])) for case, (content, _) in test_claims.BAD_FILES.items()
                if content is not None)


LEDGERS = dict(ledger_texts())


@pytest.mark.parametrize("case", LEDGERS)
def test_a_hostile_ledger_leaves_the_rest_standing(case, folders, capsys):
    content, standing = LEDGERS[case]
    (folders / "claims.yml").write_bytes(content)
    data = run(a_good=1)
    found = scoreboard.rows([data] if standing else [], claims.load(folders / "claims.yml"))
    html = scoreboard.board(found) + scoreboard.summary(found)
    assert re.findall(r'<article class="claim" id="([^"]+)"', html) == standing
    assert ("holds here</strong>: laptop" in html) == bool(standing)
    assert f"{len(standing)} claims stand" in html and "script" not in {tag for tag, _ in Tags(html).tags}
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 1 and told[0].startswith("Left out: claims.yml: ")


def test_there_are_enough_hostile_files():
    assert len(FILES) >= 30 and len(LEDGERS) >= 30
