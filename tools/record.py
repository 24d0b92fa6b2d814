"""Run chapters once and keep their results as those of a named machine.

    python -m tools.record NAME [CHAPTER ...]

writes recorded/NAME.torch-<version>.json, chapter by chapter: what was recorded before
for other chapters stays. `tools.execute` is the same run that also keeps the outputs.
"""

import argparse
import re
import sys
import tempfile
import uuid
from pathlib import Path

from tools import chapters
from utils import recorded


def run(paths, machine, *, effort="publish", keep=None, allow_busy=False) -> None:
    """Run chapters and write the machine's file. keep(path, notebook) stores outputs."""
    if not re.fullmatch(r"[a-z0-9-]{1,40}", machine):
        sys.exit(f"{machine!r} is no name for a machine: small letters, digits and hyphens, 40 at most.")
    run_id = uuid.uuid4().hex[:12]
    for path in paths:
        notebook = chapters.read(path)
        with tempfile.TemporaryDirectory() as results:
            share = chapters.execute(notebook, path, results=Path(results), effort=effort, run_id=run_id)
            if share is not None and share > chapters.BUSY and not allow_busy:
                sys.exit(f"{path.stem}: other processes used {100 * share:.0f} % of the cores meanwhile, more "
                         f"than {100 * chapters.BUSY:.0f} %. Nothing was kept; end them and run it again.")
            try:
                target = add(recorded.merge(results, machine, {path.stem[:2]: share}))
            except (ValueError, OSError) as error:
                sys.exit(f"{path.stem}: its results could not be kept: {error}")
        if keep:
            keep(path, notebook)
        print(f"  kept in recorded/{target.name}", flush=True)


def add(new: dict) -> Path:
    """Put a run's chapters into the machine's file; the chapters it did not run stay."""
    path = chapters.REPO / "recorded" / recorded.file_name(new)
    path.parent.mkdir(exist_ok=True)
    old = next((data for data in recorded.load(path.parent) if recorded.file_name(data) == path.name), None)
    if old:
        if old["provenance"]["cpu"] != new["provenance"]["cpu"]:
            raise ValueError(f"{path.name} is from another machine ({old['provenance']['cpu']}); take another name")
        new = {**new, "chapters": dict(sorted({**old["chapters"], **new["chapters"]}.items()))}
    recorded.write(path, new)
    return path


def parser(summary):
    made = argparse.ArgumentParser(description=summary)
    made.add_argument("--effort", choices=["test", "read", "publish"], default="publish")
    made.add_argument("--allow-busy", action="store_true",
                      help="keep results though other processes used the cores; the file says how much")
    return made


def main():
    options = parser(__doc__.splitlines()[0])
    options.add_argument("name")
    options.add_argument("chapters", nargs="*", metavar="CHAPTER")
    options = options.parse_args()
    run(chapters.find(options.chapters), options.name, effort=options.effort, allow_busy=options.allow_busy)


if __name__ == "__main__":
    main()
