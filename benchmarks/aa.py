"""The proof of the timer: f against itself, on a quiet machine and beside a busy one.

    python benchmarks/aa.py [--runs 20] [--write]

Three workloads, each timed against an identical one by the book's interleaved
`utils.timing.compare` and by torch's `Timer.blocked_autorange`, one after the other,
at equal wall time. Whatever is not 1 is the method's error. Then with a neighbour: seeded
processes that are busy and idle together in turns of 50-600 ms, as many as leave no core
free (beside one-thread work, a single one would run on the other core and disturb
nobody). Then: the same operation built twice (own weights and inputs), and a known truth,
11 calls against 10.

--write stores the summary in benchmarks/aa.json, which chapter 00 draws.
"""

import argparse
import contextlib
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch.utils.benchmark import Timer

from utils.environment import cpu_name
from utils.report import rows, share
from utils.timing import compare, measure

ENTRY_S = 0.05   # seconds an entry
BUSY_S = 0.25    # seconds an entry and thread beside the neighbour, whose turns are as long
PROOF = 100      # runs; fewer are a look of a minute: ENTRY_S beside the neighbour too, and
                 # fewer runs for all that is not a 90th percentile
TRUTH_S = 0.15   # seconds an entry for the known truth, a difference of a tenth
WIDE_S = 0.5     # seconds an entry where the width of the interval is judged
NEIGHBOUR = """
import random, sys, time
turn = random.Random(int(sys.argv[1]))
while True:
    end = time.perf_counter() + turn.uniform(0.05, 0.6)
    while time.perf_counter() < end:
        sum(range(1000))
    time.sleep(turn.uniform(0.05, 0.6))
"""


def pointwise():
    """Memory-bound: larger than the caches that a core owns."""
    x = torch.randn(1_000_000)
    return lambda: x * 2 + 1


def gemm_softmax():
    x, w = torch.randn(64, 512), torch.randn(512, 512)
    return lambda: (x @ w).softmax(-1)


def matmul():
    a, b = torch.randn(256, 512), torch.randn(512, 512)
    return lambda: a @ b


WORKLOADS = {"pointwise": (pointwise, 1), "GEMM + softmax": (gemm_softmax, 1), "matmul": (matmul, 2)}


@contextlib.contextmanager
def neighbours(seed, beside):
    """Processes that are busy and idle at the same times (one seed), as many as leave no
    core free beside so many threads."""
    processes = [subprocess.Popen([sys.executable, "-c", NEIGHBOUR, str(seed)])
                 for _ in range(max(1, (os.cpu_count() or 1) - beside + 1))]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def interleaved(f, g, seconds=ENTRY_S):
    """The book's way: a Ratio."""
    return compare({"f": f, "g": g}, check=lambda result, baseline: None, budget_s=seconds).speedup("g")


def one_after_the_other(f, g, seconds=ENTRY_S):
    """torch's way, once for each function: a plain ratio of medians."""
    threads = torch.get_num_threads()
    times = [Timer("f()", globals={"f": h}, num_threads=threads)
             .blocked_autorange(min_run_time=seconds).median for h in (f, g)]
    return times[0] / times[1]


def errors(ratios):
    """Median and 90th percentile of |log ratio|."""
    logs = sorted(abs(math.log(r)) for r in ratios)
    return {"median": statistics.median(logs), "p90": logs[math.ceil(0.9 * len(logs)) - 1]}


def aa(build, runs, seconds):
    """The same function against itself, both methods, the same wall time for each."""
    f, ours, theirs = build(), [], []
    for _ in range(runs):
        start = time.perf_counter()
        ours.append(interleaved(f, f, seconds))
        theirs.append(one_after_the_other(f, f, (time.perf_counter() - start) / 2))
    return {
        "interleaved": errors([r.value for r in ours]),
        "one after the other": errors(theirs),
        "covers 1": sum(r.low <= 1 <= r.high for r in ours) / runs,
        "half width": statistics.median((r.high - r.low) / 2 for r in ours),
        "false verdicts": sum(r.word in ("faster", "slower") for r in ours) / runs,
        "false verdicts, 3 % rule on one after the other": sum(abs(r - 1) > 0.03 for r in theirs) / runs,
    }


def built_twice(build, runs):
    """Two builds with their own weights and inputs: share called faster or slower."""
    return sum(interleaved(build(), build()).word in ("faster", "slower") for _ in range(runs)) / runs


def known_truth(runs):
    """11 calls against 10: share called right, and the median ratio (1.10 is true)."""
    f = gemm_softmax()

    def repeat(n):
        def call():
            for _ in range(n):
                result = f()
            return result
        return call

    ratios = [interleaved(repeat(11), repeat(10), TRUTH_S) for _ in range(runs)]
    return {"right": sum(r.word == "faster" for r in ratios) / runs,
            "ratio": statistics.median(r.value for r in ratios)}


def wide(runs):
    """Half width of the interval at half a second an entry, one thread."""
    f = gemm_softmax()
    found = [interleaved(f, f, WIDE_S) for _ in range(runs)]
    return statistics.median((r.high - r.low) / 2 for r in found)


def agreement(slowest_s, turns):
    """Our clock over Timer's at the same number of threads: the median of so many turns
    each from microseconds up, one of the slowest."""
    result = {}
    for name, f in {"2 us": lambda x=torch.zeros(1): x + 1, "1 ms": matmul(),
                    f"{slowest_s:g} s": lambda: time.sleep(slowest_s) or torch.zeros(1)}.items():
        theirs = Timer("f()", globals={"f": f}, num_threads=torch.get_num_threads())
        found = []
        for _ in range(1 if name.endswith(" s") else turns):
            median = (theirs.timeit(1) if name.endswith(" s") else theirs.blocked_autorange(min_run_time=0.05)).median
            found.append(measure(f, budget_s=0.05).median_s / median)
        result[name] = statistics.median(found)
    return result


def main(argv=None):
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--write", action="store_true", help="store benchmarks/aa.json")
    options = options.parse_args(argv)
    if options.runs < 5:
        sys.exit("--runs wants at least 5: a 90th percentile of fewer says nothing")
    start, threads, proof = time.perf_counter(), torch.get_num_threads(), options.runs >= PROOF
    shares = options.runs if proof else options.runs // 2
    torch.manual_seed(0)
    summary = {"machine": cpu_name(), "torch": torch.__version__, "runs": options.runs,
               "date": time.strftime("%Y-%m-%d"), "workloads": {}}
    for name, (build, wanted) in WORKLOADS.items():
        torch.set_num_threads(min(wanted, threads))
        print(f"{name} ...", flush=True)
        quiet = aa(build, options.runs, ENTRY_S)
        quiet["built twice"] = built_twice(build, shares)
        with neighbours(random.Random(name).randrange(1000), beside=torch.get_num_threads()):
            busy = aa(build, options.runs, BUSY_S * torch.get_num_threads() if proof else ENTRY_S)
        summary["workloads"][name] = {"threads": torch.get_num_threads(), "quiet": quiet, "busy": busy}
    torch.set_num_threads(1)
    summary["known truth"] = known_truth(shares)
    summary["half width at 0.5 s"] = wide(max(2, options.runs // 10))
    torch.set_num_threads(threads)
    summary["clock against Timer"] = agreement(1, 9) if proof else agreement(0.1, 3)
    report(summary)
    print(f"{time.perf_counter() - start:.0f} s in all")
    if options.write:
        Path(__file__).with_suffix(".json").write_text(json.dumps(summary, indent=1) + "\n")


def report(summary):
    """Print the summary as tables; an error is how much the larger time is above the smaller."""
    for when in ("quiet", "busy"):
        rows([{
            "workload": name, "threads": entry["threads"],
            **{f"{how}, {what}": f"{100 * math.expm1(entry[when][method][what]):.1f} %"
               for how, method in (("ours", "interleaved"), ("torch", "one after the other"))
               for what in ("median", "p90")},
            "covers 1": share(entry[when]["covers 1"]),
            "half": f"{100 * entry[when]['half width']:.1f} %",
            "false": share(entry[when]["false verdicts"]),
        } for name, entry in summary["workloads"].items()], f"f against f, {when}")
        print()
    for name, entry in summary["workloads"].items():
        print(f"{name}: built twice, called different: {share(entry['quiet']['built twice'])};"
              f" p90 under load, torch over ours:"
              f" {entry['busy']['one after the other']['p90'] / entry['busy']['interleaved']['p90']:.1f}")
    truth = summary["known truth"]
    print(f"11 calls against 10: right in {share(truth['right'])}, ratio {truth['ratio']:.3f}")
    print(f"half width at 0.5 s, one thread: {100 * summary['half width at 0.5 s']:.1f} %")
    print("our clock over Timer's:", {k: round(v, 3) for k, v in summary["clock against Timer"].items()})


if __name__ == "__main__":
    main()
