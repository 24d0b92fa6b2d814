"""Find measured numbers in prose: a number a reader sees comes from a run, not from a text."""

import re

UNITS = r"(?:ns|us|µs|ms|s|sec|seconds?|minutes?|min|hours?|h|B|kB|KB|MB|GB|TB|KiB|MiB|GiB|bytes|TFLOP/s|GFLOP/s|GB/s|%|x|×)"
NUMBER = re.compile(
    rf"(?<![\w.])\d[\d.,]*\s?{UNITS}(?![\w-])|\btimes (?:faster|slower)\b|\btwice\b|\bhalf\b(?! a dozen)", re.I)
# Where numbers may stand: with a claim's id, in the minutes of the box, in exercise titles.
ALLOWED = re.compile(r"`[a-z_]+\.[a-z_]+`|^\|.*minutes reading|^### Exercise \d\d\.\d: ")
CODE = re.compile(r"`[^`]*`|\]\([^)]*\)|<[^>]*>")
# The book's own rules are not measurements: the level of its intervals and the margin.
RULES = re.compile(r"\b95 %|\bmargin of 3 %")


def measured_numbers(text):
    """The measured numbers in a Markdown text, as they stand there."""
    found, fenced = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not ALLOWED.search(line):
            found += [m[0] for m in NUMBER.finditer(RULES.sub("_", CODE.sub("_", line)))]
    return found
