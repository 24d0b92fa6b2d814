"""Execute the chapters of a schedule as a room would, and print clock times:

    python -m tools.dry_run 90 | half | full | all | CHAPTER ... [--start 09:00] [--write]

Each chapter runs once in a new kernel at the effort that learners have (read). The exit
status is 1 when a chapter fails or the schedule would end late. --write keeps the seconds,
with a calibration of this machine, in recorded/seconds/: the schedules and the preflight
check are computed from them. Refused when other processes used the cores.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

from tools import chapters, schedule
from tools.chapters import stop
from tools.record import BUSY
from utils import environment, preflight
from utils.recorded import replace_file

EFFORT = "read"


def run(number: str) -> tuple[float, float | None]:
    """(seconds, share of the cores that others used) of one chapter. Ends the program with
    its cell when it fails."""
    path = chapters.find([number])[0]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as results:  # no results of a rehearsal
        begun = time.monotonic()
        try:
            share = chapters.execute(chapters.read(path), path, {"BOOK_EFFORT": EFFORT, "BOOK_RESULTS": results})
        except (chapters.Failed, chapters.Broken) as error:
            stop(f"{error}\nThe dry run ended here.")
        except KeyboardInterrupt:
            stop(f"{path.stem}: interrupted; the dry run ended here.", 130)
    return time.monotonic() - begun, share


def rehearse(plan: schedule.Plan, start: str) -> dict[str, tuple[float, float | None]]:
    """Run the plan's chapters, printing each line of it; {chapter: (seconds, share)}. Ends
    the program when the room would be late."""
    book, recorded = preflight.chapters(), preflight.reference()
    measured, late = {}, 0
    print(f"{plan.title}, as planned:", *schedule.lines(plan, start, book, recorded), "", sep="\n", flush=True)
    for slot in schedule.slots(plan, book, recorded):
        begin, said = schedule.clock(start, slot.start + late), ""
        if slot.chapter:
            measured[slot.chapter] = run(slot.chapter)
            seconds = measured[slot.chapter][0]
            more = max(0, math.ceil(seconds / 60) - schedule.waiting(slot.chapter, recorded))
            late += more
            said = f": ran in {seconds:.0f} s" + (f", {more} min more than planned" if more else "")
        end = schedule.clock(start, slot.start + slot.minutes + late)
        print(f"{begin} to {end}  {slot.what}{said}", flush=True)
    over = late - schedule.spare(plan, book, recorded)
    if over > 0:
        stop(f"The room would end {over} minutes late.")
    print(f"The room ends in time, with {-over} minutes left over.")
    return measured


def keep(measured: dict, calibration: dict, allow_busy: bool):
    """Write the seconds of these chapters; those of others stay."""
    for number, (_, share) in measured.items():
        if share is not None and share > BUSY and not allow_busy:
            stop(f"Chapter {number}: other processes used {100 * share:.0f} % of the cores meanwhile; nothing was "
                 "written. End them, or use --allow-busy.")
    before = preflight.reference()
    here = {"cpu": environment.cpu_name(), "cores": os.cpu_count(), "torch": version("torch"), "effort": EFFORT}
    same = all(before.get(what) == value for what, value in here.items())
    old = before["chapters"] if same else {}
    if missing := sorted(set(before["chapters"]) - set(old) - set(measured)):
        stop(f"The seconds in recorded/seconds/ are another machine's, and chapters {', '.join(missing)} are missing to "
             "replace them all; nothing was written: python -m tools.dry_run all --write.")
    new = {number: {"seconds": round(seconds, 1), "other_load": share} for number, (seconds, share) in measured.items()}
    target = Path(preflight.REFERENCE)
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, json.dumps({
        **here, "date": date.today().isoformat(), "calibration": {name: round(took, 5) for name, took in calibration.items()},
        "chapters": dict(sorted({**old, **new}.items()))}, indent=1) + "\n")
    print(f"recorded/seconds/{target.name} has the seconds of chapters {', '.join(measured)}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="+", help="90, half, full, all, or chapters such as 00 20")
    parser.add_argument("--start", default="09:00", help="when the room begins")
    parser.add_argument("--write", action="store_true", help="keep the seconds in recorded/seconds/")
    parser.add_argument("--allow-busy", action="store_true", help="keep them though others used the cores")
    options = parser.parse_args()
    try:
        schedule.clock(options.start, 0)
    except ValueError:
        stop(f"--start {options.start}: a time such as 09:00 is wanted.", 2)
    words = options.what
    plan = schedule.PLANS.get(words[0]) if len(words) == 1 else None
    if not plan:
        known = preflight.chapters()
        words = list(known) if words == ["all"] else words
        if wrong := [word for word in words if word not in known]:
            stop(f"There is no schedule or chapter {wrong[0]!r}; there are {', '.join([*schedule.PLANS, 'all', *known])}.", 2)
    # Before anything runs: afterwards the machine is warm.
    calibration = preflight.calibrate() if options.write else {}
    measured = rehearse(plan, options.start) if plan else {number: run(number) for number in words}
    if options.write:
        keep(measured, calibration, options.allow_busy)


if __name__ == "__main__":
    main()
