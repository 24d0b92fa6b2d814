"""Recorded results: written whole, read with suspicion."""

import copy
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
import torch

from utils import recorded, untrusted
from utils.load import OtherLoad
from utils.timing import Comparison, Measurement

REPO = Path(__file__).resolve().parent.parent
SCHEMA = json.loads((REPO / "utils" / "recorded.schema.json").read_text(encoding="utf-8"))
NAME = "a-laptop.torch-2.13.0.json"
GOOD = {
    "schema": 1,
    "machine": "a-laptop",
    "provenance": {"cpu": "Some CPU @ 2.0GHz", "cores": 2, "device": "cpu", "driver": None, "torch": "2.13.0+cpu",
                   "python": "3.11.7", "os": "Linux"},
    "chapters": {"20": {
        "run": {"id": "run-1", "date": "2026-01-02T03:04:05Z", "commit": "0123456789ab+changes",
                "effort": "read", "threads": 2, "other_load": 0.01},
        "results": {
            "20.steady": {
                "kind": "comparison", "baseline": "eager",
                "entries": {name: {"median_s": 0.002, "q1_s": 0.0019, "q3_s": 0.0021, "rounds": 9, "calls": 5,
                                   "first_call_s": 1.5, "threads": 2, "device": "cpu", "noisy": False}
                            for name in ("eager", "compiled")},
                "ratios": {"compiled": {"value": 1.5, "low": 1.4, "high": 1.6, "rounds": 9}}},
            "20.depth": {"kind": "rows", "rows": [{"layers": 4, "whole_s": 3.5, "note": "a < b".replace("<", "‹")}]},
        },
        "verdicts": {
            "regional.frames": {"measured": 1, "word": "holds here"},
            "regional.slowdown": {"measured": {"value": 1.02, "low": 1.0, "high": 1.04}, "word": "cannot tell here"},
            "inductor.share": {"measured": {"wins": 3, "total": 4, "low": 0.3, "high": 0.95},
                               "word": "does not hold here"},
            "cudnn.default": {"measured": None, "word": "not measurable here (needs a CUDA device)"}},
    }},
}


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """Every test is a process that recorded nothing yet, with folders of its own."""
    for name, folder in (("BOOK_RESULTS", "results"), ("BOOK_RECORDED", "recorded")):
        monkeypatch.setenv(name, str(tmp_path / folder))
        (tmp_path / folder).mkdir()
    for name in ("BOOK_RUN", "BOOK_MACHINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(recorded, "_chapters", {})
    monkeypatch.setattr(recorded, "_told", set())
    monkeypatch.setattr(recorded, "_complained", False)
    recorded._run_id.cache_clear()
    return tmp_path


def changed(path, value):
    """GOOD with one value replaced; `...` takes it away."""
    data = copy.deepcopy(GOOD)
    *way, last = path.split("/")
    node = data
    for key in way:
        node = node[key]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return data


def put(folder, data, name=NAME):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return path


# --- writing ------------------------------------------------------------------------


def measurement(median_s):
    return Measurement(median_s, 0.9 * median_s, 1.1 * median_s, 7, 3, 0.5, 2, "cpu", False)


COMPARISON = Comparison(("eager", "compiled"), {"eager": measurement(0.2), "compiled": measurement(0.1)},
                        {"eager": (0.2,) * 7, "compiled": (0.1,) * 7})


def test_round_trip(fresh, monkeypatch):
    monkeypatch.setenv("BOOK_RUN", "run-7")
    recorded.record("20.steady", COMPARISON)
    recorded.record("20.depth", [{"layers": 4, "whole_s": 3.5}, {"layers": 8, "whole_s": math.inf}])
    recorded.record_verdict("20", "regional.frames", 1, "holds here")
    recorded.record("30.cases", [{"case": "gelu", "ok": True, "x": None}])
    data = recorded.merge(fresh / "results", "my-box", {"30": 0.02})
    assert [c["run"]["id"] for c in data["chapters"].values()] == ["run-7", "run-7"]
    assert data["chapters"]["30"]["run"]["other_load"] == 0.02
    path = fresh / "recorded" / recorded.file_name(data)
    recorded.write(path, data)
    assert recorded.check(path) == []
    (machine, torch, entry), = recorded.recorded("20.steady")
    assert (machine, path.name) == ("my-box", f"my-box.torch-{torch}.json")
    assert entry == json.loads(json.dumps(COMPARISON.to_json()))
    assert entry["ratios"]["compiled"]["value"] == pytest.approx(2)
    assert recorded.recorded("20.depth")[0][2]["rows"][1]["whole_s"] is None  # JSON has no infinity
    assert recorded.recorded("20.nothing") == recorded.recorded("99.nothing") == []


def test_a_run_shows_its_own_rows_for_those_it_will_replace(fresh, monkeypatch):
    recorded.record("30.cases", [{"case": "last run"}])
    recorded.record("30.other", [{"case": "last run"}])
    last = recorded.merge(fresh / "results", "my-box")
    recorded.write(fresh / "recorded" / recorded.file_name(last), last)
    other = {**last, "machine": "zebra"}
    recorded.write(fresh / "recorded" / recorded.file_name(other), other)
    monkeypatch.setattr(recorded, "_chapters", {})
    recorded.record("30.cases", [{"case": "this run"}])

    def shown(name):
        return [(machine, entry["rows"][0]["case"]) for machine, _, entry in recorded.recorded(name)]

    reader = [("my-box", "last run"), ("zebra", "last run")]
    assert shown("30.cases") == shown("30.other") == reader
    monkeypatch.setenv("BOOK_MACHINE", "my-box")
    assert shown("30.cases") == [("my-box", "this run"), ("zebra", "last run")]
    assert shown("30.other") == reader  # it recorded nothing under that name
    monkeypatch.setenv("BOOK_MACHINE", "box")
    assert shown("30.cases") == [("box", "this run"), *reader]


def test_a_result_replaces_the_one_of_its_name(fresh):
    recorded.record("20.depth", [{"layers": 4}])
    recorded.record("20.depth", [{"layers": 8}])
    recorded.record("20.other", [])
    results = recorded.own()["chapters"]["20"]["results"]
    assert results == {"20.depth": {"kind": "rows", "rows": [{"layers": 8}]},
                       "20.other": {"kind": "rows", "rows": []}}
    assert [p.name for p in (fresh / "results").iterdir()] == ["20.json"]  # nothing temporary is left


def test_a_new_process_starts_its_chapter_anew(fresh, monkeypatch):
    recorded.record("20.old", [])
    recorded.record("30.old", [])
    monkeypatch.setattr(recorded, "_chapters", {})
    recorded.record("20.new", [])
    chapters = recorded.own()["chapters"]
    assert list(chapters["20"]["results"]) == ["20.new"] and list(chapters["30"]["results"]) == ["30.old"]


def test_a_verdict_on_another_chapters_claim_stays_with_the_chapter_that_ran():
    recorded.record("00.cold", [])
    recorded.record_verdict("95", "fx_cache.default", True, "holds here")
    assert "fx_cache.default" in recorded.own()["chapters"]["00"]["verdicts"]


class Number:
    """As NumPy's and torch's."""

    def item(self):
        return 2.5


@pytest.mark.parametrize("value, kept", [
    (math.nan, None), (-math.inf, None), (1.5, 1.5), (True, True), (None, None), (Number(), 2.5),
    ("<b>\x1b[1m\ud800", "‹b› [1m "), ("x" * 900, "x" * 500),
])
def test_what_is_written_can_be_read(value, kept, fresh):
    recorded.record("20.rows", [{"x": value}])
    assert recorded.own()["chapters"]["20"]["results"]["20.rows"]["rows"] == [{"x": kept}]


@pytest.mark.parametrize("name, value, error", [
    ("steady", [], ValueError), ("20.Steady", [], ValueError), ("20.a/../b", [], ValueError),
    ("20.a\n", [], ValueError), ("20.a", {"x": 1}, TypeError), ("20.a", 3, TypeError), ("20.a", [3], TypeError),
    ("20.a", [{"x": [1]}], TypeError), ("20.a", [{"x": object()}], TypeError),
])
def test_mistakes_of_a_cell_are_said(name, value, error, fresh):
    with pytest.raises(error):
        recorded.record(name, value)
    assert not list((fresh / "results").iterdir())


def test_an_unwritable_folder_costs_one_sentence(fresh, monkeypatch, capsys):
    (fresh / "file").write_text("in the way")
    monkeypatch.setenv("BOOK_RESULTS", str(fresh / "file" / "results"))
    recorded.record("20.a", [])
    recorded.record("20.b", [])
    out, err = capsys.readouterr()
    assert out.count("\n") == 1 and "not kept" in out and str(fresh) not in out and err == ""


def test_a_full_disk_leaves_the_old_file(fresh, monkeypatch):
    recorded.record("20.a", [])
    before = (fresh / "results" / "20.json").read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recorded.os, "replace", full)
    recorded.record("20.b", [])
    assert (fresh / "results" / "20.json").read_bytes() == before
    assert len(list((fresh / "results").iterdir())) == 1


def test_two_processes_at_once_leave_one_whole_file(fresh):
    code = ("import sys; from utils.recorded import record\n"
            "for i in range(40): record('20.rows', [{'who': sys.argv[1], 'i': i, 'pad': 'x' * 400}] * 50)")
    writers = [subprocess.Popen([sys.executable, "-c", code, who]) for who in "ab"]
    file = fresh / "results" / "20.json"
    while any(w.poll() is None for w in writers):
        if file.exists():
            untrusted.read_json(file)  # raises on a half-written one
        time.sleep(0.01)
    assert [w.returncode for w in writers] == [0, 0]
    rows = recorded.own()["chapters"]["20"]["results"]["20.rows"]["rows"]
    assert len({row["who"] for row in rows}) == 1 and {row["i"] for row in rows} == {39}
    assert [p.name for p in file.parent.iterdir()] == ["20.json"]


def test_provenance_names_no_folder_of_this_machine(fresh):
    recorded.record("20.a", [])
    text = (fresh / "results" / "20.json").read_text(encoding="utf-8")
    assert str(REPO) not in text and str(Path.home()) + os.sep not in text
    found = recorded.own()
    assert found["provenance"]["cores"] == os.cpu_count()
    assert found["provenance"]["capability"] == torch.backends.cpu.get_cpu_capability()
    assert found["chapters"]["20"]["run"]["effort"] in ("test", "read", "publish")


# --- merging ----------------------------------------------------------------------------


def test_older_files_lack_the_capability(fresh):
    """It came later: they stay in order, and do not mix with newer ones unseen."""
    put(fresh, GOOD)
    assert recorded.check(fresh / NAME) == [] and "capability" not in GOOD["provenance"]
    put(fresh / "results", changed("provenance/capability", "AVX2"), "20.json")
    older = copy.deepcopy(GOOD)
    older["chapters"] = {"30": {**GOOD["chapters"]["20"], "results": {}}}
    put(fresh / "results", older, "30.json")
    with pytest.raises(ValueError, match="30.json: its capability is not"):
        recorded.merge(fresh / "results", "my-box")


def test_merge_refuses_a_mixture(fresh, monkeypatch):
    with pytest.raises(ValueError, match="no results"):
        recorded.merge(fresh / "results", "my-box")
    put(fresh, GOOD, "20.json")
    other = copy.deepcopy(GOOD)
    other["chapters"] = {"30": {**GOOD["chapters"]["20"], "results": {}}}
    other["provenance"]["torch"] = "2.5.1"
    put(fresh, other, "30.json")
    with pytest.raises(ValueError, match="30.json: its torch is not"):
        recorded.merge(fresh, "my-box")
    other["provenance"]["torch"] = "2.13.0+cpu"
    other["chapters"]["30"]["run"] = {**GOOD["chapters"]["20"]["run"], "id": "run-2"}
    put(fresh, other, "30.json")
    with pytest.raises(ValueError, match="another run"):
        recorded.merge(fresh, "my-box")


@pytest.mark.parametrize("machine", ["", "My Box", "../box", "a" * 41, "box\n", "a/b"])
def test_merge_refuses_a_name(machine, fresh):
    put(fresh, GOOD, "20.json")
    with pytest.raises(ValueError, match="machine"):
        recorded.merge(fresh, machine)


def test_write_refuses_what_is_not_in_order(fresh):
    with pytest.raises(ValueError, match="should be called"):
        recorded.write(fresh / "other.json", GOOD)
    with pytest.raises(ValueError, match="machine"):
        recorded.write(fresh / NAME, changed("machine", "A B"))
    rows = [{"note": "x" * 500}] * 1000
    big = changed("chapters/20/results", {f"20.r{i}": {"kind": "rows", "rows": rows} for i in range(5)})
    with pytest.raises(ValueError, match="larger than 2 MB"):
        recorded.write(fresh / NAME, big)
    assert not (fresh / NAME).exists() and not (fresh / "other.json").exists()


# --- malformed and hostile files ----------------------------------------------------------


STEADY = "chapters/20/results/20.steady"
RATIO = f"{STEADY}/ratios/compiled"
BAD_DATA = {
    "a list": ([], "should be object"),
    "no machine": (changed("machine", ...), "lacks the field 'machine'"),
    "no provenance": (changed("provenance", ...), "lacks the field 'provenance'"),
    "no torch": (changed("provenance/torch", ...), "provenance lacks the field 'torch'"),
    "no chapters": (changed("chapters", {}), "chapters has the length 0"),
    "no run": (changed("chapters/20/run", ...), "chapters.20 lacks the field 'run'"),
    "another schema": (changed("schema", 2), "schema should be 1"),
    "schema is yes": (changed("schema", True), "schema should be 1"),
    "machine with a path": (changed("machine", "../../root"), "machine has the value '../../root'"),
    "machine in capitals": (changed("machine", "Laptop"), "machine has the value"),
    "machine with a line break": (changed("machine", "a-laptop\n"), "machine holds a character"),
    "version with a path": (changed("provenance/torch", "2.13.0/../x"), "provenance.torch has the value"),
    "capability is a number": (changed("provenance/capability", 2), "provenance.capability should be string"),
    "cpu is a list": (changed("provenance/cpu", ["x"]), "provenance.cpu should be string"),
    "script": (changed("provenance/cpu", "<script>alert(1)</script>"), "provenance.cpu has the value '<script>"),
    "script in a key": (changed(f"{STEADY}/entries/<img src=x>", {}), "has the value '<img src=x>'"),
    "script in a row": (changed("chapters/20/results/20.depth/rows", [{"a": "</table>"}]), "20.depth.rows.0.a has"),
    "terminal codes": (changed("provenance/os", "\x1b[2J"), "provenance.os holds a character"),
    "turned text": (changed("provenance/os", "\u202egnp.exe"), "provenance.os holds a character"),
    "half a character": (changed("provenance/os", "\ud800"), "provenance.os holds a character"),
    "long text": (changed("provenance/cpu", "x" * 100_000), "provenance.cpu has the length 100000"),
    "unknown field": (changed("__class__", "x"), "field '__class__' that does not belong"),
    "chapter with a path": (changed("chapters", {"../x": {}}), "chapters has a field '../x'"),
    "result with a path": (changed("chapters/20/results", {"../x": {}}), "20.results has a field '../x'"),
    "result of another chapter": (changed("chapters/20/results/30.x", {"kind": "rows", "rows": []}),
                                  "30.x stands under chapter 20"),
    "unknown kind": (changed(f"{STEADY}/kind", "code"), "20.steady.kind should be"),
    "row in a row": (changed("chapters/20/results/20.depth/rows", [{"a": {"b": 1}}]), "20.depth.rows.0.a should be"),
    "time below zero": (changed(f"{STEADY}/entries/eager/median_s", -1), "median_s has the value -1"),
    "time as text": (changed(f"{STEADY}/entries/eager/median_s", "1 s"), "median_s should be number"),
    "noisy is a number": (changed(f"{STEADY}/entries/eager/noisy", 0), "noisy should be boolean"),
    "value outside": (changed(f"{RATIO}/value", 9), "20.steady has a value outside its interval"),
    "no interval": (changed(f"{RATIO}/low", ...), "compiled lacks the field 'low'"),
    "ratio without entry": (changed(f"{STEADY}/ratios/other", {"value": 1, "low": 1, "high": 1}), "without a ratio"),
    "word of its own": (changed("chapters/20/verdicts/regional.frames/word", "proven"), "frames.word has the value"),
    "verdict outside": (changed("chapters/20/verdicts/regional.slowdown/measured/low", 1.03),
                        "regional.slowdown has a value outside"),
    "load above one": (changed("chapters/20/run/other_load", 7), "other_load has the value 7"),
    "commit with a command": (changed("chapters/20/run/commit", "0123456; rm -r"), "run.commit has the value"),
    "local date": (changed("chapters/20/run/date", "yesterday"), "date has the value"),
    "too many rows": (changed("chapters/20/results/20.depth/rows", [{}] * 1001), "rows has the length 1001"),
    "nested": (changed("machine", [[[[[[[[[[[[[[]]]]]]]]]]]]]]), "nested more than 12"),
}
RAW = json.dumps(GOOD)
BAD_BYTES = {
    "empty": (b"", "not JSON: line 1"),
    "cut off": (RAW[:300].encode(), "not JSON"),
    "not UTF-8": (b"\xff\xfe{}", "not UTF-8"),
    "a pickle": (b"cos\nsystem\n(S'touch ran'\ntR.", "not JSON"),
    "NaN": (RAW.replace("1.5,", "NaN,", 1).encode(), "NaN is not a JSON number"),
    "infinity": (RAW.replace("1.5,", "-Infinity,", 1).encode(), "-Infinity is not"),
    "1e400": (RAW.replace("1.5,", "1e400,", 1).encode(), "number '1e400' is too large"),
    "long integer": (RAW.replace("1.5,", "1" * 5000 + ",", 1).encode(), "is too large"),
    "key twice": (RAW.replace("{", '{"schema": 1, ', 1).encode(), "key 'schema' stands twice"),
    "10 MB text": (RAW.replace("Some CPU", "x" * 10_000_000).encode(), "larger than 2 MB"),
    "deep": (b"[" * 100_000 + b"]" * 100_000, "nested more than 12"),
    "deep objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested more than 12"),
    "two documents": ((RAW + RAW).encode(), "not JSON"),
}


@pytest.mark.parametrize("case", [*BAD_DATA, *BAD_BYTES])
def test_a_bad_file_is_named_and_the_rest_stands(case, fresh, capsys):
    content, sentence = {**BAD_DATA, **BAD_BYTES}[case]
    folder = fresh / "recorded"
    bad = put(folder, content)
    put(folder, changed("machine", "b-desktop"), "b-desktop.torch-2.13.0.json")
    faults = recorded.check(bad)
    assert sentence in faults[0], faults
    assert all(f.startswith(f"{NAME}: ") and len(f) < 300 and f.isprintable() for f in faults)
    assert [machine for machine, _, _ in recorded.recorded("20.steady")] == ["b-desktop"]
    recorded.recorded("20.depth")  # a second reading does not repeat the sentence
    out = capsys.readouterr().out
    assert out.count("\n") == 1 and out.startswith(f"Left out: {NAME}: ")


@pytest.mark.parametrize("case", BAD_DATA)
def test_the_published_schema_agrees(case):
    data, _ = BAD_DATA[case]
    ours = untrusted.schema_faults(data, "recorded.schema.json")
    if "holds a character" not in "".join(ours):  # the one thing we refuse in every text
        assert bool(ours) != jsonschema.Draft202012Validator(SCHEMA).is_valid(data)


def test_the_good_file_is_good():
    assert untrusted.schema_faults(GOOD, "recorded.schema.json") == []
    jsonschema.Draft202012Validator(SCHEMA).validate(GOOD)


KNOWN = {"$schema", "$ref", "$defs", "title", "description", "type", "const", "enum", "anyOf", "pattern", "minLength",
         "maxLength", "minimum", "maximum", "properties", "patternProperties", "additionalProperties", "required",
         "propertyNames", "minProperties", "maxProperties", "items", "minItems", "maxItems"}


@pytest.mark.parametrize("name", ["recorded.schema.json", "claims.schema.json"])
def test_our_schemas_use_only_what_our_validator_knows(name):
    schema = json.loads((REPO / "utils" / name).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    todo = [schema]
    while todo:
        node = todo.pop()
        assert set(node) <= KNOWN
        for key, value in node.items():
            if key in ("properties", "patternProperties", "$defs"):
                todo += value.values()
            elif key == "anyOf":
                todo += value
            elif isinstance(value, dict):
                todo.append(value)


@pytest.mark.parametrize("name", [
    "a-laptop.json", "b-laptop.torch-2.13.0.json", "a-laptop.torch-2.5.1.json", "a-laptop.torch-2.13.0+cpu.json"])
def test_the_name_must_agree_with_the_content(name, fresh):
    (fault,) = recorded.check(put(fresh, GOOD, name))
    assert fault == f"{name}: by its content it should be called {NAME}."


def test_what_is_not_a_plain_file_is_not_opened(fresh):
    target = put(fresh, GOOD, "elsewhere.json")
    (fresh / "recorded" / NAME).symlink_to(target)
    assert "not a plain file" in recorded.check(fresh / "recorded" / NAME)[0]
    os.mkfifo(fresh / "pipe.json")  # opening it would wait for ever
    assert "not a plain file" in recorded.check(fresh / "pipe.json")[0]
    assert "cannot be read" in recorded.check(fresh / "missing.json")[0]


def test_machines_and_versions_are_sorted(fresh):
    for machine, torch in (("b", "2.5.1"), ("a", "2.13.0"), ("a", "2.5.1")):
        data = changed("machine", machine)
        data["provenance"]["torch"] = torch
        put(fresh / "recorded", data, recorded.file_name(data))
    found = [(machine, torch) for machine, torch, _ in recorded.recorded("20.steady")]
    assert found == [("a", "2.5.1"), ("a", "2.13.0"), ("b", "2.5.1")]


@pytest.mark.parametrize("path", sorted((REPO / "recorded").glob("*.json")), ids=lambda p: p.name)
def test_the_books_own_files_are_in_order(path):
    assert recorded.check(path) == []


# --- commands, load, imports ---------------------------------------------------------------


def test_commands(fresh, capsys):
    good = str(put(fresh / "recorded", GOOD))
    other = changed("machine", "b-desktop")
    other["chapters"]["20"]["verdicts"]["regional.frames"] = {"measured": 12, "word": "does not hold here"}
    second = str(put(fresh / "recorded", other, "b-desktop.torch-2.13.0.json"))
    bad = str(put(fresh, b"{}", "bad.json"))
    assert recorded.main(["check", good, second]) == 0
    assert capsys.readouterr().out == "2 in order.\n"
    assert recorded.main(["check", good, bad]) == 1
    assert "bad.json: the whole lacks the field 'schema'." in capsys.readouterr().out
    assert recorded.main(["diff", good, second]) == 0
    out = capsys.readouterr().out
    assert "20.steady compiled" in out and "1.50× [1.40, 1.60]" in out and "does not hold here" in out
    assert recorded.main(["board"]) == 0
    out = capsys.readouterr().out
    assert out.count("regional.frames") == 2 and "not measurable here" in out
    assert recorded.main(["board", str(fresh / "nowhere")]) == 1
    assert capsys.readouterr().out == f"There is no folder {fresh / 'nowhere'}.\n"


def test_other_load_sees_others_and_not_our_own():
    if OtherLoad()._start is None:
        pytest.skip("this system has no /proc")
    busy = "import time\nwhile time.process_time() < 1.2: pass"
    with OtherLoad() as ours:
        subprocess.run([sys.executable, "-c", busy], check=True)
    # Seen from a process that slept meanwhile, the same work is another's.
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(4)"])
    with OtherLoad(sleeper.pid) as others:
        subprocess.run([sys.executable, "-c", busy], check=True)
    sleeper.kill()
    sleeper.wait()
    # Their own work counts as own in the first, and in the second it does not.
    assert ours._end[2] - ours._start[2] > 1 > others._end[2] - others._start[2] >= 0
    assert 0 <= ours.share() <= 1 and 0 < others.share() <= 1
    assert ours.share() == ours.share()  # the end of the block is the end


def test_other_load_counts_the_time_of_children(monkeypatch):
    """The busy time of the whole machine is what a test cannot rule over: it is faked."""
    from utils import load

    if OtherLoad()._start is None:
        pytest.skip("this system has no /proc")
    clock = iter([(0.0, 100.0, 10.0), (10.0, 100.0 + 8.0, 10.0 + 5.0)])
    monkeypatch.setattr(OtherLoad, "_now", lambda self: next(clock))
    monkeypatch.setattr(load, "_cores", lambda: 2)
    assert OtherLoad().share() == pytest.approx(3 / 20)
    before = load._tree_s(os.getpid())
    subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    assert load._tree_s(os.getpid()) > before


ORPHAN = """
import os, subprocess, sys, time
from utils import load

load.adopt_orphans()
before = load._tree_s(os.getpid())
work = "import time\\nwhile time.process_time() < 1: pass"
subprocess.run([sys.executable, "-c", f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {work!r}])"])
end = time.monotonic() + 60
while (grown := load._tree_s(os.getpid()) - before) < 1 and time.monotonic() < end:
    time.sleep(0.1)
print(grown)
"""


def test_the_work_of_orphans_is_ours(python):
    if not sys.platform.startswith("linux"):
        pytest.skip("prctl is Linux's")
    done = python(ORPHAN)
    assert float(done.stdout) >= 1, done.stderr


def test_other_load_is_none_where_it_cannot_be_told(monkeypatch):
    from utils import load

    assert OtherLoad().share() is None  # too short
    monkeypatch.setattr(load, "_busy_s", lambda: open("/no/such/proc"))
    assert OtherLoad().share() is None
