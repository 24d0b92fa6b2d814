"""Find chapters, read, store and run one in a new kernel."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
import time
import uuid
from pathlib import Path

import nbformat

from utils.fresh import kill_marked
from utils.load import OtherLoad, adopt_orphans
from utils.report import scrub

REPO = Path(__file__).resolve().parent.parent
MARK = "BOOK_KERNEL"  # environment variable that a kernel and all it starts inherit
CELL_TIMEOUT_S = 1800  # at publish effort chapter 20 starts a deep model twelve times in one cell
SHOWN_S = 2.0         # cells that take longer are listed while a chapter runs


def stop(sentence: str, status: int = 1):
    """End the program with one sentence on stderr."""
    print(sentence, file=sys.stderr)
    sys.exit(status)


def find(wanted=()) -> list[Path]:
    """The notebooks that words such as "20" or "20_regional_compilation" name, in order;
    all without a word. Exits with one sentence on an unknown one."""
    known = sorted((REPO / "chapters").glob("[0-9]*.ipynb"))
    chosen = []
    for word in wanted:
        path = next((p for p in known if word in (p.stem, p.stem.split("_")[0])), None)
        if path is None:
            stop(f"There is no chapter {word!r}; there are {', '.join(p.stem for p in known) or 'none'}.", 2)
        chosen.append(path)
    return chosen or known


class Broken(ValueError):
    """A file that is no notebook; the message is one sentence that names it."""


def read(path: Path):
    """The notebook, as it stands in the file. Raises Broken."""
    try:
        text = path.read_text(encoding="utf-8")
        # Not nbformat.reads: that would give ids to cells without one.
        notebook = nbformat.v4.reads(text)
        nbformat.validate(notebook)
        return notebook
    except OSError as error:
        raise Broken(f"{path.name} cannot be read: {error.strerror}.") from None
    except (ValueError, LookupError, AttributeError, TypeError, nbformat.ValidationError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Broken(f"{path.name} is not a notebook that can be read: {why}.") from None


class Failed(RuntimeError):
    """A chapter did not run to its end; the message begins with chapter and cell."""


def execute(notebook, path: Path, env: dict[str, str]) -> float | None:
    """Run all cells in one new kernel of this interpreter, filling in their outputs.

    env: what to set on top of this process's environment. Returns the share of the cores
    that other processes used meanwhile (None: unknown). Raises Failed. Whatever happens,
    nothing that the notebook started is left.
    """
    mark, start = uuid.uuid4().hex, time.monotonic()
    print(f"{path.stem} ({env.get('BOOK_EFFORT', 'read')})", flush=True)
    adopt_orphans()
    try:
        with OtherLoad() as load:
            _run_cells(notebook, path, {**os.environ, **env, MARK: mark})
    finally:
        kill_marked(mark, MARK)
    print(f"{path.stem}: {time.monotonic() - start:.0f} s", flush=True)
    return load.share()


def _run_cells(notebook, path, env):
    from jupyter_client import AsyncKernelManager
    from jupyter_client.kernelspec import KernelSpecManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    # No folders to look in: a python3 that a user once installed would be another Python.
    specs = KernelSpecManager(kernel_dirs=[])
    client = NotebookClient(
        notebook, km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs),
        timeout=CELL_TIMEOUT_S, record_timing=False, store_widget_state=False, coalesce_streams=True)
    client.log.disabled = True  # what it has to say, Failed says
    where = "start"
    with tempfile.TemporaryFile() as log:  # what the kernel itself has to say
        try:
            # Cell by cell: `client.execute` turns Ctrl+C into a kernel that died.
            with client.setup_kernel(env=env, cwd=str(path.parent), cleanup_kc=True, stdout=log, stderr=log):
                for index, cell in enumerate(notebook.cells):
                    where, begun = cell.id, time.monotonic()
                    client.execute_cell(cell, index, execution_count=client.code_cells_executed + 1)
                    if (took := time.monotonic() - begun) > SHOWN_S:
                        print(f"  {cell.id:30} {took:6.1f} s", flush=True)
        except KeyboardInterrupt:
            logging.getLogger("asyncio").disabled = True  # it would mourn the cell's task at length
            raise
        except CellExecutionError as error:
            raise Failed(f"{path.stem}, cell {where}: {_plain(error.traceback)}") from None
        except (RuntimeError, TimeoutError) as error:  # the kernel died, or a cell took too long
            log.seek(0)
            said = log.read().decode("utf-8", "replace")
            raise Failed(f"{path.stem}, cell {where}: {_plain(f'{error}{chr(10)}{said}')}") from None


def _plain(text: str) -> str:
    """An error's text without colours and folders; the end of a long one."""
    lines = scrub(re.sub(r"\x1b\[[\d;]*m", "", text)).strip().splitlines()
    return "\n".join(lines if len(lines) <= 30 else ["...", *lines[-30:]])
