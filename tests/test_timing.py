"""The timer's contract. No test asserts a speed between close competitors: machines are shared."""

import dataclasses
import math
import statistics
import time
from types import SimpleNamespace

import pytest
import torch

from utils import timing
from utils.ratio import Ratio, _sign_test_rank, paired_ratio
from utils.timing import (
    BLOCK_S,
    Comparison,
    Measurement,
    RecompiledWhileTiming,
    break_even,
    close,
    compare,
    measure,
    peak_bytes,
)

ONES = torch.ones(8)


def sleeper(seconds):
    def call():
        time.sleep(seconds)
        return ONES
    return call


def made(base, new, first=(1.0, 10.0)):
    """A Comparison with given blocks."""
    def of(blocks, first_s):
        return Measurement(statistics.median(blocks), 0, 0, len(blocks), 1, first_s, 1, "cpu", False)
    return Comparison(("base", "new"), {"base": of(base, first[0]), "new": of(new, first[1])},
                      {"base": tuple(base), "new": tuple(new)})


def test_ratio_above_one_means_faster():
    c = compare({"slow": sleeper(0.02), "fast": sleeper(0.002)}, budget_s=0.05)
    assert c.speedup("fast").low > 3 and c.speedup("fast").word == "faster"
    assert c.ratio("slow", "fast").high < 1 and c.ratio("slow", "fast").word == "slower"


def test_each_entry_is_called_once_before_anything_is_timed():
    calls = []

    def entry(name):
        return lambda: calls.append(name) or ONES
    compare({"a": entry("a"), "b": entry("b")}, budget_s=0.01)
    assert calls[:2] == ["a", "b"]


def test_first_call_is_kept_apart():
    state = []

    def lazy():
        if not state:
            state.append(time.sleep(0.2))
        return ONES
    m = compare({"eager": lambda: ONES, "lazy": lazy}, budget_s=0.02)["lazy"]
    assert m.first_call_s > 0.15 > m.median_s


def test_blocks_alternate():
    order = []

    def entry(name):
        return lambda: (order.append(name), time.sleep(2 * BLOCK_S))[1] or ONES
    compare({"a": entry("a"), "b": entry("b")}, budget_s=0.01)
    assert order[4:12] == ["a", "b", "b", "a", "a", "b", "b", "a"]


def test_at_least_seven_rounds_and_blocks_of_a_few_milliseconds():
    c = compare({"a": sleeper(0.03), "b": lambda: ONES + 1}, budget_s=0.01, check=lambda r, b: None)
    assert c["a"].rounds >= 7 and c["a"].calls == 1
    assert c["b"].calls > 100


def test_the_interval_is_the_sign_tests():
    # Conover, Practical Nonparametric Statistics, table of the binomial with p = 1/2.
    assert [_sign_test_rank(n) for n in (6, 7, 8, 9, 12, 17, 20, 25)] == [0, 0, 0, 1, 2, 4, 5, 7]


def test_paired_ratio_of_your_own_seconds():
    base = [2.0, 4.0, 6.0, 8.0, 10.0, 13.0]
    assert paired_ratio(base, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == Ratio(2.0, 2.0, 13 / 6, 6)
    with pytest.raises(ValueError, match="at least 6 seconds"):
        paired_ratio(base[:5], base[:5])
    with pytest.raises(ValueError, match="same length"):
        paired_ratio(base, base[:5])


def test_median_of_paired_ratios_not_ratio_of_medians():
    base, new = [1, 2, 3, 4, 5, 6, 70], [1, 1, 1, 4, 5, 3, 7]
    assert statistics.median(base) / statistics.median(new) == 4 / 3
    assert made(base, new).speedup("new").value == 2  # of 1, 2, 3, 1, 1, 2, 10


@pytest.mark.parametrize("low, high, word", [
    (1.04, 1.2, "faster"), (1.02, 1.2, "cannot tell"), (0.98, 1.02, "about the same"),
    (0.8, 0.96, "slower"), (0.8, 0.98, "cannot tell"), (0.5, 2, "cannot tell"), (0.97, 1.03, "about the same"),
])
def test_words_need_the_interval_and_the_margin(low, high, word):
    assert Ratio((low + high) / 2, low, high, 9).word == word


def test_break_even():
    assert break_even(made([1.0] * 9, [0.5] * 9), "new") == 19
    assert break_even(made([1.0] * 9, [2.0] * 9), "new") == math.inf
    assert break_even(made([1, 2] * 5, [2, 1] * 5), "new") is None
    assert break_even(made([1.0] * 9, [0.5] * 9, first=(1, 0.5)), "new") == 1


def test_results_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        measure(lambda: ONES, budget_s=0.01).median_s = 0


# --- checks ---------------------------------------------------------------------


def test_disagreeing_entry_is_named():
    with pytest.raises(AssertionError, match="'wrong' disagrees"):
        compare({"right": lambda: ONES, "wrong": lambda: ONES * 2})


def test_close_allows_four_times_eagers_own_error():
    truth = torch.tensor([1.0, 2.0], dtype=torch.float64)
    check, eager = close(truth, times=4), torch.tensor([1.0001, 2.0])
    check(torch.tensor([1.00039, 2.0]), eager)
    with pytest.raises(AssertionError, match="allowed 0.0004"):
        check(torch.tensor([1.00041, 2.0]), eager)


@pytest.mark.parametrize("dtype, off", [(torch.float32, 0.01), (torch.bfloat16, 0.25), (torch.float64, 1e-6)])
def test_close_refuses_a_truth_that_is_another_computation(dtype, off):
    result = torch.ones(3, dtype=dtype)
    with pytest.raises(AssertionError, match="is the truth the same computation"):
        close(torch.full((3,), 1 + off, dtype=torch.float64))(result, result)


def test_close_floor_is_a_rounding_step_not_zero():
    truth = torch.tensor([1.0], dtype=torch.float64)
    close(truth)(torch.tensor([1.0 + 3 * torch.finfo(torch.float32).eps]), torch.tensor([1.0]))
    with pytest.raises(AssertionError):
        close(truth)(torch.tensor([1.00001]), torch.tensor([1.0]))


@pytest.mark.parametrize("result", [
    torch.tensor([float("nan"), 2.0]), torch.tensor([float("inf"), 2.0]), torch.tensor([[1.0, 2.0]])])
def test_close_refuses_nan_infinity_and_another_shape(result):
    truth = torch.tensor([1.0, 2.0], dtype=torch.float64)
    with pytest.raises(AssertionError):
        close(truth)(result, torch.tensor([1.0, 2.0]))


def test_close_can_look_at_all_errors_and_not_only_at_the_largest():
    truth, eager = torch.ones(100, dtype=torch.float64), torch.full((100,), 1.00001)
    unlucky, all_worse = eager.clone(), torch.full((100,), 1.00005)
    unlucky[7] = 1.0001
    with pytest.raises(AssertionError):
        close(truth)(unlucky, eager)
    close(truth, norm=2)(unlucky, eager)
    for wrong in (all_worse, torch.where(torch.arange(100) == 7, 1.01, eager)):
        with pytest.raises(AssertionError, match="times the baseline's own"):
            close(truth, norm=2)(wrong, eager)


def test_close_looks_into_structures():
    truth = {"out": ONES.double(), "grads": [ONES.double()]}
    fine = {"out": ONES, "grads": [ONES]}
    close(truth)(fine, fine)
    with pytest.raises(AssertionError):
        close(truth)({"out": ONES, "grads": [ONES * 2]}, fine)
    with pytest.raises(AssertionError, match="1 tensors where the truth has 2"):
        close(truth)({"out": ONES, "grads": []}, fine)


@pytest.mark.parametrize("truth, wrong", [
    (-math.inf, math.nan), (-math.inf, math.inf), (math.nan, math.inf), (math.inf, 1.0), (1.0, math.inf), (1 + 2j, 1 + 99j),
    (1 + 2j, 1.0)])
def test_close_tells_infinities_nan_and_imaginary_parts_apart(truth, wrong):
    t = torch.tensor([truth, 1.0], dtype=torch.complex128 if isinstance(truth, complex) else torch.float64)
    right = t.to(torch.complex64 if t.is_complex() else torch.float32)
    close(t)(right, right)
    with pytest.raises(AssertionError, match="infinite or NaN|error"):
        close(t)(torch.tensor([wrong, 1.0]), right)


# --- bad input --------------------------------------------------------------------


@pytest.mark.parametrize("entries", [{}, [lambda: ONES], None])
def test_no_entries(entries):
    with pytest.raises(ValueError, match="dict of name to function"):
        compare(entries)


def test_called_instead_of_passed():
    with pytest.raises(TypeError, match="'b' is not a function"):
        compare({"a": lambda: ONES, "b": ONES})


def test_raising_entry_is_named():
    with pytest.raises(RuntimeError, match="'b' raised ZeroDivisionError"):
        compare({"a": lambda: ONES, "b": lambda: 1 / 0})


def test_an_entry_that_raises_later_is_named():
    loss = (torch.ones(2, requires_grad=True) ** 2).sum()

    def backward():
        loss.backward()
        return ONES
    with pytest.raises(RuntimeError, match="'b' raised RuntimeError: Trying to backward"):
        compare({"a": lambda: ONES, "b": backward})


def test_an_entry_whose_result_no_check_knows_is_named():
    with pytest.raises(TypeError, match="the result of 'a' cannot be checked"):
        compare({"a": lambda: "text"})


def test_none_is_not_a_result():
    with pytest.raises(TypeError, match="'b' returned None"):
        compare({"a": lambda: ONES, "b": lambda: None})


def test_too_slow_says_how_long_and_what_to_lower():
    start = time.perf_counter()
    with pytest.raises(ValueError, match=r"7 rounds would take .* max_s=1"):
        compare({"a": sleeper(0.3)}, max_s=1)
    assert time.perf_counter() - start < 1.5


def test_microseconds_are_fine():
    assert measure(lambda: 1, budget_s=0.01).median_s < 1e-5


def test_recompiling_is_refused_with_the_reason():
    f, length = torch.compile(lambda t: t + 1, dynamic=False, backend="eager"), iter(range(8, 10**6))
    with pytest.raises(RecompiledWhileTiming, match="size mismatch|limit"):
        compare({"a": lambda: ONES, "b": lambda: f(torch.ones(next(length)))}, check=lambda r, b: None)
    torch._dynamo.reset()


def test_compiling_on_the_second_call_is_warm_up():
    f, lengths = torch.compile(lambda t: t.sum(), dynamic=False, backend="eager"), iter([3, 4])
    compare({"b": lambda: f(torch.ones(next(lengths, 4)))}, check=lambda r, b: None, budget_s=0.01)
    torch._dynamo.reset()


@pytest.mark.parametrize("held_up_s, max_s", [(0.02, 30), (0.3, 1)])
def test_one_slow_call_does_not_size_the_blocks(held_up_s, max_s):
    """The second call may compile, or the machine may be busy: identical functions stay identical."""
    delays = iter([0, held_up_s])

    def held_up():
        if delay_s := next(delays, 0):
            time.sleep(delay_s)
        return ONES + 1
    c = compare({"a": lambda: ONES + 1, "b": held_up}, budget_s=0.1, max_s=max_s)
    assert min(c["a"].calls, c["b"].calls) > 100
    assert c["b"].rounds < 100


def test_each_entry_has_its_own_device():
    c = compare({"a": lambda: ONES, "b": lambda: [ONES, torch.empty(1, device="meta")]}, budget_s=0.01,
                check=lambda r, b: None)
    assert (c["a"].device, c["b"].device) == ("cpu", "meta")


def test_each_device_of_a_result_is_waited_for(monkeypatch):
    waited = []
    for kind in ("meta", "cuda"):
        monkeypatch.setattr(torch, kind, SimpleNamespace(synchronize=lambda kind=kind: waited.append(kind)), raising=False)
    monkeypatch.setattr(timing, "_devices", lambda result: ["cuda", "meta", "cpu"])
    timing._synchroniser(ONES)()
    assert waited == ["cuda", "meta"]


def test_one_comparison_at_a_time():
    def nested():
        return torch.tensor(measure(lambda: ONES, budget_s=0.01).median_s)
    with pytest.raises(RuntimeError, match="another comparison is running"):
        compare({"a": nested}, check=lambda r, b: None)
    measure(lambda: ONES, budget_s=0.01)  # the lock is free again


def test_threads_are_left_alone_and_recorded():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert measure(lambda: ONES, budget_s=0.01).threads == torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


# --- memory ---------------------------------------------------------------------


@pytest.mark.filterwarnings("error")  # what torch says about its profiler is no output of a chapter
def test_peak_bytes_counts_what_is_alive_at_once():
    x, mb = torch.ones(1_000_000), 4_000_000

    def chain():
        a = x + 1
        b = a + 1
        del a
        c = b + 1
        del b
        return c
    assert 2 * mb <= peak_bytes(chain) < 2.1 * mb
    assert mb <= peak_bytes(lambda: x + 1) < 1.1 * mb
    assert peak_bytes(lambda: x.add_(0)) < 0.1 * mb
