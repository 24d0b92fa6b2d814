"""The decks of slides: what is on them, and that they turn, fit, print and ask for nothing."""

import re

import checks
import nbformat
import pytest

from tools import chapters, notebook_form, slides

PATHS = {path.stem: path for path in notebook_form.teaching()}
SHEET = {"width": 1184, "height": 624}  # what the margins leave of the printed sheet, in CSS pixels


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("slides")
    slides.write(made, list(PATHS.values()))
    return made


@pytest.fixture(scope="session")
def address(serve, folder):
    with serve(folder) as found:
        yield found


def notebook(*cells):
    """Cells: text is Markdown; (id, source, outputs ...) is code."""
    made = nbformat.v4.new_notebook()
    for number, cell in enumerate(cells):
        if isinstance(cell, str):
            made.cells.append(nbformat.v4.new_markdown_cell(cell, id=f"text-{number}"))
        else:
            name, source, *outputs = cell
            made.cells.append(nbformat.v4.new_code_cell(source, id=name, outputs=outputs))
    return made


def printed(text):
    return nbformat.v4.new_output("stream", name="stdout", text=text)


def figure(alt="A line."):
    return nbformat.v4.new_output("display_data", {"image/png": "AAAA"}, metadata={"image/png": {"alt": alt}})


def made(*cells):
    return slides.slides(notebook("# Title\n\nWhy?", *cells), ["00_measure"])


# --- what is on a slide -------------------------------------------------------------------


def test_a_section_is_a_slide():
    found = made("| box |\n|---|\n| a |", ("setup", "begin()"), "## One\n\nText.\n\n```\n# no heading\n```",
                 "## Empty\n\n### Below\n\nMore.")
    assert [(s.heading, s.level, s.part) for s in found] == [("Title", 1, ""), ("One", 2, ""), ("Below", 3, "Empty")]
    assert "Why?" in found[0].shown[0] and "begin()" not in "".join(found[0].folded)
    assert "# no heading" in found[1].shown[0]


def test_the_first_text_stands_open_and_the_rest_is_folded():
    [_, slide] = made("## One\n\nFirst.", ("run", "x = 1"), "Second.", "**A trap.**\nIts story.")
    assert "".join(slide.shown) == "<p>First.</p>\n<p><strong>A trap.</strong></p>\n"
    folded = "".join(slide.folded)
    assert folded.index("x = 1") < folded.index("Second.") < folded.index("Its story.")
    html = slides.section(slide, 2, 2)
    assert html.index("A trap.") < html.index("<details") < html.index("x = 1")


@pytest.mark.parametrize("outputs, text, open_", [
    ([printed("a 1\n")], "Text.", True), ([printed("a 1\n"), figure()], "Text.", False),
    ([printed("a 1\n" * 40)], "Text.", False), ([printed("a 1\n")], "Text. " * 100, False)])
def test_a_short_table_stands_open_where_there_is_room(outputs, text, open_):
    html = slides.section(made(f"## One\n\n{text}", ("run", "x", *outputs))[1], 2, 2)
    assert (html.index("a 1") < html.index("<details")) == open_
    assert ("<img" in html) == (len(outputs) == 2)


def test_solutions_checks_and_notes_are_left_out():
    found = made("### Exercise 00.1: Do it (6 min)\n\nDo.", ("check-00-1", "def check(): pass"),
                 ("exercise-00-1", "return 1.0", printed("Not yet.\n")),
                 ("solution-00-1", "secret", printed("right\n")),
                 "## Reading\n\nHere.\n\n<details><summary>Instructor note</summary>\nShout.\n</details>")
    html = "".join(slides.section(slide, 1, 3) for slide in found)
    assert "return 1.0" in "".join(found[1].shown)
    assert not [word for word in ("def check", "secret", "right", "Shout", "Instructor") if word in html]


def test_links_lead_to_decks_or_nowhere():
    text = "[a](00_measure.ipynb#x), [b](99_scoreboard.ipynb), [c](setup.md), [d](https://example.org/a.md)"
    assert slides.linked(text, ["00_measure"]) == "[a](00_measure.html), b, c, [d](https://example.org/a.md)"


def test_printed_text_is_never_markup():
    [_, slide] = made("## One\n\nText.", ("run", "'</code><script>'", printed("<script>x</script>\n")))
    html = slides.section(slide, 2, 2)
    assert "<script" not in html and "&lt;script&gt;" in html


@pytest.mark.parametrize("name", PATHS)
def test_a_deck_holds_the_chapter(name, folder):
    text = (folder / f"{name}.html").read_text(encoding="utf-8")
    chapter = chapters.read(PATHS[name])
    title, question = chapter.cells[0].source.split("\n\n")[:2]
    first = re.search(r"<section id=\"slide-1\".*?</section>", text, re.S)[0]
    assert f"<h1>{title[2:]}</h1>" in first and slides.markdown(question) in first
    pictures = [out for cell in chapter.cells for out in cell.get("outputs", [])
                if "image/png" in out.get("data", {}) and not cell.id.startswith(slides.LEFT_OUT)]
    assert text.count('<img alt="') >= len(pictures)
    last = re.search(r"<h2>Key points</h2>.*?</section>", text, re.S)[0]
    assert last.count("<li>") >= 3
    for cell in chapter.cells:
        if cell.id.startswith("solution-"):
            assert slides._pre(cell.source, "x").partition("<code>")[2] not in text
    assert not re.search(r"(?:src|href)=\"(?!data:|https://|#|index\.html|\d\d_\w+\.html)", text)


def test_some_deck_has_figures(folder):
    assert sum((folder / f"{name}.html").read_text(encoding="utf-8").count("<img alt=") for name in PATHS) > 10


# --- in the browser -------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[(name, width, theme) for name in ["index", *PATHS]
                                        for width in (checks.PHONE, checks.DESKTOP) for theme in ("light", "dark")],
                ids=lambda p: "-".join(map(str, p)))
def visited(request, browser, address):
    """(page, faults while it is open, theme)."""
    name, width, theme = request.param
    with checks.visit(browser, f"{address}{name}.html", width, theme) as (page, faults):
        yield page, faults, theme


def test_every_slide_is_accessible_and_fits(visited):
    page, _, theme = visited
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (theme == "dark")
    # All at once: a slide at a time takes axe many times as long.
    page.evaluate("""for (const slide of document.querySelectorAll("section")) slide.hidden = false;
                     for (const part of document.querySelectorAll("details")) part.open = true;""")
    assert [*checks.sideways(page), *checks.accessibility(page)] == []


def test_no_request_and_no_error(visited):
    """The last test of a page: what the other did with it counts too."""
    assert visited[1] == []


@pytest.fixture
def deck(browser, address):
    with checks.visit(browser, f"{address}50_flex_attention.html") as (page, faults):
        yield page
        assert faults == []


def place(page):
    """(number of the slide that can be seen, what the bar says, the address's end)"""
    [seen] = [section for section in page.locator("main > section").all() if section.is_visible()]
    return int(seen.get_attribute("id").removeprefix("slide-")), page.locator("nav output").inner_text(), \
        page.url.partition("#")[2]


def test_keys_turn_the_slides(deck):
    total = deck.locator("main > section").count()
    assert place(deck) == (1, f"1 of {total}", "slide-1")
    for key, wanted in (("ArrowRight", 2), ("PageDown", 3), ("ArrowLeft", 2), ("PageUp", 1), ("ArrowLeft", 1),
                        ("End", total), ("ArrowRight", total), ("Home", 1)):
        deck.keyboard.press(key)
        assert place(deck) == (wanted, f"{wanted} of {total}", f"slide-{wanted}"), key
        # The keyboard and a screen reader go along.
        assert deck.evaluate("document.activeElement.id") == f"slide-{wanted}"
    deck.keyboard.press("Control+ArrowRight")
    assert place(deck)[0] == 1


def test_buttons_turn_the_slides(deck):
    deck.get_by_role("button", name="Next slide").click()
    deck.keyboard.press("Enter")  # the button keeps the focus
    assert place(deck)[0] == 3
    deck.get_by_role("button", name="Previous slide").click()
    assert place(deck)[0] == 2


def test_the_address_keeps_the_place(deck):
    deck.keyboard.press("End")
    last = place(deck)
    deck.reload()
    assert place(deck) == last
    deck.evaluate("location.hash = 'slide-4'")
    deck.wait_for_function("document.querySelector('output').textContent.startsWith('4 ')")
    assert place(deck)[0] == 4


def test_the_arrows_of_a_slider_stay_its_own(deck):
    slide = deck.locator("main > section", has=deck.locator(".explore"))
    number = int(slide.get_attribute("id").removeprefix("slide-"))
    for _ in range(number - 1):
        deck.keyboard.press("ArrowRight")
    assert list(checks.explorers(deck)) == [] and place(deck)[0] == number


def test_without_a_script_all_slides_stand(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}00_measure.html")
    assert all(section.is_visible() for section in page.locator("main > section").all())
    assert not page.locator("nav").is_visible()
    context.close()


@pytest.mark.parametrize("name", PATHS)
def test_a_printed_slide_is_one_page(name, browser, address):
    with checks.visit(browser, f"{address}{name}.html") as (page, faults):
        total = page.locator("main > section").count()
        paper = page.pdf(prefer_css_page_size=True)
        assert len(re.findall(rb"/Type\s*/Page\b", paper)) == total
        page.emulate_media(media="print")
        page.set_viewport_size(SHEET)
        cut = page.evaluate("[...document.querySelectorAll('main > section')]"
                            ".filter(s => s.scrollHeight > s.clientHeight).map(s => s.innerText.slice(0, 40))")
        assert cut == [] and faults == []


def test_links_between_decks(folder):
    assert list(checks.dead_links(folder)) == []


@pytest.mark.parametrize("name", PATHS)
def test_alt_texts_and_weight(name, folder):
    path = folder / f"{name}.html"
    assert [*checks.alt_texts(path), *checks.weight(path)] == []
