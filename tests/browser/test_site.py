"""Every page of the built site in a real browser, on a phone and on a desktop, light and dark."""

import re

import checks
import pytest

from tools.site import HTML

PAGES = sorted(str(path.relative_to(HTML).as_posix()) for path in HTML.rglob("*.html")
               if not path.relative_to(HTML).parts[0].startswith("_"))
CHAPTERS = [page for page in PAGES if re.match(r"chapters/\d\d_", page)]


@pytest.fixture(scope="module")
def address(serve):
    with serve(HTML) as found:
        yield found


@pytest.fixture(scope="module", params=[(page, width, theme) for page in PAGES
                                        for width in (checks.PHONE, checks.DESKTOP)
                                        for theme in ("light", "dark")],
                ids=lambda p: f"{p[0]}-{p[1]}-{p[2]}")
def visited(request, browser, address):
    """(page, faults while it is open, width, theme)."""
    name, width, theme = request.param
    with checks.visit(browser, address + name, width, theme) as (page, faults):
        yield page, faults, width, theme


def test_the_site_is_built():
    assert "index.html" in PAGES and CHAPTERS, "there is no site: run make book"


def test_accessibility(visited):
    page, _, _, theme = visited
    assert [*checks.theme(page, theme), *checks.accessibility(page)] == []


def test_nothing_scrolls_sideways(visited):
    assert list(checks.sideways(visited[0])) == []


def test_explorers_move(visited):
    assert list(checks.explorers(visited[0])) == []


def test_sidebar_opens(visited):
    page, _, width, _ = visited
    assert list(checks.sidebar(page, width)) == []


def test_no_request_leaves_and_no_error(visited):
    """The last test of a page: what the others did with it counts too."""
    assert visited[1] == []


def test_some_page_has_an_explorer():
    assert any('class="explore"' in (HTML / page).read_text(encoding="utf-8") for page in CHAPTERS)


def test_search_finds(browser, address):
    with checks.visit(browser, address + "search.html?q=compile") as (page, faults):
        page.locator("#search-results li").first.wait_for(timeout=10_000)
        assert faults == []


def test_links_and_anchors():
    assert list(checks.dead_links(HTML)) == []


@pytest.mark.parametrize("page", PAGES)
def test_alt_texts(page):
    assert list(checks.alt_texts(HTML / page)) == []


@pytest.mark.parametrize("page", CHAPTERS)
def test_weight(page):
    assert list(checks.weight(HTML / page)) == []
