"""The checks find what is wrong: a page for each fault, and one without any."""

import checks
import pytest

PAGE = ('<!doctype html><html lang="en" data-theme="light"><head><title>Page</title></head>'
        '<body><main><h1>Page</h1>{}</main></body></html>')
PICTURE = "data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 width=%2240%22 height=%22{}%22/%3E"
SLIDER = '<label>n <input type="range" min="0" max="8" value="0"></label>'


def explorer(script):
    frames = "".join(f'<figure{" hidden" if n else ""}><img alt="{n}" src="{PICTURE.format(n + 10)}">'
                     f"<figcaption>{n}</figcaption></figure>" for n in range(9))
    return f'<div class="explore">{SLIDER}{frames}</div><script>{script}</script>'


MOVES = """const slider = document.querySelector("input");
slider.addEventListener("input", () => document.querySelectorAll("figure").forEach((figure, n) => {
  figure.hidden = n !== slider.valueAsNumber; slider.setAttribute("aria-valuetext", slider.value); }));"""


@pytest.fixture
def look(browser, serve, tmp_path):
    """look(body, check) -> faults of a page with that body; without a check, of the visit."""
    def run(body, check=None):
        (tmp_path / "index.html").write_text(PAGE.format(body), encoding="utf-8")
        (tmp_path / "favicon.ico").write_bytes(b"")
        with serve(tmp_path) as address, checks.visit(browser, address, checks.PHONE) as (page, faults):
            return list(check(page)) if check else faults
    return run


def test_a_good_page_has_no_fault(look):
    for check in (None, checks.sideways, checks.accessibility, checks.explorers):
        assert look(explorer(MOVES), check) == []


@pytest.mark.parametrize("body, said", [
    ('<script src="https://cdn.example/x.js"></script>', "a request leaves: https://cdn.example/x.js"),
    ('<script>fetch("https://cdn.example/data").catch(() => 0)</script>', "a request leaves"),
    ('<script>console.error("it broke")</script>', "the console says: it broke"),
    ('<script>setTimeout(() => { throw new Error("late") }, 50)</script>', "an error is not caught: late"),
    ('<img alt="a" src="missing.png">', "the console says: Failed to load"),
])
def test_faults_of_a_visit(look, body, said):
    assert said in " ".join(look(body))


def test_scrolling_sideways(look):
    [fault] = look('<div style="width: 2000px">wide</div>', checks.sideways)
    assert fault.startswith("the page is 20") and fault.endswith("in a window of 390")


def test_theme(look):
    assert look("", lambda page: checks.theme(page, "dark")) == ["the theme is light, not dark"]


@pytest.mark.parametrize("body, said", [
    (f'<img src="{PICTURE.format(1)}">', "image-alt"),
    ('<input type="range">', "label"),
    ('<p style="color: #ccc; background: #fff">pale</p>', "color-contrast"),
    ('<div class="highlight"><pre>' + '<span class="k">def</span> ' * 3
     + '<span class="c" style="color: #ccc">pale</span></pre></div>', "color-contrast"),
    ('<div style="width: 100px; overflow: auto; white-space: nowrap">' + "a long line " * 20 + "</div>",
     "scrollable-region-focusable"),
])
def test_accessibility(look, body, said):
    [fault] = look(body, checks.accessibility)
    assert fault.startswith(said)


@pytest.mark.parametrize("script, said", [
    ("", "does not change"),
    (MOVES.replace("figure.hidden =", "figure.lost ="), "does not change"),
    (MOVES.replace("n !== slider", "n > slider"), "not one at a time"),
    (MOVES.replace("aria-valuetext", "title"), "screen reader"),
    ('document.querySelector("input").hidden = true', "no slider"),
])
def test_explorers(look, script, said):
    [fault] = look(explorer(script), checks.explorers)
    assert said in fault


def test_sidebar(look):
    body = ('<button class="primary-toggle">menu</button>'
            '<div class="bd-sidebar-primary" hidden><nav><a href="#">x</a></nav></div>')
    assert look(body, lambda page: checks.sidebar(page, 390)) == ["the sidebar does not open"]


@pytest.fixture
def write(tmp_path):
    """write(body) -> the file of a page with that body."""
    def run(body):
        path = tmp_path / "index.html"
        path.write_text(PAGE.format(body), encoding="utf-8")
        return path
    return run


@pytest.mark.parametrize("body, said", [
    ('<a href="lost.html">x</a>', "lost.html is no file"),
    ('<a href="../outside.html">x</a>', "outside.html is no file"),
    ('<a href="#lost">x</a>', "#lost has no such anchor"),
    ('<a href="index.html#lost">x</a>', "#lost has no such anchor"),
    ('<img alt="a" src="lost.png">', "lost.png is no file"),
    ('<p id="here">x</p><a href="#here">x</a><a href="https://example.org/#y">x</a>', None),
])
def test_dead_links(write, body, said):
    faults = list(checks.dead_links(write(body).parent))
    assert faults == [] if said is None else len(faults) == 1 and said in faults[0]


@pytest.mark.parametrize("alt", ["", 'alt=""', 'alt=" "', 'alt="_images/a.png"'])
def test_alt_texts(write, alt):
    assert len(list(checks.alt_texts(write(f'<img {alt} src="a.png">')))) == 1
    assert list(checks.alt_texts(write('<img alt="A line." src="a.png">'))) == []


def test_weight(write):
    path = write('<img alt="a" src="a.png"><img alt="b" src="_static/theme.png">')
    (path.parent / "a.png").write_bytes(bytes(checks.HEAVIEST))
    assert "take 500 kB" in list(checks.weight(path))[0]
    (path.parent / "a.png").write_bytes(bytes(1000))
    assert list(checks.weight(path)) == []
