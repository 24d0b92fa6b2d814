"""The scoreboard of a room: python -m tools.board FOLDER

Reads the files of results that learners recorded, all put into one folder, prints a
summary and writes _build/board.html: how far the machines lie apart, which is best and
worst, and what of all that the files know explains it. The files are data of others: one
that is not in order costs a sentence, and the rest stands. Needs no torch.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from tools.chapters import REPO, stop
from tools.page import page
from tools.record import BUSY
from utils import plots, recorded, report, scoreboard
from utils.ratio import Ratio

BUILT = REPO / "_build" / "board.html"
CHANCE = 0.05  # an order that chance alone makes as often explains nothing
DRAWN = 40     # results in a chapter's figure
TOO_FEW = "These runs are too few, or too much alike, to tell what orders them."
READING = ("A ratio above one is faster than what it is measured against. A property orders the runs when its groups "
           "do not overlap, and chance would seldom do the same; it need not be the cause.")


# --- what was measured --------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """One run's ratio for one result, and what its file knows about the run."""

    run: str
    ratio: Ratio
    knows: dict


@dataclass(frozen=True)
class Result:
    """One ratio that several runs measured; points from the worst to the best."""

    name: str
    points: tuple[Point, ...]

    @property
    def chapter(self) -> str:
        return self.name[:2]

    @property
    def worst(self) -> Point:
        return self.points[0]

    @property
    def best(self) -> Point:
        return self.points[-1]

    @property
    def median(self) -> float:
        return statistics.median(point.ratio.value for point in self.points)


def _load(share) -> str:
    return None if share is None else "busy" if share > BUSY else "quiet"


# What a file knows of a run: (provenance, run) -> a word or number, None where it does not.
KNOWN: dict[str, Callable] = {
    "the CPU": lambda machine, run: machine["cpu"],
    "the CPU's capability": lambda machine, run: machine.get("capability"),
    "the number of cores": lambda machine, run: machine["cores"],
    "the number of threads": lambda machine, run: run["threads"],
    "the device": lambda machine, run: machine["device"].partition(":")[0],
    "the version of torch": lambda machine, run: machine["torch"].split("+")[0],
    "the load by other programs": lambda machine, run: _load(run["other_load"]),
    "the effort": lambda machine, run: run["effort"],
}


def results(files: list[dict]) -> list[Result]:
    """The ratios that two runs or more measured, by name."""
    found: dict[str, list[Point]] = {}
    for data in files:
        run = f"{data['machine']}, torch {recorded.release(data)}"
        for chapter in data["chapters"].values():
            knows = {what: ask(data["provenance"], chapter["run"]) for what, ask in KNOWN.items()}
            for name, entry in chapter["results"].items():
                for case, ratio in entry.get("ratios", {}).items():
                    if ratio["low"] > 0:  # of zero nothing is a multiple
                        label = f"{name}: {case} against {entry['baseline']}"
                        found.setdefault(label, []).append(Point(run, Ratio(**ratio), knows))
    return [Result(name, tuple(sorted(points, key=lambda p: (p.ratio.value, p.run))))
            for name, points in sorted(found.items()) if len(points) > 1]


# --- what explains it -----------------------------------------------------------------


def asked(result: Result) -> dict[str, dict]:
    """Property -> its groups, value -> places of the points. Only properties that could
    order the runs by more than chance: not one that all runs share, that differs in nearly
    every run, or that some file does not know."""
    groups = {}
    for what in KNOWN:
        parts: dict = {}
        for place, point in enumerate(result.points):
            parts.setdefault(point.knows[what], []).append(place)
        if None not in parts and len(parts) > 1 and _by_chance(parts) <= CHANCE:
            groups[what] = parts
    return groups


def orders(result: Result) -> list[tuple[str, list]]:
    """What orders a result: (property, its values from the slowest group to the fastest).

    A property orders the runs when the groups with one value each do not overlap. That
    also happens by chance, so CHANCE is divided among the properties that are asked;
    two that split the runs alike count once.
    """
    groups = asked(result)
    splits = {frozenset(map(tuple, parts.values())) for parts in groups.values()}
    return [(what, sorted(parts, key=lambda value: parts[value][0])) for what, parts in groups.items()
            if _by_chance(parts) * len(splits) <= CHANCE and _apart(result, parts.values())]


def _by_chance(parts: dict) -> float:
    """How often groups of these sizes are in some order when runs are dealt at random."""
    sizes = [len(places) for places in parts.values()]
    ways = math.factorial(sum(sizes)) // math.prod(map(math.factorial, sizes))
    return math.factorial(len(sizes)) / ways


def _apart(result: Result, parts) -> bool:
    """Does every group lie wholly below or above each other? (Points are sorted.)"""
    ends = sorted((result.points[places[0]].ratio.value, result.points[places[-1]].ratio.value) for places in parts)
    return all(before[1] < after[0] for before, after in zip(ends, ends[1:]))


def explained(result: Result) -> str:
    """One sentence: what orders the runs of a result, if anything does."""
    if result.best.ratio.low <= result.worst.ratio.high:
        return "There is nothing to explain: the intervals of the worst and the best overlap."
    told = [f"{what} ({' < '.join(map(str, values))})" for what, values in orders(result)]
    if len(told) == 1:
        return f"{_upper(told[0])} orders the runs."
    if told:
        return f"{_upper(' and '.join(told))} each order the runs; this room cannot tell which of them it is."
    if not asked(result):
        return TOO_FEW
    return "Nothing that the files know orders the runs."


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def overall(found: list[Result]) -> str:
    """One sentence on all results."""
    apart = [result for result in found if result.best.ratio.low > result.worst.ratio.high]
    counts = Counter(what for result in apart for what, _ in orders(result))
    if not apart:
        return "No result sets two runs of this room apart."
    if not any(map(asked, apart)):
        return TOO_FEW
    told = ", ".join(f"{what} orders {number}" for what, number in counts.most_common())
    rest = sum(not orders(result) for result in apart)
    return (f"Of {len(apart)} results that set runs apart, {told + ', and ' if told else ''}"
            f"nothing that the files know orders {rest}.")


# --- text -------------------------------------------------------------------------------


def ratio(found) -> str:
    """A ratio of a file: also an absurd one stays short."""
    value = getattr(found, "value", found)
    return report.ratio(found) if value < 10_000 else f"{value:.0e}×"


def tally(row) -> str:
    """What the runs say of a claim: "holds here: 3, cannot tell here: 1"."""
    counts = Counter(verdict.short for verdict in row.verdicts if verdict.machine)
    return ", ".join(f"{word}: {counts[word]}" for word in scoreboard.WORDS if counts[word])


def print_summary(files, found, judged):
    machines = {data["machine"] for data in files}
    print(f"{_count(len(files), 'run')} of {_count(len(machines), 'machine')}; "
          f"{_count(len(found), 'result')} that two runs or more measured.")
    if found:
        report.rows([{"result": result.name[:40], "runs": len(result.points), "worst": ratio(result.worst.ratio.value),
                      "median": ratio(result.median), "best": ratio(result.best.ratio.value),
                      "ordered by": ", ".join(what for what, _ in orders(result)) or "nothing known"}
                     for result in found])
        print(overall(found))
    if judged:
        report.rows([{"claim": row.claim["id"], "verdicts": tally(row)} for row in judged])


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


# --- the page -----------------------------------------------------------------------------


def html(files, found, judged, faults) -> str:
    """The text of the page. All that a file says is escaped."""
    machines = {data["machine"] for data in files}
    releases = ", ".join(sorted({recorded.release(data) for data in files}))
    parts = [f"<h1>The room's board</h1><p>{_count(len(files), 'run')} of {_count(len(machines), 'machine')}, "
             f"torch {escape(releases)}.</p><p>{escape(overall(found))}</p><p><small>{READING}</small></p>"]
    if faults:
        parts.append(f"<h2>Left out</h2><ul>{''.join(f'<li>{escape(fault)}</li>' for fault in faults)}</ul>")
    for number in sorted({result.chapter for result in found}):
        parts.append(_chapter(number, [result for result in found if result.chapter == number]))
    if judged:
        items = "".join(f"<li><code>{escape(row.claim['id'])}</code> {escape(row.claim['claim'])} "
                        f"<strong>{escape(tally(row))}</strong></li>" for row in judged)
        parts.append(f"<h2>The claims</h2><ul>{items}</ul>")
    parts.append(f"<h2>The runs</h2>{scoreboard.runs(files)}")
    return page("The room's board - PyTorch 2.5, Measured", "board.css", f"<main>{''.join(parts)}</main>")


def _chapter(number: str, found: list[Result]) -> str:
    title = scoreboard.chapter_pages().get(number, number).removesuffix(".ipynb").replace("_", " ")
    drawn = found[:DRAWN]
    alt = "Ratios of all runs, a line a result: " + "; ".join(
        f"{result.name}, {ratio(result.worst.ratio.value)} to {ratio(result.best.ratio.value)}" for result in drawn)
    return f"<h2>Chapter {escape(title)}</h2>{plots.img(plots.png(figure(drawn)), f'{alt}.')}{''.join(map(_card, found))}"


def _card(result: Result) -> str:
    spread = ratio(result.best.ratio.value / result.worst.ratio.value)
    return (f"<article><h3>{escape(result.name)}</h3>"
            f"<p>{len(result.points)} runs, median {ratio(result.median)}; best over worst: {spread}.</p>"
            f"<ul><li>best: {_told(result.best)}</li><li>worst: {_told(result.worst)}</li></ul>"
            f"<p>{escape(explained(result))}</p></article>")


def _told(point: Point) -> str:
    return f"{ratio(point.ratio)}, {escape(point.run)}"


def figure(found: list[Result]) -> Figure:
    """A line a result, a point a run. What is off the scale stands at its end."""
    with matplotlib.rc_context(plots.STYLE):
        drawn = Figure(figsize=(plots.WIDTH, 1.2 + 0.36 * len(found)), dpi=plots.DPI, layout="constrained")
        ax = drawn.subplots()
        ax.set_xscale("log")
        for place, result in enumerate(found):
            values = [min(max(p.ratio.value, scoreboard.SMALLEST), scoreboard.LARGEST) for p in result.points]
            ax.plot([values[0], values[-1]], [place] * 2, color="#999999", lw=1.5)
            ax.plot(values, [place] * len(values), color=plots.FEATURE, marker="o", ms=5, ls="", alpha=0.6)
        ax.axvline(1, color="#333333", lw=1, ls="--")
        ax.set(title="How far do the machines lie apart?", xlabel="times as fast as the baseline")
        ax.set_yticks(range(len(found)), [result.name.partition(" against ")[0][:28].strip() for result in found])
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
        plots.label_one_two_five(ax.xaxis)
        return drawn


# --- the command ----------------------------------------------------------------------------


def read(folder: Path) -> tuple[list[dict], list[str]]:
    """(files in order, a sentence for each other)."""
    checked = (recorded.check(path) for path in sorted(folder.glob("*.json")))
    return recorded.load(folder), [faults[0] for faults in checked if faults]


def main():
    if len(sys.argv) != 2:
        stop("The board wants the folder that holds the room's files: make board DIR=room", 2)
    folder = Path(sys.argv[1])
    if not folder.is_dir():
        stop(f"There is no folder {folder}.", 2)
    files, faults = read(folder)
    if not files:
        stop(f"No file in {folder} is one of recorded results: make record NAME=my-laptop writes them.")
    found = results(files)
    judged = [row for row in scoreboard.rows(files) if any(verdict.machine for verdict in row.verdicts)]
    print_summary(files, found, judged)
    BUILT.parent.mkdir(exist_ok=True)
    recorded.replace_file(BUILT, html(files, found, judged, faults))
    print("The board is in _build/board.html.")


if __name__ == "__main__":
    main()
