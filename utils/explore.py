"""A set of frames as one slider: an ipywidgets slider in a live notebook, plain
accessible HTML everywhere else.

The HTML needs no script to be read: the first frame stands open, the others are folded
below it. On the site `_assets/explore.js` turns them into a slider. Imports without torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from matplotlib.figure import Figure

from utils.plots import img, png

FEWEST, MOST = 8, 12
LARGEST = 150_000  # bytes of HTML


@dataclass(frozen=True)
class Frame:
    """One position of the slider.

    label: short text of the position, such as "window 64"; figure: a matplotlib figure,
    best of the same size in all frames; alt: the text that is read in its place.
    """

    label: str
    figure: Figure
    alt: str


def explore(frames: Sequence[Frame], label: str) -> None:
    """Display frames as one slider called `label`.

    Raises ValueError for fewer than 8 or more than 12 frames, for a frame that another
    one repeats, a missing text, or more than 150 kB.
    """
    from IPython.display import display

    pictures = [png(frame.figure) for frame in frames]
    for fault in _faults(frames, pictures, label):
        raise ValueError(fault)
    figures = [_figure(frame, picture, f"{n} of {len(frames)}")
               for n, (frame, picture) in enumerate(zip(frames, pictures), 1)]
    html = _html(figures, label)
    if len(html) > LARGEST:
        raise ValueError(f"the explorer takes {len(html) / 1000:.0f} kB; at most "
                         f"{LARGEST / 1000:.0f} kB: draw smaller or simpler figures")
    names = [frame.label for frame in frames]
    display({**_widget(figures, names, label), "text/html": html,
             "text/plain": f"[explorer: {label}: {', '.join(names)}]"}, raw=True)


def _faults(frames, pictures, label) -> Iterator[str]:
    if not FEWEST <= len(frames) <= MOST:
        yield f"an explorer has {FEWEST} to {MOST} frames, not {len(frames)}"
    if not label.strip() or any(not text.strip() for f in frames for text in (f.label, f.alt)):
        yield "an explorer needs a label, and each of its frames a label and an alt text"
    for name, times in Counter(frame.label for frame in frames).items():
        if times > 1:
            yield f"{times} frames are labelled {name!r}: the reader cannot tell them apart"
    first = {}
    for frame, picture in zip(frames, pictures):
        other = first.setdefault(picture, frame.label)
        if other != frame.label:
            yield f"the frames {other!r} and {frame.label!r} show the same picture"


def _figure(frame: Frame, picture: bytes, place: str) -> str:
    return (f"<figure>{img(picture, frame.alt)}"
            f"<figcaption>{escape(frame.label)} ({place})</figcaption></figure>")


def _html(figures: list[str], label: str) -> str:
    """The slider stays hidden until a script can move it."""
    first, *others = figures
    return (f'<div class="explore">'
            f'<label hidden>{escape(label)} <input type="range" min="0" max="{len(others)}" '
            f'value="0" autocomplete="off"></label>\n'
            f"{first}\n"
            f"<details><summary>{escape(label)}: the other {len(others)} frames</summary>\n"
            + "\n".join(others) + "\n</details></div>")


def _widget(figures: list[str], names: list[str], label: str) -> dict:
    """The live slider's part of the output; empty where ipywidgets is not installed."""
    try:
        from ipywidgets import HTML, SelectionSlider, VBox
    except ImportError:
        return {}
    from traitlets import dlink

    slider = SelectionSlider(options=list(zip(names, figures)), description=label,
                             style={"description_width": "initial"}, layout={"width": "100%"})
    view = HTML()
    dlink((slider, "value"), (view, "value"))
    return VBox([slider, view])._repr_mimebundle_()
