"""Plant faults and see the tests catch them: python -m tools.mutants [ID ...]

tests/mutants.yml names one-line faults; each is put into a temporary copy of the book and
must make the test it names fail. --one-per-chapter tries the first of each file.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml

from tools import chapters
from tools.chapters import stop
from tools.test import CELL_TIMEOUT_S
from utils.fresh import kill_marked
from utils.report import rows, seconds

LEFT_OUT = shutil.ignore_patterns(".*", "_build", "__pycache__", "*.egg-info")
CAUGHT, SURVIVED = "caught", "survived"


@dataclass(frozen=True)
class Mutant:
    """A fault: `new` in place of `old`, which stands once in the file (or in its cell)."""

    id: str
    file: str
    old: str
    new: str
    caught_by: str           # what pytest shall run; "chapter": the notebook's own cells
    cell: str | None = None  # of a notebook
    until: str | None = None  # the last cell to run: what comes later is left out
    limit_s: float = 300.0

    def mutated(self, book: Path) -> str:
        """The file's text with the fault. Raises ValueError with a sentence."""
        path = book / self.file
        if self.cell is None:
            return self._replaced(path.read_text(encoding="utf-8"), self.file)
        notebook = chapters.read(path)
        by_id = {cell.id: n for n, cell in enumerate(notebook.cells)}
        for name in (self.cell, self.until or self.cell):
            if name not in by_id:
                raise ValueError(f"{self.id}: {self.file} has no cell {name!r}.")
        if self.until and by_id[self.until] < by_id[self.cell]:
            raise ValueError(f"{self.id}: it stops before the cell with the fault.")
        target = notebook.cells[by_id[self.cell]]
        target.source = self._replaced(target.source, f"{self.file}, {self.cell}")
        if self.until:
            del notebook.cells[by_id[self.until] + 1:]
        return nbformat.writes(notebook, version=nbformat.NO_CONVERT)

    def _replaced(self, text: str, where: str) -> str:
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.id}: {self.old!r} is {f'there {count} times' if count else 'not there'} in {where}.")
        return text.replace(self.old, self.new)

    def run(self, book: Path = chapters.REPO) -> tuple[str, float]:
        """(word, seconds) in a copy of the book: caught, survived, or why it was not run."""
        text, start = self.mutated(book), time.monotonic()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            copy = Path(folder, "book")
            shutil.copytree(book, copy, ignore=LEFT_OUT)
            (copy / self.file).write_text(text, encoding="utf-8", newline="\n")
            return self._pytest(copy, folder), time.monotonic() - start

    def _pytest(self, copy: Path, folder: str) -> str:
        mark = uuid.uuid4().hex
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        if self.caught_by == "chapter":
            command += ["-p", "nbval.plugin", "--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout", str(CELL_TIMEOUT_S), self.file]
            if (cfg := copy / "tests" / "sanitize.cfg").exists():
                command += ["--nbval-sanitize-with", str(cfg)]
        else:
            command += self.caught_by.split()
        # PYTHONPATH: the copy's utils, not the installed ones.
        env = {**os.environ, "BOOK_EFFORT": "test", "BOOK_RESULTS": os.path.join(folder, "results"),
               "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1",
               "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # half of the time of a short test
               chapters.MARK: mark}
        with open(os.path.join(folder, "log"), "w+b") as log:
            process = subprocess.Popen(command, cwd=copy, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                status = process.wait(self.limit_s)
            except subprocess.TimeoutExpired:
                return f"not run to the end in {seconds(self.limit_s)}"
            finally:
                process.kill()
                kill_marked(mark, chapters.MARK)
                process.wait()
        # 1: tests ran and failed. Anything else above 0 says that they did not run.
        return {0: SURVIVED, 1: CAUGHT}.get(status, f"not run: pytest ended with {status}")


def load(path: Path = chapters.REPO / "tests" / "mutants.yml") -> list[Mutant]:
    """The listed mutants. Raises ValueError for two of one id, TypeError for a wrong field."""
    listed = [Mutant(**entry) for entry in yaml.safe_load(path.read_text(encoding="utf-8"))]
    ids = [mutant.id for mutant in listed]
    if twice := {name for name in ids if ids.count(name) > 1}:
        raise ValueError(f"{path.name}: {', '.join(sorted(twice))} stands twice.")
    return listed


def choose(listed, wanted, one_per_file):
    known = {mutant.id: mutant for mutant in listed}
    if unknown := [name for name in wanted if name not in known]:
        stop(f"There is no mutant {unknown[0]!r}; there are {', '.join(known)}.", 2)
    chosen = [known[name] for name in wanted] or listed
    if one_per_file:
        first = {}
        for mutant in chosen:
            first.setdefault(mutant.file, mutant)
        chosen = list(first.values())
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--one-per-chapter", action="store_true", help="only the first of each file")
    parser.add_argument("ids", nargs="*", metavar="ID")
    options = parser.parse_args()
    done = []
    for mutant in choose(load(), options.ids, options.one_per_chapter):
        print(f"{mutant.id} ...", flush=True)
        try:
            word, took = mutant.run()
        except (ValueError, OSError) as error:
            word, took = f"not run: {error}", None
        done.append({"mutant": mutant.id, "file": mutant.file, "result": word, "took": seconds(took)})
    rows(done)
    free = [row["mutant"] for row in done if row["result"] != CAUGHT]
    if free:
        stop(f"Not caught: {', '.join(free)}.")


if __name__ == "__main__":
    main()
