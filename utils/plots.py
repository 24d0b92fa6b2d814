"""The one figure style: baseline and feature in colours that the colour-blind can tell
apart, intervals drawn, units on the axes, a title that asks the question.

Functions return a matplotlib figure; `show(figure, alt=...)` displays it. Imports
without torch.
"""

from __future__ import annotations

import base64
import io
import itertools
import math
from collections.abc import Mapping
from html import escape

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

BASELINE, FEATURE = "#8a5a00", "#0067a5"  # at least 4.5 to 1 on white, distinct in grey
COLOURS = [BASELINE, FEATURE, "#b0306a", "#3b7d23", "#5d4a9c", "#444444"]
MARKERS = "os^Dvx"
STYLE = {
    "font.size": 10, "axes.titlesize": 11, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True,
    # Opaque: a transparent figure's black text is lost on a dark page.
    "figure.facecolor": "white", "savefig.facecolor": "white", "legend.frameon": False,
}
WIDTH, DPI = 5.2, 120  # inches, 624 pixels: on a phone the text is still read


def _figure(rows=1, columns=1, height=3.2):
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False)


def bars(values: Mapping[str, tuple], *, title: str, unit: str, line: float | None = None,
         log: bool = False, colours=("baseline",)) -> Figure:
    """Horizontal bars, one a name, with intervals.

    values: name -> (value, low, high) or a plain number.
    unit: text of the axis, with the unit. line: a vertical line, such as 1 for ratios.
    log: a logarithmic axis, for ratios: bars start at 1, a loss goes to the left.
    colours: "baseline" or "feature" for the bars in turn, repeated; with one word only
        the first bar has it and the others are the other's.
    """
    with matplotlib.rc_context(STYLE):
        figure, axes = _figure(height=1.2 + 0.34 * len(values))
        ax = axes[0, 0]
        triples = [v if isinstance(v, tuple) else (v, v, v) for v in values.values()]
        middles = [v for v, _, _ in triples]
        spread = [[v - low for v, low, _ in triples], [high - v for v, _, high in triples]]
        colour = {"baseline": BASELINE, "feature": FEATURE}
        if len(colours) == 1:
            other = "feature" if colours[0] == "baseline" else "baseline"
            colours = (*colours, *[other] * (len(values) - 1))
        colours = [colour[word] for word, _ in zip(itertools.cycle(colours), values)]
        start = 1 if log else 0
        ax.barh(range(len(values)), [v - start for v in middles], left=start, xerr=spread,
                color=colours, height=0.65, error_kw={"capsize": 3, "lw": 1.2})
        ax.set_yticks(range(len(values)), list(values))
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
        if log:
            ax.set_xscale("log")
            _plain_powers(ax.xaxis)
        if line is not None:
            ax.axvline(line, color="#333333", lw=1, ls="--")
        ax.set(title=title, xlabel=unit)
        return figure


def curves(series: Mapping[str, list[tuple]], *, title: str, xlabel: str, ylabel: str,
           log: bool = False) -> Figure:
    """Lines with interval bands: name -> [(x, y), ...] or [(x, y, low, high), ...].

    log: both axes logarithmic. Points that are not finite are left out.
    """
    with matplotlib.rc_context(STYLE):
        figure, axes = _figure(height=3.0 + 0.22 * -(-len(series) // 2))
        ax = axes[0, 0]
        for number, (name, points) in enumerate(series.items()):
            points = sorted(p for p in points if all(map(math.isfinite, p)))
            colour, marker = COLOURS[number % 6], MARKERS[number % 6]
            xs, ys = [p[0] for p in points], [p[1] for p in points]
            ax.plot(xs, ys, color=colour, marker=marker, ms=5, label=name)
            if points and len(points[0]) == 4:
                ax.fill_between(xs, [p[2] for p in points], [p[3] for p in points],
                                color=colour, alpha=0.2, lw=0)
        if log:
            ax.set_xscale("log", base=2)
            ax.set_yscale("log")
            ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
            _plain_powers(ax.yaxis)
        else:
            ax.set_ylim(bottom=0)
        ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
        # Below the axes: inside, it would cover a line sooner or later.
        figure.legend(loc="outside lower center", ncols=2 if len(series) > 1 else 1)
        return figure


def label_one_two_five(axis) -> None:
    """Plain numbers at the ticks of a logarithmic axis that begin with 1, 2 or 5."""
    for show in (axis.set_major_formatter, axis.set_minor_formatter):
        show(FuncFormatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in "125" else ""))


def _plain_powers(axis) -> None:
    """Plain numbers on a logarithmic axis: powers of ten, and what lies between them where
    those alone would leave an axis from 0.5 to 3 with one number."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def masks(arrays: Mapping[str, object], *, title: str, columns: int = 4) -> Figure:
    """Small images of 2-D arrays of 0 to 1 (queries down, keys across): dark is computed.
    One scale for all, so that the same number has the same colour everywhere."""
    with matplotlib.rc_context(STYLE):
        columns = min(columns, len(arrays))
        rows = -(-len(arrays) // columns)
        figure, axes = _figure(rows, columns, height=0.5 + 1.75 * rows)
        for ax in axes.flat:
            ax.set_axis_off()
        for ax, (name, array) in zip(axes.flat, arrays.items()):
            ax.imshow(array, cmap="Blues", vmin=0, vmax=1, interpolation="nearest", aspect="equal")
            ax.set_title(name, fontsize=9)
        figure.suptitle(title, fontsize=11)
        return figure


def png(figure: Figure) -> bytes:
    """The figure as a PNG of at most 64 colours: a third of the size, the same to the eye."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    image = Image.open(buffer).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    small = io.BytesIO()
    image.save(small, format="png", optimize=True)
    return small.getvalue()


def img(picture: bytes, alt: str) -> str:
    """The HTML of a PNG that lies in the page itself."""
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'


def show(figure: Figure, *, alt: str) -> None:
    """Display a figure with the text that a screen reader reads in its place.

    Raises ValueError for an empty text.
    """
    from IPython.display import display

    if not alt.strip():
        raise ValueError("a figure needs an alt text: what does it show?")
    display({"image/png": png(figure), "text/plain": f"[figure: {alt}]"},
            metadata={"image/png": {"alt": alt}}, raw=True)
