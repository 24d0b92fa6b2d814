"""The one-line answer under each title and the headline picture, from recorded results.

A Sphinx extension: notebooks and pages stay as they are, the answers are put in while
the site is built. What is not recorded is not answered.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from utils import plots
from utils.recorded import load, release

REPO = Path(__file__).resolve().parent.parent
HEADLINE = REPO / "_assets" / "headline.png"
MACHINE = "reference"


# --- facts of one recorded file -------------------------------------------------------


def result(data, name):
    """A recorded result by name, or None."""
    return data["chapters"].get(name[:2], {}).get("results", {}).get(name)


def ratio_of(data, name, entry):
    """(value, low, high) of an entry of a recorded comparison, or None."""
    found = result(data, name)
    r = found and found["ratios"].get(entry)
    return (r["value"], r["low"], r["high"]) if r else None


def tiny(data):
    return ratio_of(data, "00.tiny", "compiled")


def cold(data):
    """Cold start of the deepest model, whole over regional."""
    found = result(data, "20.cold_depth")
    if not found:
        return None
    deepest = max(row["layers"] for row in found["rows"])
    value = next(row["ratio"] for row in found["rows"] if row["layers"] == deepest)
    return value, value, value


def cases(data):
    found = result(data, "30.cases")
    return found["rows"] if found else []


def best_case(data):
    rows = cases(data)
    best = max(rows, key=lambda row: row["low"]) if rows else None
    return (best["value"], best["low"], best["high"]) if best else None


def window(data):
    """Compiled FlexAttention against the faster of the two dense masks."""
    found = result(data, "50.window_4096")
    ratios = found["rows"][0] if found and found["kind"] == "rows" else None
    return (ratios["value"], ratios["low"], ratios["high"]) if ratios else None


# --- answers ---------------------------------------------------------------------------


def answers(files) -> dict[str, str]:
    """Chapter -> one sentence, from the reference machine's newest torch; what each says
    of the release stands in the chapter."""
    data = next((d for d in reversed(files) if d["machine"] == MACHINE), None)
    if data is None:
        return {}
    where = f"(torch {release(data)}, {data['provenance']['cores']} cores)"
    found = {}
    if t := tiny(data):
        found["00"] = f"An interval decides: on a tensor of eight numbers the compiled function runs at {t[0]:.2f}× of eager's speed {where}."
    if c := cold(data):
        found["20"] = f"Yes, at the first call: the deepest model here starts {c[0]:.1f}× faster with one block compiled than as a whole {where}."
    if rows := cases(data):
        wins = sum(row["word"] == "faster" for row in rows)
        found["30"] = f"Mostly: {wins} of {len(rows)} cases run faster compiled, the best {best_case(data)[0]:.1f}× {where}."
    if w := window(data):
        found["50"] = f"Yes, compiled and with a sparse mask: a sliding window runs {w[0]:.1f}× faster than with a dense mask {where}."
    return found


HEADLINES = [
    ("cold start, whole model / one block", cold),
    ("best Inductor case, eager / compiled", best_case),
    ("window attention, dense mask / FlexAttention", window),
    ("compiling a tiny function, eager / compiled", tiny),
]


def headline(files):
    """(figure, alt text) of what the reference machine measured, or None."""
    bars = {f"{what}\ntorch {release(data)}": found
            for what, ask in HEADLINES for data in files
            if data["machine"] == MACHINE and (found := ask(data))}
    if not bars:
        return None
    figure = plots.bars(bars, title="How many times faster, on two CPU cores?", unit="ratio (1: no difference)",
                        line=1, log=True, colours=["feature", "feature"])
    alt = "Measured ratios on two CPU cores: " + "; ".join(
        f"{name.replace(chr(10), ', ')}: {value:.1f}" for name, (value, _, _) in bars.items()) + "."
    return figure, alt


def write_headline(files) -> str:
    """Draw the landing page's picture; returns the Markdown that shows it."""
    made = headline(files)
    if made is None:
        HEADLINE.unlink(missing_ok=True)
        return "*Nothing is recorded yet: `make record NAME=my-laptop` fills this place.*"
    HEADLINE.write_bytes(plots.png(made[0]))
    return f"![{made[1]}](_assets/headline.png)"


# --- the extension ---------------------------------------------------------------------


def _put_in(app, docname, source):
    """Fills pages while they are read. Sphinx reads a page again when a recorded file changes."""
    for path in (REPO / "recorded").glob("*.json"):
        app.env.note_dependency(str(path))
    files = load()
    if docname == "index":
        source[0] = source[0].replace("<!-- headline -->", write_headline(files))
    chapter = re.match(r"chapters/(\d\d)_", docname)
    answer = chapter and answers(files).get(chapter[1])
    if answer:
        notebook = json.loads(source[0])
        title = notebook["cells"][0]
        text = "".join(title["source"])
        head, _, rest = text.partition("\n")
        title["source"] = f"{head}\n\n<p class=\"answer\"><strong>Does it pay on a laptop?</strong> {answer}</p>\n{rest}"
        source[0] = json.dumps(notebook)


def setup(app):
    app.connect("source-read", _put_in)
    return {"parallel_read_safe": True}
