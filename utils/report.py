"""Printed numbers, tables and logs: the one grammar of the book's outputs.

A number is printed as *number, space, unit* ("1.23 ms", "5.2 MB", "97 %"), a ratio
with a multiplication sign and its interval in brackets ("1.52× [1.49, 1.56]").
Because there is only this grammar, one short file (tests/sanitize.cfg) masks every
measured number and leaves names, order and number of rows under test.
Imports without torch.
"""

from __future__ import annotations

import math
import os
import re
import sys
import sysconfig
import tempfile
from pathlib import Path

from utils.ratio import Ratio



def _three(x: float) -> str:
    """Three significant digits, never in scientific notation."""
    if x == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(x))))
    return f"{x:.{digits}f}" if abs(x) < 1000 else f"{x:,.0f}"


def seconds(value: float | None) -> str:
    """A time in seconds as text: 0.00123 -> "1.23 ms"."""
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "never"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= scale:
            return f"{_three(value / scale)} {unit}"
    return f"{_three(value / 1e-9)} ns"


def memory(value: float | None) -> str:
    """A size in bytes as text, decimal units: 5_200_000 -> "5.20 MB"."""
    if value is None:
        return "-"
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= scale:
            return f"{_three(value / scale)} {unit}"
    return f"{value:.0f} B"


def share(value: float, low: float | None = None, high: float | None = None) -> str:
    """A share between 0 and 1 as text, with its interval where one is given."""
    text = f"{100 * value:.0f} %"
    return text if low is None else f"{text} [{100 * low:.0f}, {100 * high:.0f}]"


def ratio(value) -> str:
    """A `ratio.Ratio` (with its interval) or a plain number as text.

    >>> ratio(1.5)
    '1.50×'
    """
    if value is None:
        return "-"
    if hasattr(value, "low"):
        return f"{value.value:.2f}× [{value.low:.2f}, {value.high:.2f}]"
    return f"{value:.2f}×"


def rows(items: list[dict], title: str | None = None) -> None:
    """Print a list of dicts as a table, a column a key; numbers go to the right and what
    a row does not have is a dash."""
    if title:
        print(title)
    if not items:
        print("(no rows)")
        return
    heads = list(dict.fromkeys(head for item in items for head in item))
    cells = [[_text(item.get(head)) for head in heads] for item in items]
    widths = [max(len(row[i]) for row in [heads, *cells]) for i in range(len(heads))]
    right = [all(_numeric(row[i]) for row in cells) for i in range(len(heads))]

    def line(row):
        pairs = zip(row, widths, right)
        return "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in pairs).rstrip()

    print(line(heads))
    print("  ".join("-" * w for w in widths))
    for row in cells:
        print(line(row))


def _text(value) -> str:
    if value is None:
        return "-"
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _numeric(text: str) -> bool:
    return text == "-" or bool(re.match(r"[-+]?[\d.,]+(\s?[^\W\d]{1,3}|×.*|\s%.*)?$", text))


def table(comparison, title: str | None = None) -> None:
    """Print a `timing.Comparison`: one row an entry, first call apart, speed-up
    against the first entry with its 95 % interval, and the verdict word."""
    items = []
    for name in comparison.names:
        m = comparison[name]
        speedup = comparison.speedup(name) if name != comparison.baseline else None
        items.append({
            "": name + (" (noisy)" if m.noisy else ""),
            "first call": seconds(m.first_call_s),
            "median": seconds(m.median_s),
            "speed-up [95 %]": ratio(speedup) if speedup else "baseline",
            "verdict": speedup.word if speedup else "",
        })
    rows(items, title)


def recorded_rows(name: str) -> None:
    """Print what named machines recorded under `name` (see `utils.recorded`)."""
    from utils.recorded import recorded

    found = recorded(name)
    if not found:
        print(f"Nothing is recorded for {name} yet.")
        return
    items = []
    for machine, torch, entry in found:
        where = {"machine": machine, "torch": torch}
        if entry["kind"] == "comparison":
            for case, r in entry["ratios"].items():
                items.append({**where, "": case, f"against {entry['baseline']}": ratio(Ratio(**r))})
        else:
            items += [{**where, **{k: _plain(k, v) for k, v in row.items()}}
                      for row in entry["rows"]]
    rows(items, "Recorded")


def _plain(key: str, value) -> str:
    """A recorded value as text; the key's ending names its unit (`_s`, `_bytes`, ...)."""
    if not isinstance(value, float | int) or isinstance(value, bool):
        return _text(value)
    if key.endswith("_s") or key == "seconds":
        return seconds(value)
    if key.endswith("bytes"):
        return memory(value)
    if isinstance(value, float):
        return f"{value:.2f}×" if key in ("ratio", "value", "low", "high") else f"{value:.3g}"
    return str(value)


def _folders() -> list[tuple[str, str]]:
    """Folders whose paths never appear in an output, most specific first."""
    repo = Path(__file__).resolve().parent.parent
    places = [
        (os.environ.get("TORCHINDUCTOR_CACHE_DIR"), "<cache>"),
        (sysconfig.get_path("purelib"), "<site-packages>"),
        (sysconfig.get_path("stdlib"), "<python>"),
        (sysconfig.get_path("include"), "<python-include>"),
        (sys.prefix, "<env>"),
        (sys.base_prefix, "<python>"),
        (str(repo), "<book>"),
        (tempfile.gettempdir(), "<tmp>"),
        (str(Path.home()), "<home>"),
    ]
    seen: dict[str, str] = {}
    for path, name in places:
        for form in {path, os.path.realpath(path)} if path else ():
            if len(form) > 3:
                seen.setdefault(form, name)
    return sorted(seen.items(), key=lambda pair: -len(pair[0]))


def scrub(text: str) -> str:
    """Replace this machine's folders (home, temp, packages, Python, book) in `text`
    by names such as <tmp>, and what is left of random temporary names."""
    for path, name in _folders():
        text = text.replace(path, name)
        text = text.replace(path.replace("\\", "/"), name)
    text = re.sub(r"(?<![\w<>.])/(?:usr|opt|home|root|tmp|var|work|mnt|private|Users)/[^\s:'\",)\]]*/",
                  "<system>/", text)
    return re.sub(r"<tmp>/[\w.-]*", "<tmp>/...", text)
