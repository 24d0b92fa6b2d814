"""Find chapters and run one in a new kernel."""

from __future__ import annotations

import os
import sys
import time
import uuid
from pathlib import Path

from utils.fresh import kill_marked
from utils.load import OtherLoad
from utils.report import scrub

REPO = Path(__file__).resolve().parent.parent
BUSY = 0.1           # others may use a tenth of the cores while we measure
CELL_TIMEOUT_S = 900


def find(wanted=()) -> list[Path]:
    """The notebooks that words such as "20" or "20_regional_compilation" name, in order;
    all without a word. Exits with one sentence on an unknown one."""
    known = sorted((REPO / "chapters").glob("[0-9]*.ipynb"))
    chosen = []
    for word in wanted:
        path = next((p for p in known if word in (p.stem, p.stem.split("_")[0])), None)
        if path is None:
            sys.exit(f"There is no chapter {word!r}; there are {', '.join(p.stem for p in known) or 'none'}.")
        chosen.append(path)
    return chosen or known


def read(path: Path):
    """The notebook; exits with one sentence on a broken file."""
    import nbformat

    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), 4)
        nbformat.validate(notebook)
        return notebook
    except (OSError, ValueError, AttributeError, KeyError, TypeError, nbformat.ValidationError) as error:
        sys.exit(f"{path.name} is not a notebook that can be read: {str(error).splitlines()[0]}")


def execute(notebook, path: Path, *, results: Path, effort: str, run_id: str) -> float | None:
    """Run all cells in one new kernel, filling in their outputs; nothing of it survives.

    Returns the share of the cores that other processes used meanwhile (None: unknown).
    Exits with the cell's id and its error when a cell fails.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    mark = uuid.uuid4().hex
    env = {**os.environ, "BOOK_EFFORT": effort, "BOOK_RESULTS": str(results), "BOOK_RUN": run_id,
           "BOOK_KERNEL": mark}
    start, at = time.monotonic(), {}

    def begin_cell(cell, cell_index):
        at["cell"], at["start"] = cell.id, time.monotonic()

    def end_cell(cell, cell_index, execute_reply):
        took = time.monotonic() - at["start"]
        if took > 2:
            print(f"  {cell.id:28} {took:6.1f} s", flush=True)

    client = NotebookClient(notebook, timeout=CELL_TIMEOUT_S, kernel_name="python3", record_timing=False,
                            store_widget_state=False, resources={"metadata": {"path": str(path.parent)}},
                            on_cell_execute=begin_cell, on_cell_executed=end_cell)
    print(f"{path.stem} at effort {effort}", flush=True)
    with OtherLoad() as load:
        try:
            client.execute(env=env)
        except CellExecutionError as error:
            sys.exit(f"{path.stem}, cell {at.get('cell')}: {error.ename}: {scrub(error.evalue)}")
        except (CellTimeoutError, DeadKernelError) as error:
            sys.exit(f"{path.stem}, cell {at.get('cell')}: {scrub(str(error)).splitlines()[0]}")
        finally:
            kill_marked(mark, "BOOK_KERNEL")
    print(f"{path.stem}: {time.monotonic() - start:.0f} s", flush=True)
    return load.share()
