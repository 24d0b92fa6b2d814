"""The scoreboard: the claims of the ledger beside what each recorded run says about them.

Words are computed anew from the measurement and the ledger's rule: a file says what was
measured, never what that means. All text is escaped. Imports without torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from utils import claims, plots, recorded

CHAPTERS = Path(__file__).resolve().parent.parent / "chapters"
NEEDS = "not measurable here"
NOT_YET = "not recorded yet"
WORDS = (claims.HOLDS, claims.FAILS, claims.UNSURE, claims.NOT_REACHED, claims.WRONG, NEEDS, claims.NO_SOURCE, NOT_YET)
RATIOS, SHARES = ("at_least", "at_most", "within", "reaches"), ("share",)
SMALLEST, LARGEST = 0.02, 500  # what the figure has room for: one absurd ratio leaves the others readable


@dataclass(frozen=True)
class Verdict:
    """What one run says of a claim; machine and torch are None where nothing is run."""

    word: str
    measured: object = None
    machine: str | None = None
    torch: str | None = None

    @property
    def short(self) -> str:
        """The word without what a measurement would need."""
        return self.word.partition(" (")[0]

    @property
    def run(self) -> str:
        return f"{self.machine}, torch {self.torch}"


@dataclass(frozen=True)
class Row:
    """A claim of the ledger with its verdicts, one a run at most."""

    claim: dict
    verdicts: tuple[Verdict, ...]

    @property
    def words(self) -> list[str]:
        return [word for word in WORDS if word in {v.short for v in self.verdicts}]

    @property
    def group(self) -> str:
        """The one class of `GROUPS` that the claim belongs to."""
        judged = [word for word in self.words if word != NEEDS] or self.words
        if claims.HOLDS in judged:
            return claims.HOLDS if judged == [claims.HOLDS] else MIXED
        # What refutes weighs more than what cannot tell.
        return min(judged, key=list(GROUPS).index)


MIXED = "mixed"
GROUPS = {
    claims.HOLDS: ("Holds wherever it was measured", "Every run that could measure it says so; "
                   "another machine may differ."),
    MIXED: ("Holds in some runs only", "The machine or the version of torch decides."),
    claims.WRONG: ("Wrong as stated", "The primary source or a run contradicts the wording, on any machine; "
                   "each card says what is right instead."),
    claims.FAILS: ("Does not hold where it was measured", "The whole interval lies on the other side of the claim, "
                   "in one run at least."),
    claims.NOT_REACHED: ("Not reached", "An \"up to\" that no run came to; one machine does not refute it."),
    claims.UNSURE: ("Cannot be told", "The interval holds the claimed limit."),
    NEEDS: ("Not measurable so far", "No run had what it takes; a machine that has it can add its results."),
    claims.NO_SOURCE: ("No source found", "Nothing was found that says where it comes from, "
                       "so there is nothing to check."),
    NOT_YET: ("Not recorded yet", "No run has judged it yet."),
}


# --- claims and runs ------------------------------------------------------------------


def files() -> list[dict]:
    """The recorded runs of named machines, and the reader's own last one."""
    mine = recorded.own()
    return recorded.load() + ([mine] if mine else [])


def rows(files: list[dict], ledger: dict[str, dict] | None = None) -> list[Row]:
    """A row for each claim of the ledger (claims.yml when None), in its order; a sentence
    for each verdict that does not fit the ledger, which is left out."""
    ledger = claims.load() if ledger is None else ledger
    found = {name: [] for name in ledger}
    for data in files:
        for name, entry in recorded.verdicts(data).items():
            try:
                verdict = _verdict(ledger.get(name), data, entry)
            except (TypeError, ValueError) as error:
                print(f"Left out: {recorded.file_name(data)}: {name}: {error}.")
            else:
                found[name].append(verdict)
    return [Row(claim, tuple(_read(claim) or found[name] or [Verdict(NOT_YET)])) for name, claim in ledger.items()]


def _verdict(claim, data, entry) -> Verdict:
    """Raises TypeError or ValueError when the measurement does not fit the claim's rule."""
    if claim is None:
        raise ValueError("no such claim is in the ledger")
    measured, needs = claims.from_json(entry["measured"]), None
    if measured is None and entry["word"].startswith(NEEDS):
        needs = entry["word"][len(NEEDS) + len(" (needs "):-1]
    return Verdict(claims.word_for(claim, measured, needs), measured, data["machine"], recorded.release(data))


def _read(claim) -> list[Verdict]:
    """A statement's verdict: it rests on the sources, whatever a run says."""
    return [Verdict(claims.word_for(claim))] if claim["test"] == "statement" else []


# --- pages ------------------------------------------------------------------------------


def chapter_pages() -> dict[str, str]:
    """Chapter -> file name of its notebook."""
    return {path.name[:2]: path.name for path in sorted(CHAPTERS.glob("[0-9][0-9]_*.ipynb"))}


def chapter_titles(rows: list[Row]) -> dict[str, str]:
    """Number -> name of the chapters that rows belong to, in order."""
    pages = chapter_pages()
    return {number: pages.get(number, f"{number}, to come").removesuffix(".ipynb").replace("_", " ")
            for number in sorted({row.claim["chapter"] for row in rows})}


def chapter_link(number: str) -> str:
    page = chapter_pages().get(number)
    return f'<a href="{escape(page)}">chapter {number}</a>' if page else f"chapter {escape(number)}, to come"


def runs(files: list[dict]) -> str:
    """HTML: the runs that the verdicts come from."""
    if not files:
        return "<p>No results are recorded yet.</p>"
    return f'<ul class="scoreboard">{"".join(map(_run, files))}</ul>'


def _run(data) -> str:
    from_, chapters = data["provenance"], data["chapters"]
    date = max(chapter["run"]["date"][:10] for chapter in chapters.values()) if chapters else "never"
    device = "" if from_["device"] == "cpu" else f", {from_['device']}"
    return (f"<li><strong>{escape(data['machine'])}, torch {escape(recorded.release(data))}</strong>: "
            f"{escape(from_['cpu'])}, {from_['cores']} cores{escape(device)}; {escape(from_['os'])}; "
            f"Python {escape(from_['python'])}; chapters {', '.join(sorted(chapters)) or 'none'}; last run {date}</li>")


def summary(rows: list[Row]) -> str:
    """HTML: a paragraph for each class of verdicts that occurs."""
    machines = {v.machine for row in rows for v in row.verdicts if v.machine}
    said = {0: "No machine has recorded a verdict yet.", 1: "All runs are of one machine."}.get(
        len(machines), f"The runs are of {len(machines)} machines.")
    parts = [f"<p>{len(rows)} claims stand in the ledger. {said}</p>"]
    for group, (title, meaning) in GROUPS.items():
        if members := [row for row in rows if row.group == group]:
            parts.append(f"<p><strong>{title}: {len(members)} of {len(rows)}.</strong> {escape(meaning)} "
                         f"{'; '.join(map(_mention, members))}.</p>")
    return f'<div class="scoreboard">{"".join(parts)}</div>'


def _mention(row: Row) -> str:
    name = escape(row.claim["id"])
    if len(row.words) > 1:
        detail = "; ".join(f"{v.run}: {v.short}" for v in row.verdicts)
    else:
        detail = row.verdicts[0].word.partition(" (")[2].removesuffix(")")
    return f'<a href="#{name}"><code>{name}</code></a>' + (f" ({escape(detail)})" if detail else "")


def board(rows: list[Row]) -> str:
    """HTML: a card for each claim, and two lists to choose by, which stay hidden until
    _assets/scoreboard.js moves them."""
    words = {word: word for word in WORDS if any(word in row.words for row in rows)}
    return (f'<div class="scoreboard"><div class="choice" hidden>{_select("Chapter", chapter_titles(rows))}'
            f'{_select("Verdict", words)}</div>'
            f'<p role="status" aria-live="polite">{len(rows)} of {len(rows)} claims shown</p>'
            f'{"".join(map(card, rows))}</div>')


def _select(label: str, options: dict[str, str]) -> str:
    shown = "".join(f'<option value="{escape(value)}">{escape(text)}</option>' for value, text in options.items())
    return f'<label>{label} <select autocomplete="off"><option value="">all</option>{shown}</select></label>'


def card(row: Row, folded: bool = True) -> str:
    """HTML: a claim, its verdicts, its correction and its sources (folded or open)."""
    claim, name = row.claim, escape(row.claim["id"])
    limit = claims.claimed(claim)
    correction = claim.get("correction")
    return (f'<article class="claim" id="{name}" data-chapter="{escape(claim["chapter"])}" '
            f'data-words="{escape("|".join(row.words))}"><h3>{escape(claim["claim"])}</h3>'
            f'<p><code>{name}</code>, {chapter_link(claim["chapter"])}.'
            f'{f" Claimed: {escape(limit)}." if limit else ""}</p>'
            f'<ul>{"".join(_item(claim, v) for v in row.verdicts)}</ul>'
            f'{f"<p><strong>Correction:</strong> {escape(correction)}</p>" if correction else ""}'
            f"<details{'' if folded else ' open'}><summary>Sources</summary>{sources(claim)}</details></article>")


def _item(claim, verdict: Verdict) -> str:
    measured = claims.measured_text(claim["test"], verdict.measured)
    told = (f": {verdict.run}" if verdict.machine else "") + (f", measured {measured}" if measured else "")
    return f"<li><strong>{escape(verdict.word)}</strong>{escape(told)}</li>"


def sources(claim) -> str:
    """HTML: both sides' addresses, and the conditions."""
    said = "; ".join(_link(s["who"], s.get("url")) for s in claim["said_by"]) or "nobody: left out of both articles"
    source = claim.get("source")
    found = _link(source["title"], source["url"]) if source else "none found"
    conditions = claim.get("conditions")
    return (f"<p>Said by: {said}.</p><p>Primary source: {found}.</p>"
            + (f"<p>Conditions: {escape(conditions)}</p>" if conditions else ""))


def _link(text, url) -> str:
    return f'<a href="{escape(url)}">{escape(text)}</a>' if url else escape(text)


# --- the figure -----------------------------------------------------------------------------


def figure(rows: list[Row]):
    """(figure, alt text): claimed ranges shaded, measured ratios and shares of cases as
    points with their intervals; None while there is nothing to draw."""
    ratios = [(row, points) for row in rows if (points := _points(row, RATIOS, SMALLEST, LARGEST))]
    shares = [(row, points) for row in rows if (points := _points(row, SHARES, 0, 1))]
    if not ratios + shares:
        return None
    with matplotlib.rc_context(plots.STYLE):
        return _draw(ratios, shares), _alt(ratios + shares)


def _draw(ratios, shares) -> Figure:
    panels = [drawn for drawn in (ratios, shares) if drawn]
    runs = list(dict.fromkeys(v.run for drawn in panels for _, points in drawn for v, _ in points))
    height = 1.3 + 0.55 * sum(map(len, panels)) + 0.2 * len(runs) + 0.6 * (len(panels) - 1)
    figure = Figure(figsize=(plots.WIDTH, height), dpi=plots.DPI, layout="constrained")
    axes = figure.subplots(len(panels), squeeze=False, height_ratios=[len(drawn) + 0.5 for drawn in panels])[:, 0]
    for ax, drawn in zip(axes, panels):
        if drawn is ratios:
            ends = [x for _, points in drawn for _, triple in points for x in triple]
            ends += [x for row, _ in drawn for x in claims.limits(row.claim["test"]) if SMALLEST <= x <= LARGEST]
            ax.set(xscale="log", xlabel="ratio")
            _panel(ax, drawn, runs, min(ends) / 1.3, max(ends) * 1.3)
            plots.label_one_two_five(ax.xaxis)
        else:
            ax.set(xlabel="share of cases")
            _panel(ax, drawn, runs, 0, 1)
            ax.xaxis.set_major_formatter(PercentFormatter(1))
    axes[0].set_title("Claimed and measured: do they meet?")
    for number, run in enumerate(runs):
        axes[0].plot([], [], color=plots.COLOURS[number % 6], marker=plots.MARKERS[number % 6], ls="", label=run)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=1)
    return figure


def _panel(ax, drawn, runs, left, right):
    """One claim a line: the claimed range, and each run's point."""
    for place, (row, points) in enumerate(drawn):
        least, most = claims.limits(row.claim["test"])
        least, most = max(least, left), min(most, right)
        ax.barh(place, most - least, left=least, height=0.8, color="#d9d9d9", label="" if place else "claimed")
        for verdict, (value, low, high) in points:
            number = runs.index(verdict.run)
            ax.errorbar(value, place + 0.6 * ((number + 0.5) / len(runs) - 0.5), xerr=[[value - low], [high - value]],
                        color=plots.COLOURS[number % 6], marker=plots.MARKERS[number % 6], ms=5, capsize=3, ls="")
    ax.set_xlim(left, right)
    ax.set_yticks(range(len(drawn)), [row.claim["id"].replace(".", ".\n") for row, _ in drawn])
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)


def _alt(drawn) -> str:
    told = (f"{row.claim['id']}, {claims.claimed(row.claim)}: "
            + ", ".join(f"{claims.measured_text(row.claim['test'], v.measured)} on {v.run}" for v, _ in points)
            for row, points in drawn)
    return f"Claimed ranges and measured ratios and shares with intervals. {'; '.join(told)}."


def _points(row: Row, rules, smallest, largest):
    """(verdict, (value, low, high)) of each run that measured what the axis has room for."""
    if row.claim["test"].split()[0] not in rules:
        return []
    triples = [(v, _triple(v.measured, smallest, largest)) for v in row.verdicts if v.measured is not None]
    return [(v, triple) for v, triple in triples if smallest <= triple[0] <= largest]


def _triple(measured, smallest, largest):
    if isinstance(measured, tuple):
        return (measured[0] / measured[1], *claims.wilson(*measured))
    if not hasattr(measured, "low"):
        return (measured,) * 3
    return measured.value, max(measured.low, smallest), min(measured.high, largest)
