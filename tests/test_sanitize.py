"""tests/sanitize.cfg masks what differs from run to run, and nothing else."""

import re
from pathlib import Path

import pytest
from nbval.plugin import get_sanitize_patterns

from utils import claims
from utils.report import memory, ratio, rows, seconds, share, table
from utils.timing import Comparison, Measurement, Ratio


@pytest.fixture(scope="module")
def mask():
    text = (Path(__file__).parent / "sanitize.cfg").read_text(encoding="ascii")
    patterns = get_sanitize_patterns(text)
    assert len(patterns) == len(re.findall("^regex:", text, re.M)) >= 8

    def masked(output):
        for regex, replace in dict(patterns).items():
            output = re.sub(regex, replace, output)
        return output
    return masked


@pytest.fixture
def printed(capsys):
    """What a call prints."""
    def run(f, *arguments):
        f(*arguments)
        return capsys.readouterr().out
    return run


def comparison(scale, gain, noisy=False):
    def of(median, first):
        return Measurement(median, median, median, 9, 3, first, 2, "cpu", noisy)
    return Comparison(("eager", "compiled"),
                      {"eager": of(0.002 * scale, 0.1 * scale), "compiled": of(0.002 * scale / gain, 12.0 * scale)},
                      {"eager": (0.002 * scale,) * 9, "compiled": (0.002 * scale / gain,) * 9})


@pytest.mark.parametrize("other", [comparison(1, 1.0), comparison(300, 7.5), comparison(1e-3, 0.5),
                                   comparison(50, 1234.5), comparison(1, 2, noisy=True)])
def test_two_runs_of_a_timing_table_are_the_same(mask, printed, other):
    one, two = printed(table, comparison(1, 2)), printed(table, other)
    assert one != two and mask(one) == mask(two)
    assert "eager" in mask(one) and mask(one).count("\n") == one.count("\n")


@pytest.mark.parametrize("one, two", [
    (seconds(4.5e-6), seconds(1234)), (seconds(0.5), seconds(0)), (memory(999), memory(1.5e9)),
    (share(0.975), share(0.02)), (share(1, 0.96, 1), share(0.5, 0.4, 0.6)), (ratio(2), ratio(1234.5)),
    (ratio(Ratio(1.5, 1.4, 1.6, 9)), ratio(Ratio(0.01, 0.0, 12.5, 9))),
    ("took 8.8 GiB, 6 min", "took 128 GiB, 61 min"), ("[1.49, 1.56]", "[-0.20, 11.00]"),
    ("compiled is faster", "compiled is slower"), ("it is about the same", "it is cannot tell"),
    (claims.HOLDS, claims.FAILS), (claims.UNSURE, claims.NOT_REACHED),
])
def test_measured_is_masked(mask, one, two):
    assert one != two and mask(one) == mask(two)


@pytest.mark.parametrize("one, two", [
    ("frames: 1", "frames: 12"), ("rounds 7", "rounds 8"), ("[2, 3]", "[2, 4]"), ("512×512", "256×512"),
    ("float16", "float32"), ("torch 2.5.1", "torch 2.13.0"), ("yes", "no"), ("-", "yes"),
    ("12 steps", "13 steps"), ("2 × 3", "4 × 3"), ("step 3 of 4", "step 4 of 4"),
    (claims.WRONG, claims.NO_SOURCE), (claims.not_measurable("a GPU"), claims.not_measurable("CUDA")),
])
def test_counts_and_names_stay(mask, one, two):
    assert mask(one) != mask(two)


def test_rows_order_and_names_stay_under_test(mask, printed):
    items = [{"case": "gelu", "time": seconds(1), "frames": 1}, {"case": "mlp", "time": seconds(2e-3), "frames": 2}]
    good = mask(printed(rows, items))
    for bad in (items[::-1], items[:1], [{**items[0], "case": "relu"}, items[1]], [{**items[0], "frames": 3}, items[1]],
                [{"kind": "gelu", "time": "1.00 s", "frames": 1}, {"kind": "mlp", "time": "2.00 ms", "frames": 2}]):
        assert mask(printed(rows, bad)) != good


def test_a_card_differs_only_where_it_should(mask):
    row = next(row for row in claims.load().values() if row["test"].startswith(("at_least", "reaches")))
    one = claims.card(row, Ratio(9.5, 9.1, 9.9, 9), claims.HOLDS)
    two = claims.card(row, Ratio(1.25, 1.0, 11.5, 9), claims.UNSURE)
    assert mask(one) == mask(two) and row["id"] in mask(one)
