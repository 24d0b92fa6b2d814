"""A ratio of times with its interval, and the words for it. Imports without torch: who
reads recorded results judges by the same rule as who measures.
"""

from __future__ import annotations

from dataclasses import dataclass

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

    def inverse(self) -> Ratio:
        """The same comparison told from the other side."""
        return Ratio(1 / self.value, 1 / self.high, 1 / self.low, self.rounds)
