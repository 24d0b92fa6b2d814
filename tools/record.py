"""Run chapters once and keep their results as those of a named machine.

    python -m tools.record NAME [CHAPTER ...]

writes recorded/NAME.torch-<version>.json, chapter by chapter: what was recorded before
for other chapters stays. `tools.execute` is the same run that also keeps the outputs.
"""

import argparse
import os
import re
import signal
import tempfile
import uuid
from dataclasses import dataclass, field

from tools import chapters, notebook_form
from tools.chapters import stop
from utils import recorded
from utils.environment import EFFORTS, effort

BUSY = 0.1  # others may use a tenth of the cores while we measure
# What makes two runs one machine's; of the rest a file keeps what its last run found.
SAME = ("cpu", "cores", "capability", "device", "driver", "torch", "python")


@dataclass(frozen=True)
class Run:
    """One run: one id, one commit (storing outputs changes files), some chapters."""

    machine: str
    effort: str
    allow_busy: bool = False
    keep: object = None  # keep(path, notebook) stores the outputs; ValueError refuses them
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    commit: str | None = field(default_factory=lambda: recorded.commit())

    def __post_init__(self):
        if not re.fullmatch(r"[a-z0-9-]{1,40}", self.machine):
            stop(f"{self.machine!r} is no name for a machine: small letters, digits and hyphens, 40 at most.", 2)
        if self.machine == recorded.YOURS:
            stop(f"{self.machine!r} is what every reader's own results are called: choose a name that tells yours "
                 "from others.", 2)

    def all(self, paths) -> None:
        """Run chapters, keeping each as soon as it is through; ends the program at the
        first that fails."""
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # end as with Ctrl+C: tidily
        for path in paths:
            if path.stem[:2] in notebook_form.NO_CHAPTER:
                print(f"{path.stem} measures nothing: make book runs it.", flush=True)
                continue
            try:
                self.chapter(path)
            except KeyboardInterrupt:
                stop(f"{path.stem}: interrupted; nothing of it was kept.", 130)
            except (ValueError, OSError, chapters.Failed) as error:
                stop(f"{error}\nNothing of {path.stem} was kept.")

    def chapter(self, path) -> None:
        """One chapter in a new kernel: its outputs and its results, or neither."""
        notebook = chapters.read(path)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as results:
            env = {"BOOK_EFFORT": self.effort, "BOOK_RESULTS": results, "BOOK_RUN": self.id,
                   "BOOK_MACHINE": self.machine}
            share = chapters.execute(notebook, path, env)
            self._judge(path, share)
            joined = self._joined(path, results, share)
        before = path.read_bytes()
        if self.keep:
            notebook.metadata.setdefault("book", {})["run"] = self.id
            self.keep(path, notebook)
        if joined:
            try:
                recorded.write(*joined)
            except BaseException:
                path.write_bytes(before)
                raise
        print(f"  results kept in recorded/{joined[0].name}" if joined else "  it records no results", flush=True)

    def _judge(self, path, share) -> None:
        if share is None or share <= BUSY:
            return
        said = f"{path.stem}: other processes used {100 * share:.0f} % of the cores meanwhile"
        if not self.allow_busy:
            raise ValueError(f"{said}, more than {100 * BUSY:.0f} %: end them and run it again, or use --allow-busy.")
        print(f"{said}; its entry says so (other_load).", flush=True)

    def _joined(self, path, results, share):
        """(path, data): the machine's file with this chapter's new entry; None without one."""
        if not os.listdir(results):
            return None
        number = path.stem[:2]
        new = recorded.merge(results, self.machine, {number: share})
        if set(new["chapters"]) != {number}:
            raise ValueError(f"{path.stem} recorded results under {', '.join(new['chapters'])}, not only {number}.")
        new["chapters"][number]["run"]["commit"] = self.commit
        target = chapters.REPO / "recorded" / recorded.file_name(new)
        target.parent.mkdir(exist_ok=True)
        if not target.exists():
            return target, new
        if faults := recorded.check(target):
            raise ValueError(f"{faults[0]} Mend or remove that file first.")
        old = next(data for data in recorded.load(target.parent) if recorded.file_name(data) == target.name)
        for what in SAME:
            if (was := old["provenance"].get(what)) != new["provenance"][what]:
                raise ValueError(f"{target.name} is from a machine with another {what} ({was}): "
                                 "give this one a name of its own.")
        return target, {**new, "chapters": dict(sorted({**old["chapters"], **new["chapters"]}.items()))}


def parser(summary):
    made = argparse.ArgumentParser(description=summary)
    try:
        wanted = effort() if "BOOK_EFFORT" in os.environ else "publish"
    except ValueError as error:
        stop(str(error), 2)
    made.add_argument("--effort", choices=EFFORTS, default=wanted)
    made.add_argument("--allow-busy", action="store_true",
                      help="keep results though other processes used the cores; the entry says how much")
    return made


def main():
    options = parser(__doc__.splitlines()[0])
    options.add_argument("name")
    options.add_argument("chapters", nargs="*", metavar="CHAPTER")
    options = options.parse_args()
    Run(options.name, options.effort, options.allow_busy).all(chapters.find(options.chapters))


if __name__ == "__main__":
    main()
