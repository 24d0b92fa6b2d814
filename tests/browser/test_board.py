"""The board of a room in a real browser: readable on a phone, light and dark, and alone."""

import json

import checks
import pytest

from tools import board
from tools.chapters import REPO
from utils import recorded, scoreboard


@pytest.fixture(scope="session")
def address(serve, tmp_path_factory):
    """The page of a room whose machines are the reference machine's file under other names."""
    folder, made = tmp_path_factory.mktemp("room"), tmp_path_factory.mktemp("board")
    original = json.loads((REPO / "recorded" / "reference.torch-2.13.0.json").read_text(encoding="utf-8"))
    for number in range(12):
        data = json.loads(json.dumps(original)) | {"machine": f"laptop-{number}"}
        for chapter in data["chapters"].values():
            for entry in chapter["results"].values():
                for ratio in entry.get("ratios", {}).values():
                    for what in ("value", "low", "high"):
                        ratio[what] *= 1 + number / 4
        (folder / recorded.file_name(data)).write_text(json.dumps(data), encoding="utf-8")
    (folder / "broken.json").write_text("[" * 5000, encoding="utf-8")
    files, faults = board.read(folder)
    judged = [row for row in scoreboard.rows(files) if any(verdict.machine for verdict in row.verdicts)]
    (made / "board.html").write_text(board.html(files, board.results(files), judged, faults), encoding="utf-8")
    with serve(made) as found:
        yield found + "board.html"


@pytest.mark.parametrize("width", [checks.PHONE, checks.DESKTOP])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_board_is_readable(browser, address, width, theme):
    with checks.visit(browser, address, width, theme) as (page, faults):
        assert page.get_by_text("12 runs of 12 machines").is_visible()
        assert page.locator("article").count() > 20 and page.locator("main > img").count() >= 5
        assert page.locator("li", has_text="broken.json: it is nested").count() == 1
        assert [*checks.sideways(page), *checks.accessibility(page), *faults] == []


def test_without_a_scale_too_small_to_read(browser, address):
    with checks.visit(browser, address, checks.PHONE) as (page, _):
        for picture in page.locator("main > img").all():
            assert picture.evaluate("i => i.naturalWidth") > 600 and picture.bounding_box()["width"] > 340
            assert picture.get_attribute("alt").startswith("Ratios of all runs")
