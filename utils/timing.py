"""Timing that can be trusted on a shared machine.

`compare` calls each function once, checks its result against the baseline's, and
then times all of them in short interleaved blocks, so that whatever else the
machine does hits each of them alike. Speed-ups come with a 95 % interval.
benchmarks/aa.py is the proof; chapter 00 explains it.

Times are seconds, sizes bytes, ratios plain numbers (above 1: faster than the
baseline).
"""

from __future__ import annotations

import contextlib
import gc
import math
import statistics
import sys
import threading
import time
import warnings
from dataclasses import dataclass

import torch

from utils.environment import effort
from utils.ratio import FEWEST_ROUNDS, Ratio, paired_ratio

MIN_ROUNDS = FEWEST_ROUNDS + 1
BLOCK_S = 0.010      # a block takes 5-20 ms
BUDGET_S = {"test": 0.1, "read": 0.5, "publish": 2.0}


class RecompiledWhileTiming(RuntimeError):
    """Dynamo compiled, or gave up compiling, while blocks ran: they timed the compiler."""


@dataclass(frozen=True)
class Measurement:
    """Seconds per call of one function: median and quartiles over `rounds` blocks of
    `calls` calls; `first_call_s` is the first call, compilation included."""

    median_s: float
    q1_s: float
    q3_s: float
    rounds: int
    calls: int
    first_call_s: float
    threads: int
    device: str
    noisy: bool


@dataclass(frozen=True)
class Comparison:
    """What `compare` returns. `blocks` holds seconds per call, one value a round."""

    names: tuple[str, ...]
    measurements: dict[str, Measurement]
    blocks: dict[str, tuple[float, ...]]

    @property
    def baseline(self) -> str:
        return self.names[0]

    def __getitem__(self, name: str) -> Measurement:
        return self.measurements[name]

    def speedup(self, name: str) -> Ratio:
        """How many times faster `name` is than the baseline."""
        return self.ratio(name, self.baseline)

    def ratio(self, name: str, base: str) -> Ratio:
        """How many times faster `name` is than `base`: the median of the ratios of the
        blocks of each round, with its sign-test interval."""
        return paired_ratio(self.blocks[base], self.blocks[name])

    def to_json(self) -> dict:
        """Plain data for `utils.recorded`."""
        return {
            "kind": "comparison",
            "baseline": self.baseline,
            "entries": {n: dict(vars(self.measurements[n])) for n in self.names},
            "ratios": {n: dict(vars(self.speedup(n))) for n in self.names[1:]},
        }


def compare(entries, *, check=None, budget_s=None, max_s=30.0) -> Comparison:
    """Check and time functions against each other.

    entries: dict of name to a function without arguments; the first is the baseline.
    check: called as check(result, baseline_result) on every entry's first result, the
        baseline's own included; raises AssertionError to refuse. `close(...)` makes one.
        Without it results must be close to the baseline's by torch.testing's defaults.
    budget_s: seconds an entry; from BOOK_EFFORT when None (0.1, 0.5 or 2).
    max_s: ValueError before timing starts if the smallest honest run would pass it.

    Raises ValueError (bad arguments, too slow), TypeError (an entry returned None, or what
    `check` does not know), AssertionError (results disagree), RuntimeError (an entry raised,
    or another comparison is running), RecompiledWhileTiming. Each names the entry.
    """
    if not isinstance(entries, dict) or not entries:
        raise ValueError("compare wants a dict of name to function, the baseline first")
    for name, f in entries.items():
        if not callable(f):
            raise TypeError(f"{name!r} is not a function: pass it uncalled, without arguments")
    budget_s = BUDGET_S[effort()] if budget_s is None else budget_s
    check = close() if check is None else check

    wait, device, first_s, baseline = {}, {}, {}, None
    for number, (name, f) in enumerate(entries.items()):
        start = time.perf_counter()
        with _naming(name):
            result = f()
            wait[name] = _synchroniser(result)
            wait[name]()
        first_s[name] = time.perf_counter() - start
        if result is None:
            raise TypeError(f"{name!r} returned None: return the result, or it cannot be checked")
        device[name] = _device_of(result)
        baseline = result if number == 0 else baseline
        try:
            check(result, baseline)
        except AssertionError as error:
            raise AssertionError(f"{name!r} disagrees: {error}") from None
        except Exception as error:
            raise TypeError(f"the result of {name!r} cannot be checked: {error}") from error
    del result, baseline

    def block(name, calls):
        with _naming(name):
            return _block(entries[name], calls, wait[name])

    # One more call each: what compiles on the second call (a changed gradient, a size
    # that became dynamic) is still warm-up, and says nothing of the time of the next.
    for _ in range(2):
        with _watch_dynamo() as dynamo:
            once_s = {name: block(name, 1) for name in entries}
        expected_s = MIN_ROUNDS * sum(max(s, BLOCK_S) for s in once_s.values())
        if expected_s <= max_s:
            break
    else:
        dynamo.check()  # slow because it compiles each time?
        raise ValueError(
            f"{MIN_ROUNDS} rounds would take {expected_s:.0f} s, more than max_s={max_s:g}: "
            "make the sizes smaller, or raise max_s")
    with _watch_dynamo() as dynamo:  # from here on nothing may compile
        calls = {name: _calibrate(block, name, once_s[name]) for name in entries}
        names, blocks = list(entries), {name: [] for name in entries}
        end = time.perf_counter() + min(budget_s * len(names), max_s)
        while len(blocks[names[0]]) < MIN_ROUNDS or time.perf_counter() < end:
            # A B, B A, ...: a drift within the round hits each name from both sides.
            for name in names:
                took_s = block(name, calls[name])
                if calls[name] * took_s < BLOCK_S / 2:  # something held up the calls that were trusted
                    calls[name] = _calibrate(block, name, took_s)
                    took_s = block(name, calls[name])
                blocks[name].append(took_s)
            names.reverse()
            dynamo.check()
    return Comparison(
        tuple(entries),
        {n: _summary(blocks[n], calls[n], first_s[n], device[n]) for n in entries},
        {n: tuple(b) for n, b in blocks.items()},
    )


def measure(f, *, budget_s=None, max_s=30.0) -> Measurement:
    """Time one function (a `compare` of one entry); see `compare` for the arguments."""
    return compare({"it": f}, check=_accept, budget_s=budget_s, max_s=max_s)["it"]


def close(truth=None, *, times=4.0, norm=math.inf):
    """A check for `compare`: is the result as exact as eager's?

    truth: the same computation in float64, of the same structure (a tensor, or nested
        tuples, lists, dicts of tensors). An entry's largest error against it may be
        `times` the baseline's own, and never has to be below `times` rounding steps of
        the dtype at the size of the truth. A baseline further off than the root of a
        step refutes the truth, or is wrong itself.
    norm: of the errors, and of the truth: inf looks at the largest, 2 at all of them. For
        sums in another order take 2: among thousands of them one is always unlucky.
    Without truth: torch.testing.assert_close against the baseline.
    """
    def check(result, baseline):
        if truth is None:
            torch.testing.assert_close(result, baseline)
            return
        results, baselines, truths = _flat(result), _flat(baseline), _flat(truth)
        if not len(results) == len(baselines) == len(truths):
            raise AssertionError(f"{len(results)} tensors where the truth has {len(truths)}")
        for r, b, t in zip(results, baselines, truths):
            eps = torch.finfo(r.dtype).eps if r.is_floating_point() or r.is_complex() else 0.0
            if r.shape != t.shape:
                raise AssertionError(f"shape {tuple(r.shape)} instead of {tuple(t.shape)}")
            exact = torch.complex128 if any(x.is_complex() for x in (r, b, t)) else torch.float64
            r, b, t = (x.cpu().to(exact) for x in (r, b, t))
            odd = ~(r.isfinite() & t.isfinite())
            if not torch.allclose(r[odd], t[odd], equal_nan=True):
                raise AssertionError("infinite or NaN in other places than the truth, or the one for the other")
            own, error, size = _norm(b - t, t, norm), _norm(r - t, t, norm), _norm(t, t, norm)
            if own > math.sqrt(eps) * size:
                raise AssertionError(f"the baseline itself is {own:.2g} off the truth, more than "
                                     "rounding does: is the truth the same computation?")
            allowed = times * max(own, eps * size)
            if error > allowed:
                raise AssertionError(
                    f"error {error:.2g} against float64, allowed {allowed:.2g} "
                    f"({times:g} times the baseline's own)")
    return check


def break_even(comparison: Comparison, name: str) -> float | None:
    """Number of calls, the first included, from which on `name` has taken no more time in
    all than the baseline; inf when it is slower than the baseline; None when the interval
    contains 1 (nobody can tell)."""
    r = comparison.speedup(name)
    if r.low <= 1 <= r.high:
        return None
    if r.value < 1:
        return math.inf
    base, new = comparison[comparison.baseline], comparison[name]
    extra = new.first_call_s - base.first_call_s
    saved = base.median_s * (1 - 1 / r.value)
    return 1 + max(0, math.ceil(extra / saved))


def peak_bytes(f) -> int:
    """Largest number of bytes of tensor memory alive at once during one call of f,
    beyond what was alive before it.

    CPU: replayed from the profiler's allocation events. CUDA and XPU: the allocator's
    own peak counter. MPS and a device of your own count nothing of the kind: there it is
    what f allocates on the CPU. f is called once before, so that compilation does not count.
    """
    device = _device_of(f())
    accelerator = getattr(torch, device, None) if device in ("cuda", "xpu") else None
    if accelerator:
        accelerator.synchronize()
        accelerator.reset_peak_memory_stats()
        before = accelerator.memory_allocated()
        result = f()
        accelerator.synchronize()
        del result
        return accelerator.max_memory_allocated() - before
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning: Profiler clears events")  # 2.11, each time
        with torch.profiler.profile(profile_memory=True) as profile:
            result = f()
    del result
    alive = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]" and event.device_type().name == "CPU":
            alive += event.nbytes()
            peak = max(peak, alive)
    return peak


# --- how it is done -----------------------------------------------------------


def _block(f, calls, synchronise) -> float:
    """Seconds per call over one block; the collector stays out of it."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(calls):
            f()
        synchronise()
        return (time.perf_counter() - start) / calls
    finally:
        if collecting:
            gc.enable()


def _calibrate(block, name, once_s) -> int:
    """Calls per block so that a block takes about BLOCK_S; the calls made here are the
    warm-up. A function slower than a block gets one call and no more warm-up."""
    calls, block_s = 1, once_s
    while block_s < BLOCK_S / 2:
        calls = min(calls * 10, math.ceil(calls * BLOCK_S / max(block_s, 1e-9)))
        block_s = block(name, calls) * calls
    return calls


@contextlib.contextmanager
def _naming(name):
    """An error of an entry says whose it is."""
    try:
        yield
    except Exception as error:
        raise RuntimeError(f"{name!r} raised {type(error).__name__}: {error}") from error


def _summary(blocks, calls, first_s, device) -> Measurement:
    q1, median, q3 = statistics.quantiles(blocks, n=4, method="inclusive")
    return Measurement(median, q1, q3, len(blocks), calls, first_s,
                       torch.get_num_threads(), device, noisy=(q3 - q1) > 0.1 * median)


def _flat(value) -> list:
    """The tensors in a nested structure, in order."""
    if isinstance(value, torch.Tensor):
        return [value.detach()]
    if isinstance(value, dict):
        return [t for k in value for t in _flat(value[k])]
    if isinstance(value, list | tuple):
        return [t for v in value for t in _flat(v)]
    return [torch.as_tensor(value)] if isinstance(value, int | float | bool) else []


def _norm(values, truth, norm) -> float:
    """Of the values where the truth is finite."""
    values = values[truth.isfinite()]
    return float(torch.linalg.vector_norm(values, norm)) if values.numel() else 0.0


def _accept(result, baseline):
    """The check of a measurement that has nothing to compare with."""


def _devices(result) -> list[str]:
    """The kinds of device that a result's tensors are on, the CPU last."""
    return sorted({t.device.type for t in _flat(result)} | {"cpu"}, key=lambda kind: (kind == "cpu", kind))


def _device_of(result) -> str:
    return _devices(result)[0]


def _no_wait():
    """The CPU has finished when the call returns."""


def _synchroniser(result):
    """A function that waits for each device that the result is on."""
    # torch.cuda, torch.xpu, torch.mps, a PrivateUse1 module
    modules = [getattr(torch, kind, None) for kind in _devices(result) if kind != "cpu"]
    waits = [module.synchronize for module in modules if hasattr(module, "synchronize")]
    return (lambda: [wait() for wait in waits]) if waits else _no_wait


class _watch_dynamo:
    """Notices when Dynamo compiles, or hits its recompile limit, while blocks run."""

    # Two comparisons at once in a process would time, and blame, each other.
    _lock = threading.Lock()

    def __enter__(self):
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("another comparison is running in this process")
        self.before = self._attempts()
        return self

    def __exit__(self, *exc):
        self._lock.release()

    @staticmethod
    def _attempts() -> int:
        """Frames handed to Dynamo so far, those refused by the limit included."""
        dynamo = sys.modules.get("torch._dynamo.utils")  # importing it takes seconds
        return dynamo.counters["frames"]["total"] if dynamo else 0

    def check(self):
        if self._attempts() == self.before:
            return
        failures = sys.modules["torch._dynamo.utils"].guard_failures
        reason = next((str(r) for rs in failures.values() for r in rs[-1:]), "a new frame")
        raise RecompiledWhileTiming(
            "Dynamo compiled while the blocks ran, so they timed the compiler. "
            f"Last reason: {reason}. Call the function with the same kind of input each "
            "time, or compile before comparing.")
