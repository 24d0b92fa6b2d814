"""One grammar of numbers, tables that line up, and no folder of this machine in any text."""

import math
import os
import sys
import tempfile
from pathlib import Path

import pytest

from utils.report import memory, ratio, rows, scrub, seconds, share, table


@pytest.mark.parametrize("value, text", [
    (0.00123, "1.23 ms"), (12.345, "12.3 s"), (4.5e-6, "4.50 us"), (7e-9, "7.00 ns"), (0, "0 ns"),
    (123.4, "123 s"), (0.9996, "1000 ms"), (math.inf, "never"), (None, "-"), (math.nan, "-")])
def test_seconds(value, text):
    assert seconds(value) == text


@pytest.mark.parametrize("value, text", [
    (5_200_000, "5.20 MB"), (999, "999 B"), (1.5e9, "1.50 GB"), (20_000, "20.0 kB"), (None, "-")])
def test_memory(value, text):
    assert memory(value) == text


def test_ratio_and_share():
    from utils.timing import Ratio

    assert ratio(Ratio(1.5, 1.4, 1.6, 9)) == "1.50× [1.40, 1.60]"
    assert ratio(2) == "2.00×" and ratio(None) == "-"
    assert share(0.975) == "98 %" and share(0.5, 0.4, 0.6) == "50 % [40, 60]"


def test_rows_line_up(capsys):
    rows([{"case": "a", "time": "1.00 ms"}, {"case": "longer", "time": "12.0 ms"}], "Title")
    assert capsys.readouterr().out == (
        "Title\ncase       time\n------  -------\na       1.00 ms\nlonger  12.0 ms\n")


def test_rows_of_nothing_and_of_plain_values(capsys):
    rows([])
    rows([{"works": True, "value": None}])
    assert capsys.readouterr().out == "(no rows)\nworks  value\n-----  -----\nyes        -\n"


def test_rows_of_different_columns(capsys):
    rows([{"a": "x"}, {"b": "y"}])
    assert capsys.readouterr().out == "a  b\n-  -\nx  -\n-  y\n"


def test_table_shows_first_call_interval_and_word(capsys):
    import torch

    from utils.timing import compare

    table(compare({"eager": lambda: torch.ones(1), "other": lambda: torch.ones(1)}, budget_s=0.01))
    head, _, eager, other = capsys.readouterr().out.splitlines()
    assert "first call" in head and "95 %" in head
    assert "baseline" in eager and "×" in other and "[" in other


@pytest.mark.parametrize("path", [
    os.path.join(tempfile.gettempdir(), "abc123", "x.py"), str(Path.home() / "secret" / "x.py"),
    os.path.join(sys.prefix, "lib", "x.py"), str(Path(__file__).resolve()), "/usr/lib/gcc/x.py"])
def test_scrub_hides_folders_and_keeps_the_message(path):
    text = scrub(f'File "{path}", line 3: no such thing')
    assert os.path.dirname(path) not in text and "line 3: no such thing" in text


def test_scrub_leaves_other_text_alone():
    text = "a/b and 3 / 4 and https://pytorch.org/docs/stable/x.html"
    assert scrub(text) == text
