"""A ratio of times with its interval, and the words for it. Imports without torch: who
reads recorded results judges by the same rule as who measures.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

FEWEST_ROUNDS = 6  # fewer cannot give a 95 % interval
MARGIN = 0.03  # two builds of the same memory-bound operation differ by 1-2 %


@dataclass(frozen=True)
class Ratio:
    """How many times faster than the baseline, with a 95 % interval. rounds: the blocks it
    rests on; None where it was worked out from other ratios."""

    value: float
    low: float
    high: float
    rounds: int | None = None

    @property
    def word(self) -> str:
        """The verdict, from the interval and a margin of 3 %."""
        if self.low > 1 + MARGIN:
            return "faster"
        if self.high < 1 - MARGIN:
            return "slower"
        if self.low >= 1 - MARGIN and self.high <= 1 + MARGIN:
            return "about the same"
        return "cannot tell"


def paired_ratio(base, new) -> Ratio:
    """How many times faster `new` is than `base`: two lists of seconds, one number a round
    each, taken in turn.

    The median of the ratios of each round and, as interval, the order statistics that hold
    the true median with 95 % (sign test: no distribution is assumed). Raises ValueError for
    lists of different length or fewer than six rounds, which cannot give 95 %.
    """
    if len(base) != len(new) or len(base) < FEWEST_ROUNDS:
        raise ValueError(f"two lists of at least {FEWEST_ROUNDS} seconds are wanted, of the same length; "
                         f"got {len(base)} and {len(new)}")
    ratios = sorted(b / n for b, n in zip(base, new))
    k = _sign_test_rank(len(ratios))
    return Ratio(statistics.median(ratios), ratios[k], ratios[-1 - k], len(ratios))


def _sign_test_rank(n: int, confidence=0.95) -> int:
    """Largest k so that [sorted[k], sorted[n-1-k]] covers the median often enough."""
    tail, k = 0.0, -1
    while True:
        tail += math.comb(n, k + 1) / 2**n
        if 2 * tail > 1 - confidence:
            return max(k, 0)
        k += 1
