"""How much of the machine other processes used while we measured.

Linux only (/proc); elsewhere the answer is None. Imports without torch.
"""

from __future__ import annotations

import ctypes
import os
import time

_TICK_S = 1 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01
_SHORTEST_S = 1.0  # /proc counts in ticks of 10 ms: a shorter time says nothing
_PR_SET_CHILD_SUBREAPER = 36


class OtherLoad:
    """Counts from its creation: the share of our cores' time that went to processes
    which are neither this one nor its descendants.

    >>> load = OtherLoad()          # or: with OtherLoad() as load: ...
    >>> load.share()                # between 0 and 1; None where nobody can tell
    """

    def __init__(self, pid: int | None = None):
        self.pid = os.getpid() if pid is None else pid
        self._start = self._now()
        self._end = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._end = self._now()

    def share(self) -> float | None:
        """Between creation and now (or the end of the with block); 0.1 is a tenth."""
        start, end = self._start, self._end or self._now()
        if start is None or end is None or end[0] - start[0] < _SHORTEST_S:
            return None
        wall, busy, own = (e - s for s, e in zip(start, end))
        return round(min(1.0, max(0.0, (busy - own) / (wall * _cores()))), 4)

    def _now(self):
        """(wall, busy, own) in seconds, or None."""
        try:
            return time.monotonic(), _busy_s(), _tree_s(self.pid)
        except (OSError, ValueError, IndexError, AttributeError):
            return None


def adopt_orphans() -> None:
    """From now on a descendant whose parent has ended becomes this process's child, not
    that of the system's first process: a compiler's workers outlive who started them, and
    what they compute is ours. Linux only; elsewhere nothing happens."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (OSError, AttributeError, TypeError):
        pass  # no prctl here; Windows has no library of that name


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _busy_s() -> float:
    """Seconds the cores we may use have not been idle; a hypervisor's share counts."""
    cores = {f"cpu{n}" for n in os.sched_getaffinity(0)}
    ticks = 0
    with open("/proc/stat", encoding="ascii") as lines:
        for line in lines:
            name, *fields = line.split()
            if name in cores:
                user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[:8])
                ticks += user + nice + system + irq + softirq + steal
    return ticks * _TICK_S


def _tree_s(root: int) -> float:
    """CPU seconds of a process and its descendants, those that ended and were waited
    for included."""
    parent, ticks = {}, {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                    # The command stands in brackets and may hold blanks and brackets.
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue  # it ended while we looked
            parent[int(name)] = int(fields[1])
            ticks[int(name)] = sum(map(int, fields[11:15]))  # utime stime cutime cstime
    if root not in parent:
        raise ValueError(f"no process {root}")
    inside = {root}
    while more := {p for p, up in parent.items() if up in inside and p not in inside}:
        inside |= more
    return sum(ticks[p] for p in inside) * _TICK_S
