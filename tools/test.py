"""Run the suite: python -m tools.test [CHAPTER ... | none]

Without an argument everything but the browser tests; "20" or "20_regional_compilation"
one chapter with its exercises; "none" all but the chapters and theirs. The chapters' cells
run one after the other with nbval; a chapter's seconds are printed beside its limit, and
twice the limit fails.
"""

import os
import subprocess
import sys
import tempfile
import time

from tools import chapters
from tools.chapters import REPO, stop
from tools.notebook_form import NO_CHAPTER

LIMIT_S = {"2.5": 120, "": 60}                 # BOOK_EFFORT=test, two quiet cores
LONG_LIMIT_S = {"2.5": 180, "": 90}
LONG = ("20", "30", "45", "50", "80")
CELL_TIMEOUT_S = 300


def chosen(words):
    """The notebooks that words name: all without one, none for "none"."""
    return [] if words == ["none"] else chapters.find(words)


def limit_s(path, release):
    limits = LONG_LIMIT_S if path.stem.split("_")[0] in LONG else LIMIT_S
    return limits.get(".".join(release.split(".")[:2]), limits[""])


def call(command, **how):
    """The exit status of a command. Ctrl+C reaches the command too: it gets the time to end
    what it has started, a kernel for one."""
    process = subprocess.Popen(command, **how)
    try:
        return process.wait()
    except KeyboardInterrupt:
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
        stop("Interrupted.", 130)


def run_chapter(path):
    """nbval over one notebook; (exit status, seconds). A test is no run of the reader's: what
    it measures in a hurry must not take the place of their results."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as results:
        status = call(
            [sys.executable, "-m", "pytest", "--nbval-lax", "--nbval-current-env",
             "--nbval-cell-timeout", str(CELL_TIMEOUT_S),
             "--nbval-sanitize-with", str(REPO / "tests" / "sanitize.cfg"), "-q", "--no-header", str(path)],
            cwd=path.parent, env={**os.environ, "BOOK_EFFORT": "test", "BOOK_RESULTS": results})
    return status, time.monotonic() - start


def run_unit_tests(words, paths):
    """pytest's exit status. They run in parallel, as most of them wait for a process; the chapters,
    which measure, never are."""
    exercises = "tests/test_exercises.py"
    if words == ["none"]:
        # A file's tests in one worker, which makes what they share once: the exercises share nothing.
        which = ["tests", "--ignore", exercises, "--dist", "loadfile"]
    elif words:
        numbers = [path.stem[:2] for path in paths if path.stem[:2] not in NO_CHAPTER]  # those have exercises
        if not numbers:
            return 0
        which = [exercises, "-k", " or ".join(f"{number}." for number in numbers)]
    else:
        which = ["tests"]
    workers = str(min(os.cpu_count() or 1, 4))
    # No plugin but this one: the chapters' nbval takes a while to import.
    return call([sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-n", workers, *which], cwd=REPO,
                env={**os.environ, "BOOK_EFFORT": "test", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})


def main():
    from importlib.metadata import version

    from utils.fresh import own_cache

    words = sys.argv[1:]
    paths = chosen(words)
    release = version("torch")
    own_cache()  # the toolchain folder is made here, not on the first chapter's clock
    failed = []
    if run_unit_tests(words, paths):
        failed.append("tests/")
    times = []
    for path in paths:
        status, took = run_chapter(path)
        limit = limit_s(path, release)
        times.append(f"{path.stem:28} {took:4.0f} s, limit {limit} s")
        if status:
            failed.append(path.stem)
        elif took > 2 * limit:
            failed.append(f"{path.stem} took {took:.0f} s, more than twice its limit")
    if times:
        print(f"Seconds a chapter on torch {release}:", *times, sep="\n")
    if failed:
        sys.exit("Failed: " + "; ".join(failed))


if __name__ == "__main__":
    main()
