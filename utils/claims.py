"""The claims ledger (claims.yml) and the verdicts on it.

A row says what is claimed, by whom, what the primary source says, and the rule by which
a measurement is judged. The word of a verdict is always computed. Imports without torch.

Rules: `equals x` (a number, true, false or a word), `at_least x`, `at_most x`,
`within [a, b]`, `reaches x` (for "up to"), `share p` (wins among cases), `statement`.
"""

from __future__ import annotations

import functools
import math
import textwrap
from pathlib import Path

import yaml

from utils import report
from utils.ratio import Ratio
from utils.recorded import record_verdict
from utils.untrusted import Malformed, brief, schema_faults

LEDGER = Path(__file__).resolve().parent.parent / "claims.yml"
LARGEST = 500_000  # bytes of a ledger
WIDTH = 76

HOLDS, FAILS, UNSURE = "holds here", "does not hold here", "cannot tell here"
NOT_REACHED = "not reached here"
WRONG, NO_SOURCE = "wrong as stated", "no source found"


def not_measurable(needs: str) -> str:
    return f"not measurable here (needs {needs})"


# --- the verdict ------------------------------------------------------------------


def verdict(claim: str, measured=None, *, needs: str | None = None) -> str:
    """Judge a claim by what was measured, print the card, keep the verdict, return its word.

    claim: an id of claims.yml. measured: a number, bool or text for `equals`; a
    `timing.Ratio` (or an exact number) for at_least, at_most, within, reaches;
    (wins, total) for share; None for a statement, or with needs="a CUDA device" when this
    machine cannot measure it. Raises KeyError for an unknown id, TypeError or ValueError
    when the measurement does not fit the rule.
    """
    rows = load()
    if claim not in rows:
        raise KeyError(f"{claim!r} is not in claims.yml; there are {', '.join(rows)}")
    row = rows[claim]
    word = word_for(row, measured, needs)
    print(card(row, measured, word))
    record_verdict(row["chapter"], claim, _as_json(measured), word)
    return Word(word)


class Word(str):
    """A verdict. Jupyter does not echo it as the value of a cell: the card says it."""

    def _ipython_display_(self):
        pass


def word_for(row: dict, measured=None, needs: str | None = None) -> str:
    """The word that `verdict` gives a row of the ledger, without card and record."""
    if row["test"] == "statement":
        if "source" not in row:
            return NO_SOURCE
        return WRONG if "correction" in row else not_measurable(needs or row["needs"])
    if measured is None:
        needs = needs or row.get("needs")
        if not needs:
            raise ValueError(f"{row['id']}: nothing was measured, and not said what that needs")
        return not_measurable(needs)
    word = judge(row["test"], measured)
    # What is the same on every machine and contradicts the claim refutes it everywhere.
    return WRONG if word == FAILS and row["kind"] == "exact" and "correction" in row else word


def judge(rule: str, measured) -> str:
    """The word for a measurement under a rule; nothing else has a say in it.

    >>> judge("at_least 2", 3)
    'holds here'
    """
    name, wanted = parse_rule(rule)
    if name == "equals":
        if hasattr(measured, "item"):
            measured = measured.item()
        if not isinstance(measured, bool | int | float | str):
            raise TypeError(f"{rule}: a number, bool or text is wanted, got {type(measured).__name__}")
        # In Python True == 1; a count of one is no yes.
        same = isinstance(measured, bool) == isinstance(wanted, bool) and measured == wanted
        return HOLDS if same else FAILS
    if name == "share":
        low, high = wilson(*_count(measured))
    elif name in ("at_least", "at_most", "within", "reaches"):
        low, high = _interval(rule, measured)
    else:
        raise ValueError("a statement is read, not measured")
    least, most = limits(rule)
    if least <= low and high <= most:
        return HOLDS
    if high < least or low > most:
        return NOT_REACHED if name == "reaches" else FAILS
    return UNSURE


def limits(rule: str) -> tuple[float, float]:
    """(least, most) that a rule with a limit claims; infinite where it has none."""
    name, wanted = parse_rule(rule)
    return {"at_most": (-math.inf, wanted), "within": wanted}.get(name, (wanted, math.inf))


def wilson(wins: int, total: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share; it stays inside 0 and 1 and does not
    collapse when every case is a win."""
    z = 1.959964
    p, scale = wins / total, 1 + z * z / total
    middle = (p + z * z / (2 * total)) / scale
    half = z * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / scale
    return max(0.0, middle - half), min(1.0, middle + half)


def parse_rule(rule: str):
    """("within", (1.01, 1.05)), ("equals", True), ("statement", None)."""
    name, _, rest = rule.partition(" ")
    if name == "equals":
        return name, yaml.safe_load(rest)
    if name == "within":
        low, high = rest.strip("[]").split(",")
        return name, (float(low), float(high))
    return name, float(rest) if rest else None


def _interval(rule: str, measured) -> tuple[float, float]:
    if hasattr(measured, "low"):
        return measured.low, measured.high
    if isinstance(measured, bool) or not isinstance(measured, int | float):
        raise TypeError(f"{rule}: a Ratio or a number is wanted, got {type(measured).__name__}")
    return measured, measured


def _count(measured) -> tuple[int, int]:
    if not (isinstance(measured, tuple) and len(measured) == 2):
        raise TypeError("share: (wins, total) is wanted")
    wins, total = measured
    if not 0 <= wins <= total or total == 0:
        raise ValueError(f"share: {wins} wins of {total} cannot be")
    return wins, total


# --- the card ---------------------------------------------------------------------


def card(row: dict, measured, word: str) -> str:
    """A claim and its verdict as plain text, at most 76 columns wide."""
    speakers = ", ".join(speaker["who"] for speaker in row["said_by"]) or "nobody: left out of both articles"
    source = row.get("source")
    lines = [
        ("Claim", f"{row['claim']} [{row['id']}]"),
        ("Said by", speakers),
        ("Source", source["title"] if source else "none found"),
        ("", source and source["url"]),
        ("Conditions", row.get("conditions")),
        ("Claimed", claimed(row)),
        ("Measured", measured_text(row["test"], measured)),
        ("Correction", row.get("correction")),
        ("Verdict", word),
    ]
    return "\n".join(_line(head, text) for head, text in lines if text)


def _line(head: str, text: str) -> str:
    indent = 12 if head or len(text) <= WIDTH - 12 else 2  # room for a long address
    return textwrap.fill(text, WIDTH, initial_indent=head.ljust(indent), subsequent_indent=" " * indent)


def claimed(row: dict) -> str | None:
    """What is claimed, as a quantity and its limit; None for a statement."""
    name, wanted = parse_rule(row["test"])
    if name == "statement":
        return None
    if name == "equals":
        text = {True: "yes", False: "no"}[wanted] if isinstance(wanted, bool) else str(wanted)
    elif name == "share":
        text = f"{100 * wanted:g} %"
    elif name == "within":
        text = " to ".join(map(report.ratio, wanted))
    else:
        words = {"at_least": "at least", "at_most": "at most", "reaches": "up to"}
        text = f"{words[name]} {report.ratio(wanted)}"
    return f"{row['quantity']}: {text}"


def measured_text(rule: str, measured) -> str | None:
    """What was measured, with its interval; None where nothing was."""
    if measured is None:
        return None
    if rule.startswith("share"):
        return report.share(measured[0] / measured[1], *wilson(*measured))
    if isinstance(measured, bool):
        return "yes" if measured else "no"
    return str(measured) if rule.startswith("equals") else report.ratio(measured)


def _as_json(measured):
    if hasattr(measured, "low"):
        return {"value": measured.value, "low": measured.low, "high": measured.high}
    if isinstance(measured, tuple):
        low, high = wilson(*measured)
        return {"wins": measured[0], "total": measured[1], "low": low, "high": high}
    return measured


def from_json(measured):
    """What `verdict` recorded, as it was measured."""
    if not isinstance(measured, dict):
        return measured
    if "wins" in measured:
        return measured["wins"], measured["total"]
    return Ratio(**measured)


# --- the ledger -------------------------------------------------------------------


@functools.cache
def load(path: Path = LEDGER) -> dict[str, dict]:
    """The rows that are in order, by id, in the ledger's order; a sentence for each other."""
    rows, faults = check(path)
    for fault in faults:
        print(f"Left out: {fault}")
    return rows


def check(path=LEDGER) -> tuple[dict[str, dict], list[str]]:
    """(rows in order by id, faults: one sentence each, naming file, row and field)."""
    path = Path(path)
    rows, faults, places = {}, [], set()
    try:
        entries = list(_entries(path))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        return {}, [f"{path.name}: {_why(error)}"]
    for number, (row, found) in enumerate(entries, 1):
        name = row.get("id") if isinstance(row, dict) else None
        label = brief(name, 60) if isinstance(name, str) else f"entry {number}"
        found = found or schema_faults(row, "claims.schema.json") or _row_faults(row)
        if not found and row["id"] in rows:
            found = ["id stands twice."]
        if not found and row["row"] in places:
            found = [f"row {row['row']} stands twice."]
        if found:
            faults.append(f"{path.name}: {label}: {found[0]}")
            continue
        rows[row["id"]] = row
        places.add(row["row"])
    return rows, faults


def _row_faults(row: dict) -> list[str]:
    """What the schema cannot say."""
    faults = []
    statement = row["test"] == "statement"
    if statement != (row["kind"] == "statement"):
        faults.append("kind and test do not fit together.")
    if not statement and "quantity" not in row:
        faults.append("quantity is missing: what is measured?")
    if ("source" in row) == ("unconfirmed" in row):
        faults.append("source is missing, or unconfirmed stands beside one.")
    if statement and "source" in row and not ({"correction", "needs"} & set(row)):
        faults.append("correction or needs is missing: a statement has no other verdict.")
    if row["test"].startswith("within"):
        low, high = parse_rule(row["test"])[1]
        if low > high:
            faults.append("test has its limits the wrong way round.")
    if row["test"].startswith("share") and parse_rule(row["test"])[1] > 1:
        faults.append("test has a share above 1.")
    return faults


class _Loader(yaml.SafeLoader):
    """Safe YAML, without aliases (they can blow a small file up) and duplicate keys."""

    def compose_node(self, parent, index):
        if self.check_event(yaml.events.AliasEvent):
            raise Malformed("it uses a YAML alias, which is not allowed there.")
        return super().compose_node(parent, index)

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key in (self.construct_object(key, deep=True) for key, _ in node.value):
            if not isinstance(key, str):
                raise Malformed(f"the key {brief(key)} is not text.")
            if key in seen:
                raise Malformed(f"the key {brief(key)} stands twice in one row.")
            seen.add(key)
        return super().construct_mapping(node, deep)


def _entries(path: Path):
    """(row, []) or (None, [fault]) for each entry; raises when the file as a whole is no ledger."""
    with open(path, "rb") as file:
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise Malformed(f"it is larger than {LARGEST // 1000} kB.")
    loader = _Loader(raw.decode("utf-8"))
    root = loader.get_single_node()
    if not isinstance(root, yaml.SequenceNode):
        raise Malformed("it is not a list of rows.")
    for node in root.value:
        try:
            yield loader.construct_document(node), []
        except (ValueError, yaml.YAMLError) as error:
            yield None, [_why(error)]


def _why(error) -> str:
    if isinstance(error, Malformed):
        return str(error)
    if isinstance(error, OSError):
        return f"it cannot be read ({error.strerror})."
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text."
    if isinstance(error, RecursionError):
        return "it is nested too deep."
    if isinstance(error, yaml.YAMLError):
        mark = getattr(error, "problem_mark", None)
        return f"it is not YAML{f': line {mark.line + 1}, column {mark.column + 1}' if mark else ''}."
    return "it holds a number or date that cannot be read."
