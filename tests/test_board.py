"""The scoreboard of a room, from files that the tests make: spread, best and worst, what explains it."""

import copy
import json
import sys
from html.parser import HTMLParser

import pytest
import test_recorded

from tools import board
from utils import claims, recorded
from utils.ratio import Ratio


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(recorded, "_told", set())
    claims.load.cache_clear()


def comparison(case, value, width=0.02):
    """A stored comparison whose ratio is `value`, with an interval of that share around it."""
    entry = copy.deepcopy(test_recorded.GOOD["chapters"]["20"]["results"]["20.steady"])
    entry["entries"][case] = entry["entries"].pop("compiled")
    entry["ratios"] = {case: {"value": value, "low": value * (1 - width), "high": value * (1 + width), "rounds": 9}}
    return entry


def learner(machine, torch="2.13.0", cores=4, threads=None, device="cpu", load=0.01, cpu="A CPU", can=..., **ratios):
    """A learner's file: steady=1.5 is the ratio of 20.steady."""
    data = copy.deepcopy(test_recorded.GOOD)
    data["machine"] = machine
    data["provenance"] |= {"torch": torch, "cores": cores, "device": device, "cpu": cpu}
    if can is not ...:
        data["provenance"]["capability"] = can
    data["chapters"]["20"]["run"] |= {"threads": threads or cores, "other_load": load}
    data["chapters"]["20"]["results"] = {f"20.{name}": comparison("compiled", value) for name, value in ratios.items()}
    return data


def put(folder, *files):
    for data in files:
        (folder / recorded.file_name(data)).write_text(json.dumps(data), encoding="utf-8")
    return folder


NOISE = [1.31, 1.05, 1.62, 1.18, 1.44, 1.09, 1.53, 1.27, 1.71, 1.12, 1.38, 1.58, 1.22, 1.66, 1.02, 1.47, 1.35]


def room():
    """Seventeen machines: torch decides `steady`, the cores `small`, nothing `chance`; `same` is the same."""
    for n, noise in enumerate(NOISE):
        old, many = n % 2, n % 3 == 0
        yield learner(f"m{n:02}", torch="2.5.1" if old else "2.13.0", cores=16 if many else 4, cpu=f"CPU {n}",
                      load=0.3 if n % 5 == 0 else None if n % 5 == 1 else 0.02,
                      steady=noise + (1.0 if old else 2.0), small=noise * (3 if many else 1), chance=noise,
                      same=1 + n / 1000)


@pytest.fixture
def folder(tmp_path):
    """Twenty files, three of them broken."""
    put(tmp_path, *room())
    (tmp_path / "n.torch-2.13.0.json").write_text('{"schema": 1', encoding="utf-8")
    (tmp_path / "o.torch-2.13.0.json").write_text('{"machine": "<script>alert(1)</script>"}', encoding="utf-8")
    (tmp_path / "p.torch-2.13.0.json").write_text(json.dumps(learner("someone-else", steady=900.0)), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no result", encoding="utf-8")
    assert len(list(tmp_path.glob("*.json"))) == 20
    return tmp_path


def by_name(files):
    return {result.name.split(":")[0]: result for result in board.results(files)}


# --- a room of twenty ---------------------------------------------------------------------


def test_spread_best_and_worst(folder):
    files, faults = board.read(folder)
    assert len(files) == 17 and [fault.split(":")[0] for fault in faults] == [
        "n.torch-2.13.0.json", "o.torch-2.13.0.json", "p.torch-2.13.0.json"]
    found = by_name(files)
    assert list(found) == ["20.chance", "20.same", "20.small", "20.steady"]
    chance = found["20.chance"]
    assert len(chance.points) == 17 and chance.name == "20.chance: compiled against eager"
    assert (chance.worst.run, chance.best.run) == ("m14, torch 2.13.0", "m08, torch 2.13.0")
    assert chance.best.ratio == Ratio(1.71, 1.71 * 0.98, 1.71 * 1.02, 9) and chance.median == 1.35


def test_what_explains_it(folder):
    found = by_name(board.read(folder)[0])
    assert board.explained(found["20.steady"]) == "The version of torch (2.5.1 < 2.13.0) orders the runs."
    assert board.explained(found["20.small"]) == (
        "The number of cores (4 < 16) and the number of threads (4 < 16) each order the runs; "
        "this room cannot tell which of them it is.")
    assert board.explained(found["20.chance"]) == "Nothing that the files know orders the runs."
    assert board.explained(found["20.same"]).startswith("There is nothing to explain")
    assert board.overall(list(found.values())) == (
        "Of 3 results that set runs apart, the number of cores orders 1, the number of threads orders 1, "
        "the version of torch orders 1, and nothing that the files know orders 1.")


def test_the_command(folder, tmp_path, repo, monkeypatch, capsys):
    monkeypatch.setattr(board, "BUILT", tmp_path / "made" / "board.html")
    monkeypatch.setattr(sys, "argv", ["board", str(folder)])
    board.main()
    out = capsys.readouterr().out
    assert [line.split(":")[1].strip() for line in out.splitlines() if line.startswith("Left out: ")] == [
        "n.torch-2.13.0.json", "o.torch-2.13.0.json", "p.torch-2.13.0.json"]
    assert "17 runs of 17 machines; 4 results that two runs or more measured." in out
    [line] = [line for line in out.splitlines() if line.startswith("20.steady")]
    assert line.split() == "20.steady: compiled against eager 17 2.05× 3.02× 3.71× the version of torch".split()
    assert "regional.frames" in out and "holds here: 17" in out
    page = Page((tmp_path / "made" / "board.html").read_text(encoding="utf-8"))
    for told in ("17 runs of 17 machines, torch 2.13.0, 2.5.1", "3.71× [3.64, 3.78], m08, torch 2.13.0",
                 "2.05× [2.01, 2.09], m01, torch 2.5.1", "The version of torch (2.5.1 < 2.13.0) orders the runs.",
                 "o.torch-2.13.0.json: ", "holds here: 17", "CPU 16, 4 cores"):
        assert told in page.text, told
    assert "someone-else, torch" not in page.text and "script" not in page.tags and page.tags.count("article") == 4


class Page(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.links, self.text = [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]

    def handle_data(self, data):
        self.text += data


def test_the_page_asks_for_nothing_else(folder):
    files, faults = board.read(folder)
    page = Page(board.html(files, board.results(files), [], faults))
    assert page.links and all(link.startswith("data:") for link in page.links)


def test_the_same_room_makes_the_same_page(folder):
    pages = set()
    for _ in range(2):
        files, faults = board.read(folder)
        pages.add(board.html(files, board.results(files), [], faults))
    assert len(pages) == 1


# --- what counts as an explanation ------------------------------------------------------------


def test_a_small_room_explains_nothing(tmp_path):
    files = [learner(f"m{n}", torch="2.5.1" if n < 2 else "2.13.0", steady=1.0 + n) for n in range(4)]
    found = by_name(board.read(put(tmp_path, *files))[0])["20.steady"]
    assert board.orders(found) == []
    assert board.explained(found) == board.overall([found]) == board.TOO_FEW


def test_one_run_in_the_wrong_place_spoils_an_order(tmp_path):
    files = [learner(f"m{n:02}", torch="2.5.1" if n < 8 else "2.13.0", steady=1.0 + n) for n in range(16)]
    found = by_name(board.read(put(tmp_path, *files))[0])["20.steady"]
    assert [what for what, _ in board.orders(found)] == ["the version of torch"]
    files[0] = learner("m00", torch="2.5.1", steady=12.5)
    found = by_name(board.read(put(tmp_path, *files))[0])["20.steady"]
    assert board.orders(found) == []
    assert board.explained(found) == "Nothing that the files know orders the runs."


def test_what_a_file_does_not_know_is_not_asked(tmp_path):
    for last, wanted in (("AVX512", ["the CPU's capability"]), (..., []), (None, [])):
        files = [learner(f"m{n:02}", can=last if n == 15 else "AVX2" if n < 8 else "AVX512", steady=1.0 + n)
                 for n in range(16)]
        found = by_name(board.read(put(tmp_path, *files))[0])["20.steady"]
        assert [what for what, _ in board.orders(found)] == wanted


def test_groups_are_listed_from_slow_to_fast(tmp_path):
    files = [learner(f"m{n:02}", device=("cuda: A GPU", "cpu", "xpu: Another")[n % 3], steady=1.0 + n % 3 + n / 100)
             for n in range(15)]
    [(what, order)] = board.orders(by_name(board.read(put(tmp_path, *files))[0])["20.steady"])
    assert (what, order) == ("the device", ["cuda", "cpu", "xpu"])


@pytest.mark.parametrize("share, word", [(None, None), (0.0, "quiet"), (0.1, "quiet"), (0.11, "busy")])
def test_other_load_is_quiet_or_busy(share, word):
    assert board.KNOWN["the load by other programs"]({}, {"other_load": share}) == word


def test_chance_is_counted():
    assert board._by_chance({"a": [0], "b": [1]}) == 1  # two runs are always in some order
    assert board._by_chance({"a": [0, 1, 2], "b": [3, 4, 5]}) == pytest.approx(0.1)  # 2 of 20 ways


# --- files that mean no good ---------------------------------------------------------------------


def test_absurd_ratios_leave_the_page_readable(tmp_path):
    files = [learner("a", steady=1e-300), learner("b", steady=1e300), learner("c", steady=1.0)]
    files[0]["chapters"]["20"]["results"]["20.zero"] = comparison("compiled", 0.0)
    files[1]["chapters"]["20"]["results"]["20.zero"] = comparison("compiled", 0.0)
    read, _ = board.read(put(tmp_path, *files))
    found = board.results(read)
    assert list(by_name(read)) == ["20.steady"]
    page = Page(board.html(read, found, [], []))
    assert "1e+300×" in page.text and max(map(len, page.text.split())) < 100


def test_text_is_never_markup(tmp_path):
    evil = '"><img src=x onerror=alert(1)>'
    files = [learner(name, steady=value) for name, value in (("a", 1.0), ("b", 2.0))]
    for data in files:  # what the schema would refuse: the page does not rely on it
        data["provenance"] |= {"cpu": evil, "os": evil, "device": evil}
        data["chapters"]["20"]["results"]["20.steady"] = comparison(evil, 1.0)
    page = Page(board.html(files, board.results(files), [], [evil]))
    assert page.tags.count("img") == 1 and page.links.count("x") == 0 and evil in page.text


@pytest.mark.parametrize("words, said", [
    ([], "make board DIR=room"), (["lost"], "There is no folder lost."), (["."], "No file in . is one of recorded")])
def test_no_room_is_one_sentence(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["board", *words])
    with pytest.raises(SystemExit) as end:
        board.main()
    told = capsys.readouterr().err
    assert end.value.code in (1, 2) and said in told and len(told.splitlines()) == 1
