"""Figures: small, opaque, described."""

import io
import re

import numpy
import pytest

from utils import plots


@pytest.fixture
def figures():
    return {
        "bars": plots.bars({"eager": (1, 0.9, 1.1), "compiled": (2, 1.5, 2.5)}, title="Faster?", unit="ratio"),
        "curves": plots.curves({"a": [(1, 2), (2, 3)], "b": [(1, 1, 0.5, 2), (2, float("inf"), 1, 1)]},
                               title="Rising?", xlabel="n", ylabel="s", log=True),
        "masks": plots.masks({str(n): numpy.eye(8) for n in range(5)}, title="Which?"),
    }


def test_small_and_opaque(figures):
    from PIL import Image

    for name, figure in figures.items():
        data = plots.png(figure)
        image = Image.open(io.BytesIO(data)).convert("RGBA")
        assert len(data) < 60_000, name
        assert image.getpixel((0, 0)) == (255, 255, 255, 255), name
        assert image.width <= 700


def test_show_needs_a_text(figures):
    with pytest.raises(ValueError, match="alt"):
        plots.show(figures["bars"], alt=" ")


@pytest.mark.parametrize("colour", plots.COLOURS)
def test_colours_can_be_read_on_white(colour):
    rgb = [int(pair, 16) / 255 for pair in re.findall("..", colour[1:])]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear))
    assert 1.05 / (luminance + 0.05) >= 4.5  # WCAG 2.1, contrast ratio


def test_a_number_has_one_colour_in_all_masks():
    figure = plots.masks({"partly": numpy.full((2, 2), 0.5), "all": numpy.ones((2, 2))}, title="Which?")
    shown = {ax.get_title(): ax.images[0] for ax in figure.axes if ax.images}
    assert {image.get_clim() for image in shown.values()} == {(0, 1)}


def test_a_ratio_below_one_is_a_bar_to_the_left():
    figure = plots.bars({"gain": (4, 3, 5), "loss": (0.5, 0.4, 0.6)}, title="Faster?", unit="ratio", log=True)
    gain, loss = figure.axes[0].patches
    assert (gain.get_x(), gain.get_width(), loss.get_x(), loss.get_width()) == (1, 3, 1, -0.5)


def test_the_legend_covers_no_line(figures):
    figure = figures["curves"]
    figure.canvas.draw()
    legend, ax = figure.legends[0], figure.axes[0]
    assert not legend.get_window_extent().overlaps(ax.get_window_extent())


@pytest.mark.parametrize("top, labels", [(1.6, ["0.5", "1"]), (4.0, ["0.5", "1", "2"]), (3000, ["1", "10", "100", "1000"])])
@pytest.mark.parametrize("kind", ["curves", "bars"])
def test_an_axis_of_powers_has_plain_numbers(kind, top, labels):
    if kind == "curves":
        figure = plots.curves({"a": [(64, 0.45), (128, top)]}, title="t?", xlabel="x", ylabel="y", log=True)
        axis = figure.axes[0].yaxis
    else:
        figure = plots.bars({"a": (0.45, 0.45, 0.45), "b": (top, top, top)}, title="t?", unit="x", log=True)
        axis = figure.axes[0].xaxis
    figure.draw_without_rendering()
    low, high = axis.get_view_interval()
    shown = [label.get_text() for label, at in zip(axis.get_ticklabels(), axis.get_majorticklocs()) if low <= at <= high]
    assert shown == labels and not any(label.get_text() for label in axis.get_ticklabels(minor=True))
