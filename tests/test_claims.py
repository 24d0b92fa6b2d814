"""The claims ledger and its verdicts."""

import itertools
import json
import math
import re
from pathlib import Path

import jsonschema
import pytest

from utils import claims, recorded, untrusted
from utils.timing import Ratio

REPO = Path(__file__).resolve().parent.parent
ROWS, FAULTS = claims.check()
SCHEMA = json.loads((REPO / "utils" / "claims.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def own_results(tmp_path, monkeypatch):
    """Verdicts of tests stay out of the reader's results."""
    monkeypatch.setenv("BOOK_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(recorded, "_chapters", {})


# --- the rules --------------------------------------------------------------------


def between(low, high):
    return Ratio((low + high) / 2, low, high, 9)


@pytest.mark.parametrize("rule, measured, word", [
    ("equals 1", 1, "holds here"),
    ("equals 1", 12, "does not hold here"),
    ("equals 1", 1.0, "holds here"),
    ("equals 1", True, "does not hold here"),  # a count of one is no yes
    ("equals true", True, "holds here"),
    ("equals true", 1, "does not hold here"),
    ("equals true", False, "does not hold here"),
    ("equals false", False, "holds here"),
    ("equals flash", "flash", "holds here"),
    ("equals flash", "math", "does not hold here"),
    ("at_least 2", between(2.1, 2.5), "holds here"),
    ("at_least 2", between(2.0, 2.5), "holds here"),  # the limit itself is claimed
    ("at_least 2", between(1.9, 2.5), "cannot tell here"),
    ("at_least 2", between(1.2, 2.0), "cannot tell here"),
    ("at_least 2", between(1.2, 1.9), "does not hold here"),
    ("at_least 2", 3, "holds here"),
    ("at_least 2", 1.5, "does not hold here"),
    ("at_most 2", between(1.2, 2.0), "holds here"),
    ("at_most 2", between(1.2, 2.1), "cannot tell here"),
    ("at_most 2", between(2.1, 2.5), "does not hold here"),
    ("within [1.01, 1.05]", between(1.02, 1.04), "holds here"),
    ("within [1.01, 1.05]", between(1.01, 1.05), "holds here"),
    ("within [1.01, 1.05]", between(0.90, 1.00), "does not hold here"),
    ("within [1.01, 1.05]", between(1.06, 1.20), "does not hold here"),
    ("within [1.01, 1.05]", between(1.00, 1.03), "cannot tell here"),
    ("within [1.01, 1.05]", between(1.03, 1.10), "cannot tell here"),
    ("within [1.01, 1.05]", between(0.90, 1.20), "cannot tell here"),
    ("reaches 7", between(7.2, 8.0), "holds here"),
    ("reaches 7", between(6.0, 8.0), "cannot tell here"),
    ("reaches 7", between(2.0, 2.4), "not reached here"),
    ("share 0.9", (300, 300), "holds here"),
    ("share 0.9", (24, 24), "cannot tell here"),  # 24 cases cannot show nine in ten
    ("share 0.9", (22, 24), "cannot tell here"),
    ("share 0.9", (10, 24), "does not hold here"),
    ("share 0.9", (0, 3), "does not hold here"),
])
def test_judge(rule, measured, word):
    assert claims.judge(rule, measured) == word


@pytest.mark.parametrize("rule, measured, error", [
    ("equals 1", between(1, 2), TypeError),
    ("equals 1", None, TypeError),
    ("at_least 2", True, TypeError),
    ("at_least 2", "3", TypeError),
    ("reaches 2", (3, 4), TypeError),
    ("share 0.9", 0.95, TypeError),
    ("share 0.9", (5, 4), ValueError),
    ("share 0.9", (0, 0), ValueError),
    ("statement", 1, ValueError),
])
def test_judge_refuses_what_does_not_fit(rule, measured, error):
    with pytest.raises(error):
        claims.judge(rule, measured)


def test_an_interval_of_nan_tells_nothing():
    assert claims.judge("at_least 2", between(math.nan, math.nan)) == "cannot tell here"


def test_wilson_against_published_values():
    # Newcombe 1998, table I: 81 of 263, and 0 of 20.
    assert claims.wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert claims.wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    low, high = claims.wilson(20, 20)
    assert (1 - high, 1 - low) == pytest.approx((0.0, 0.1611), abs=1e-4)


# --- the card ---------------------------------------------------------------------


MEASURED = {"equals": (1, True), "share": ((20, 24),), "statement": (None,)}


@pytest.mark.parametrize("name", ROWS)
def test_every_row_has_a_card(name, capsys):
    row = ROWS[name]
    for measured in (*MEASURED.get(row["test"].split()[0], (between(1, 2), 3.5)), None):
        needs = "a thing" if measured is None else None
        word = claims.verdict(name, measured, needs=needs)
        card = capsys.readouterr().out
        assert max(map(len, card.splitlines())) <= 76
        assert card.rstrip().endswith(f"Verdict     {word}")
        for part in (row["claim"], row.get("correction", ""), row.get("source", {}).get("title", "")):
            assert "".join(part.split()) in "".join(card.split())


def test_needs_is_used_only_when_nothing_was_measured():
    assert claims.verdict("regional.warm", 3.0, needs="a GPU") == "holds here"
    assert claims.verdict("flex.fused_memory", None, needs="a GPU") == "not measurable here (needs a GPU)"
    assert claims.verdict("xpu.support") == "not measurable here (needs an Intel GPU)"


def test_what_is_exact_and_contradicts_is_wrong_everywhere():
    assert claims.verdict("regional.loop", 0) == "wrong as stated"
    assert claims.verdict("regional.loop", 1) == "holds here"
    assert claims.verdict("regional.frames", 12) == "does not hold here"  # no correction: look here
    assert claims.verdict("fp16.speed", between(0.1, 0.2)) == "does not hold here"


def test_a_verdict_is_recorded():
    claims.verdict("regional.slowdown", between(1.02, 1.04))
    claims.verdict("regional.warm", None, needs="time")
    claims.verdict("regional.frames", 1)
    found = recorded.own()["chapters"]["20"]["verdicts"]
    assert found["regional.slowdown"] == {
        "measured": {"value": 1.03, "low": 1.02, "high": 1.04}, "word": "holds here"}
    assert found["regional.warm"]["measured"] is None
    assert found["regional.frames"] == {"measured": 1, "word": "holds here"}


def test_mistakes_of_a_cell_are_said():
    with pytest.raises(KeyError, match="not in claims.yml"):
        claims.verdict("regional.frame", 1)
    with pytest.raises(ValueError, match="nothing was measured"):
        claims.verdict("regional.frames", None)


# --- the ledger -------------------------------------------------------------------


def test_every_row_of_the_starting_list_is_there():
    assert FAULTS == []
    assert [row["row"] for row in ROWS.values()][:38] == list(range(1, 39))


def test_a_statement_gets_one_of_the_words_for_it():
    words = {name: claims.verdict(name) for name, row in ROWS.items() if row["test"] == "statement"}
    assert {word.split(" (")[0] for word in words.values()} == {
        "wrong as stated", "no source found", "not measurable here"}


def chapters():
    """Chapter number to the claims that its cells hand to verdict: the ids that stand in a
    cell that calls it, in the call or in the table it goes through."""
    found = {}
    for path in sorted((REPO / "chapters").glob("[0-9][0-9]_*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        found[path.name[:2]] = {name for source in code if "verdict(" in source
                                for name in re.findall(r"""["']([a-z0-9_]+\.[a-z_]+)["']""", source)}
    return found


CHAPTERS = chapters()


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row["chapter"] in CHAPTERS])
def test_a_chapter_judges_its_claims(name):
    row = ROWS[name]
    judged = name in CHAPTERS[row["chapter"]]
    assert judged or (row["test"] == "statement" and ("source" in row or row.get("unconfirmed")))


def test_chapters_judge_only_claims_of_the_ledger():
    assert set.union(*CHAPTERS.values()) <= set(ROWS)


# --- malformed and hostile ledgers --------------------------------------------------


GOOD = {"id": "a.good", "row": 1, "chapter": "20", "claim": "It works.", "said_by": [],
        "source": {"title": "A post", "url": "https://example.org/post"},
        "kind": "exact", "quantity": "frames", "test": "equals 1"}


def without(*fields, **changes):
    return {k: v for k, v in {**GOOD, "id": "a.bad", "row": 2, **changes}.items() if k not in fields}


STATEMENT = {"kind": "statement", "test": "statement", "correction": "No."}
BAD_ROWS = {
    "no id": (without("id"), "entry 2: the whole lacks the field 'id'"),
    "no claim": (without("claim"), "a.bad.*lacks the field 'claim'"),
    "no test": (without("test"), "a.bad.*lacks the field 'test'"),
    "unknown field": (without(run="rm"), "a.bad.*field 'run'"),
    "id with a path": (without(id="../../etc.passwd"), "etc.passwd.*id has the value"),
    "id of another type": (without(id=["a.bad"]), "entry 2: id should be string"),
    "row is text": (without(row="2"), "a.bad.*row should be integer"),
    "row is yes": (without(row=True), "a.bad.*row should be integer"),
    "row below one": (without(row=0), "a.bad.*row has the value 0"),
    "chapter is a number": (without(chapter=20), "a.bad.*chapter should be string"),
    "script": (without(claim="<script>alert(1)</script>"), "a.bad.*claim has the value"),
    "javascript address": (without(source={"title": "x", "url": "javascript:alert(1)"}), "source.url has the value"),
    "address with a quote": (without(source={"title": "x", "url": 'https://a.org/"onclick='}), "source.url"),
    "plain http": (without(source={"title": "x", "url": "http://a.org/"}), "source.url"),
    "unknown rule": (without(test="exec 1"), "a.bad.*test has the value"),
    "rule that calls": (without(test="equals __import__('os')"), "a.bad.*test has the value"),
    "infinite limit": (without(test="at_least inf"), "a.bad.*test has the value"),
    "limits reversed": (without(kind="measured", test="within [2, 1]"), "test has its limits"),
    "share above one": (without(kind="measured", test="share 1.5"), "share above 1"),
    "unknown kind": (without(kind="rumour"), "a.bad.*kind should be exact or"),
    "kind against test": (without(**STATEMENT | {"kind": "exact"}), "kind and test"),
    "nothing measured": (without("quantity"), "quantity is missing"),
    "no source": (without("source"), "source is missing"),
    "source and unconfirmed": (without(unconfirmed=True), "unconfirmed stands beside one"),
    "unconfirmed is text": (without("source", unconfirmed="yes"), "unconfirmed should be True"),
    "statement without a verdict": (without("correction", **STATEMENT), "correction or needs"),
    "control character": (without(claim="a\x1b[2Jb"), "claim holds a character"),
    "turned text": (without(claim="a\u202eb"), "claim holds a character"),
    "very long": (without(claim="x" * 100_000), "claim has the length 100000"),
    "nested": (without(claim=[[[[[["x"]]]]]]), "claim should be string"),
    "not a row": ("just text", "entry 2: the whole should be object"),
    "empty": (None, "entry 2: the whole should be object"),
    "id twice": (without(id="a.good"), "a.good.*id stands twice"),
    "row twice": (without(row=1), "a.bad.*row 1 stands twice"),
    "a speaker too many": (without(said_by=[{"who": "x"}] * 6), "said_by has the length 6"),
    "a speaker without a name": (without(said_by=[{"url": "https://a.org/"}]), "said_by.0 lacks the field 'who'"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_named_and_the_rest_stands(case, tmp_path):
    row, sentence = BAD_ROWS[case]
    path = tmp_path / "ledger.yml"
    last = {**GOOD, "id": "a.last", "row": 9}
    path.write_text(json.dumps([GOOD, row, last]), encoding="utf-8")  # JSON is YAML
    rows, faults = claims.check(path)
    assert list(rows) == ["a.good", "a.last"]
    assert len(faults) == 1 and re.search(sentence, faults[0]), faults
    assert faults[0].startswith("ledger.yml: ") and len(faults[0]) < 250


@pytest.mark.parametrize("case", BAD_ROWS)
def test_the_published_schema_says_the_same(case):
    row, _ = BAD_ROWS[case]
    ours = untrusted.schema_faults(row, "claims.schema.json")
    if "holds a character" not in "".join(ours):
        assert bool(ours) != jsonschema.Draft202012Validator(SCHEMA).is_valid(row)


BAD_FILES = {
    "missing": (None, "cannot be read"),
    "empty": (b"", "not a list"),
    "a mapping": (b"a: 1", "not a list"),
    "no YAML": (b"- {a: [", "not YAML: line"),
    "not UTF-8": (b"\xff\xfe\x00", "not UTF-8"),
    "too large": (b"- " + b"x" * 600_000, "larger than 500 kB"),
    "nested deep": (b"- " + b"[" * 1_000, "nested too deep"),
    "alias": (b"- &a [x]\n- *a", "alias"),
    "billion laughs": (b"- &a [x, x]\n- &b [*a, *a]\n- &c [*b, *b]", "alias"),
    "NUL": (b"- a\x00b", "not YAML"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_gives_one_sentence(case, tmp_path):
    content, sentence = BAD_FILES[case]
    path = tmp_path / "ledger.yml"
    if content is not None:
        path.write_bytes(content)
    rows, faults = claims.check(path)
    assert rows == {}
    assert len(faults) == 1 and re.search(sentence, faults[0]) and len(faults[0]) < 250, faults


BAD_TEXT = {
    "python object": ("- !!python/object/apply:os.system ['touch ran']", "not YAML"),
    "key twice": ("- {id: a.bad, id: a.worse}", "the key 'id' stands twice"),
    "key is a number": ("- {1: a}", "key 1 is not text"),
    "key is a list": ("- {[a]: b}", "not text"),
    "a date": (f"- {json.dumps(without())}".replace('"20"', "2024-10-17"), "chapter should be string"),
    "huge number": (f"- {json.dumps(without())}".replace("2,", "1" + "0" * 5000 + ",", 1),
                    "cannot be read|row has the value"),
    "impossible date": (f"- {json.dumps(without())}".replace('"20"', "2024-99-99"), "cannot be read"),
    "infinite": (f"- {json.dumps(without())}".replace("2,", ".inf,", 1), "row should be integer"),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_bad_yaml_of_a_row_leaves_the_rest(case, tmp_path, monkeypatch):
    text, sentence = BAD_TEXT[case]
    monkeypatch.chdir(tmp_path)
    Path("ledger.yml").write_text(f"- {json.dumps(GOOD)}\n{text}", encoding="utf-8")
    rows, faults = claims.check("ledger.yml")
    assert list(rows) == ["a.good"]
    assert len(faults) == 1 and re.search(sentence, faults[0]) and len(faults[0]) < 250, faults
    assert not Path("ran").exists()


def test_load_says_what_it_leaves_out(tmp_path, capsys):
    path = tmp_path / "ledger.yml"
    path.write_text(json.dumps([without("claim"), GOOD]), encoding="utf-8")
    assert list(claims.load(path)) == ["a.good"]
    assert capsys.readouterr().out.count("Left out: ledger.yml: 'a.bad'") == 1


def test_the_words_are_those_a_recorded_file_may_hold():
    words = itertools.chain(
        (claims.HOLDS, claims.FAILS, claims.UNSURE, claims.NOT_REACHED, claims.WRONG, claims.NO_SOURCE),
        (claims.not_measurable(row["needs"]) for row in ROWS.values() if "needs" in row))
    schema = json.loads((REPO / "utils" / "recorded.schema.json").read_text(encoding="utf-8"))
    pattern = schema["$defs"]["verdict"]["properties"]["word"]["pattern"]
    assert all(re.search(pattern, word) for word in words)
