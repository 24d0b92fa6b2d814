"""The explorer: what it accepts, what it displays, and that hostile text stays text."""

import base64
import builtins
import io
from html.parser import HTMLParser

import pytest
from matplotlib.figure import Figure

from utils import explore as explore_module
from utils.explore import FEWEST, MOST, Frame, explore

WIDGET = "application/vnd.jupyter.widget-view+json"


def figure(n):
    made = Figure(figsize=(1, 1))
    made.text(0.5, 0.5, str(n))
    return made


def frames(count, **changed):
    return [Frame(**{"label": f"window {n}", "alt": f"The number {n}.", "figure": figure(n), **changed})
            for n in range(1, count + 1)]


@pytest.fixture
def displayed(monkeypatch):
    """displayed(frames, label) -> the bundle that explore displays."""
    def run(*arguments):
        shown = []
        monkeypatch.setattr("IPython.display.display", lambda bundle, raw: shown.append(bundle))
        explore(*arguments)
        return shown[0]
    return run


class Tags(HTMLParser):
    """All tags with their attributes, and the text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.mark.parametrize("count", [FEWEST, MOST])
def test_html(displayed, count):
    from PIL import Image

    bundle = displayed(frames(count), "Window")
    html = Tags(bundle["text/html"])
    images = html.all("img")
    assert [i["alt"] for i in images] == [f"The number {n}." for n in range(1, count + 1)]
    assert len({i["src"] for i in images}) == count
    for image in images:
        data = base64.b64decode(image["src"].removeprefix("data:image/png;base64,"))
        assert Image.open(io.BytesIO(data)).format == "PNG"
    [slider] = html.all("input")
    assert (slider["type"], slider["min"], slider["max"]) == ("range", "0", str(count - 1))
    assert len(bundle["text/html"]) <= explore_module.LARGEST
    assert all(f"window {n} ({n} of {count})" in html.text for n in range(1, count + 1))
    assert bundle["text/plain"].startswith("[explorer: Window: window 1, window 2")


def test_without_a_script_one_frame_is_open_and_the_slider_hidden(displayed):
    order = [tag for tag, _ in Tags(displayed(frames(8), "Window")["text/html"]).tags]
    assert order.index("img") < order.index("details")
    assert order[order.index("details"):].count("img") == 7
    assert "hidden" in Tags(displayed(frames(8), "Window")["text/html"]).all("label")[0]


@pytest.mark.parametrize("count", [0, FEWEST - 1, MOST + 1])
def test_number_of_frames(count):
    with pytest.raises(ValueError, match=f"8 to 12 frames, not {count}"):
        explore(frames(count), "Window")


def test_frames_that_repeat():
    eight = frames(8)
    with pytest.raises(ValueError, match="'window 2' and 'again' show the same picture"):
        explore([*eight, Frame("again", eight[1].figure, "The second one again.")], "Window")
    with pytest.raises(ValueError, match="8 frames are labelled 'same'"):
        explore(frames(8, label="same"), "Window")


@pytest.mark.parametrize("changed", [{"alt": " "}, {"label": ""}])
def test_texts_are_wanted(changed):
    with pytest.raises(ValueError, match="label and an alt text"):
        explore(frames(8, **changed), "Window")
    with pytest.raises(ValueError, match="needs a label"):
        explore(frames(8), " ")


def test_size(monkeypatch):
    monkeypatch.setattr(explore_module, "LARGEST", 1_000)
    with pytest.raises(ValueError, match="at most 1 kB"):
        explore(frames(8), "Window")


def test_text_is_never_markup(displayed):
    evil = '"><script>alert(1)</script>'
    eight = [Frame(f"{evil}{n}", frame.figure, evil) for n, frame in enumerate(frames(8))]
    html = Tags(displayed(eight, evil)["text/html"])
    assert {tag for tag, _ in html.tags} == {
        "div", "label", "input", "figure", "img", "figcaption", "details", "summary"}
    assert html.all("img")[0]["alt"] == evil


def test_a_live_notebook_gets_a_widget(displayed):
    from ipywidgets.widgets.widget import _instances

    bundle = displayed(frames(8), "Window")
    slider, view = _instances[bundle[WIDGET]["model_id"]].children
    first = view.value
    slider.index = 3
    assert "window 4" in view.value and view.value != first
    assert slider.description == "Window"


def test_without_ipywidgets_the_html_stays(displayed, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == "ipywidgets":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert set(displayed(frames(8), "Window")) == {"text/html", "text/plain"}
