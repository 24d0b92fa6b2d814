"""What is wrong with a Markdown text of a chapter: measured numbers in it, and lines that
are not one sentence each.

A number that a reader sees comes from a run. Allowed is one on a line that names a claim
of the ledger, in the minutes of the box and in the titles of exercises.
"""

import re

from utils import claims

_UNITS = ("ns|us|µs|μs|ms|s|secs?|seconds?|min|minutes?|h|hours?|(?:[kKMGT]i?)?B(?:/s)?|bytes|"
          "[kMGTP]?FLOP(?:/s|S|s)?|tokens?/s|it/s|%|percent|per cent")
_NUMBER = re.compile(
    rf"(?<![\w.])\d[\d.,]*(?:\s?(?:{_UNITS})(?![\w-])|-?fold\b|\s?[x×](?![\w-])(?!\s?\d))"
    r"|(?<!ow many )\btimes (?:as )?(?:faster|slower|fast|slow)\b"
    r"|\b[Tt]wice\b|\b[Hh]alf\b(?![- ](?:precision|a dozen)|-)")
_TITLE = re.compile(r"^#+ Exercise \d\d\.\d: .+ \(\d+ min\)$")
_MINUTES = re.compile(r"^\|.*\b\d+ minutes reading\b")
# The book's own rules are no measurements: the level of its intervals, the margin.
_RULES = re.compile(r"\b95 %|\bmargin of 3 %")
_CODE = re.compile(r"(?P<tick>`+).+?(?P=tick)|\]\([^)]*\)|<[^>]*>|https?://\S+")
_CLAIM = re.compile(r"\b[a-z0-9_]+\.[a-z0-9_]+\b")

_ABBREVIATIONS = ("e.g.", "i.e.", "vs.", "cf.", "etc.", "approx.", "No.", "Nos.", "Fig.", "Dr.", "al.")
_END = re.compile(r"""[.!?]["'”’)*_]*(?=\s+["'“‘(*\[]*[A-Z0-9])""")
_ENDED = re.compile(r"""[.!?:]["'”’)*_]*$""")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_BLOCK = re.compile(r"^\s*(?:$|[|<>#]|---)")  # not running text: table, HTML, quote, heading, rule


def lines(text: str):
    """(line, does it belong to fenced code?) of each line of a Markdown text."""
    fence = ""
    for line in text.split("\n"):
        mark = re.match(r"\s*(```+|~~~+)", line)
        yield line, bool(fence or mark)
        if mark:
            fence = "" if fence and line.strip().startswith(fence) else fence or mark[1]


def _lines(text):
    """The lines, those of fenced code empty."""
    return ("" if fenced else line for line, fenced in lines(text))


def measured_numbers(text: str) -> list[str]:
    """The measured numbers in a Markdown text, as they stand there."""
    found = []
    for line in _lines(text):
        if _TITLE.match(line) or set(_CLAIM.findall(line)) & set(claims.load()):
            continue
        if _MINUTES.match(line):
            line = re.sub(r"\b\d+ minutes\b", "_", line)
        found += [m[0] for m in _NUMBER.finditer(_RULES.sub("_", _CODE.sub("_", line)))]
    return found


def sentence_faults(text: str) -> list[str]:
    """Lines with more than one sentence, and sentences with more than one line."""
    faults, open_line = [], None
    for line in _lines(text):
        item = _ITEM.match(line)
        if open_line and not item and not _BLOCK.match(line):
            faults.append(f"a sentence goes on in the next line: {open_line[:40]!r}")
        open_line = None
        if _BLOCK.match(line):
            continue
        plain = _CODE.sub("Code", line[item.end():] if item else line).strip()
        for end in _END.finditer(plain):
            before = plain[:end.end()]
            initial = re.search(r"\b[A-Z]\.$", before)
            if not initial and not before.endswith(_ABBREVIATIONS):
                faults.append(f"two sentences on one line: {line.strip()[:40]!r}")
                break
        if not _ENDED.search(plain):
            open_line = line.strip()
    return faults
