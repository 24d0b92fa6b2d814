"""The scoreboard's two lists, on a phone, by mouse and keyboard, and without a script."""

import checks
import pytest

from tools.site import HTML

PAGE = "chapters/99_scoreboard.html"


@pytest.fixture
def board(browser, serve):
    with serve(HTML) as address, checks.visit(browser, address + PAGE, checks.PHONE) as (page, faults):
        yield page
        assert faults == []


def shown(page):
    """The cards that can be seen, as (chapter, words)."""
    return [(card.get_attribute("data-chapter"), card.get_attribute("data-words").split("|"))
            for card in page.locator(".claim").all() if card.is_visible()]


def status(page):
    return page.get_by_role("status").inner_text()


def test_a_chapter_hides_the_others(board):
    everything = shown(board)
    assert status(board) == f"{len(everything)} of {len(everything)} claims shown"
    board.get_by_label("Chapter").select_option("20")
    wanted = [card for card in everything if card[0] == "20"]
    assert shown(board) == wanted and 0 < len(wanted) < len(everything)
    assert status(board) == f"{len(wanted)} of {len(everything)} claims shown"
    board.get_by_label("Verdict").select_option("wrong as stated")
    both = [card for card in wanted if "wrong as stated" in card[1]]
    assert shown(board) == both and 0 < len(both) < len(wanted)
    assert [*checks.sideways(board), *checks.accessibility(board)] == []
    board.get_by_label("Chapter").select_option("")
    board.get_by_label("Verdict").select_option("")
    assert shown(board) == everything


def test_every_verdict_of_the_list_has_a_card(board):
    for option in board.get_by_label("Verdict").locator("option").all()[1:]:
        word = option.get_attribute("value")
        board.get_by_label("Verdict").select_option(word)
        assert shown(board) and all(word in words for _, words in shown(board))


def test_the_keyboard_chooses(board):
    board.get_by_label("Chapter").focus()
    board.keyboard.press("ArrowDown")  # the first one
    assert {chapter for chapter, _ in shown(board)} == {"00"}
    board.keyboard.press("Tab")
    assert board.evaluate("document.activeElement.labels[0].textContent").startswith("Verdict")
    board.keyboard.type("holds")
    assert shown(board) and all("holds here" in words for _, words in shown(board))


def test_a_link_to_a_hidden_card_shows_it(board):
    board.get_by_label("Chapter").select_option("20")
    card = board.locator(".claim[data-chapter='50']").first
    assert not card.is_visible()
    board.locator(f"a[href='#{card.get_attribute('id')}']").click()
    assert card.is_visible() and board.get_by_label("Chapter").input_value() == ""


def test_without_a_script_every_card_is_visible(browser, serve):
    with serve(HTML) as address:
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(address + PAGE)
        assert len(shown(page)) == page.locator(".claim").count() > 30
        assert not page.locator(".choice").is_visible()
        context.close()
