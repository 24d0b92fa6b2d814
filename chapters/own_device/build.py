"""Build the device of this folder once for each torch, Python and state of its sources."""

import atexit
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from utils.environment import cache_home
from utils.report import scrub

HERE = Path(__file__).resolve().parent
SOURCES = ("setup.py", "torch_own/__init__.py", "torch_own/device.cpp")
TIMEOUT_S = 600


class BuildError(RuntimeError):
    """The compiler, or what it needs, failed; the text is the end of what it said."""


@functools.cache
def build() -> str:
    """The folder with the built package: put it on PYTHONPATH and `import torch` loads it.

    It lies in the book's cache; the first call for a torch compiles it, with a progress
    line. Two processes may build at once. Raises BuildError.
    """
    import torch

    digest = hashlib.sha256(f"{torch.__version__} {sys.version} {platform.machine()}".encode())
    for source in SOURCES:
        digest.update((HERE / source).read_bytes())
    base = _folder()
    final = base / f"{torch.__version__}-{digest.hexdigest()[:12]}"
    if not final.is_dir():
        print(f"Building the device once for torch {torch.__version__} (about 20 s) ...", flush=True)
        _build(base, final)
    return str(final)


def _build(base: Path, final: Path) -> None:
    with tempfile.TemporaryDirectory(dir=base, prefix="new-", ignore_cleanup_errors=True) as made:
        Path(made, "torch_own").mkdir()
        for source in SOURCES:
            shutil.copy(HERE / source, Path(made, source))
        # What pip would do with this folder, without a wheel on the way: modules, library
        # and, beside them, the entry point.
        command = [sys.executable, "setup.py", "build", "--build-lib", "site", "egg_info", "--egg-base", "site"]
        try:
            done = subprocess.run(command, cwd=made, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise BuildError(f"The build did not finish within {TIMEOUT_S} s.") from None
        if done.returncode != 0:
            raise BuildError(scrub(done.stdout.decode(errors="replace")[-2000:]))
        try:
            os.rename(Path(made, "site"), final)  # whole or not at all
        except OSError:
            if not final.is_dir():  # else another process was faster
                raise


def _folder() -> Path:
    """Where builds are kept; this process's own folder where the cache cannot be written."""
    folder = Path(cache_home(), "own_device")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        # Not a fixed place under /tmp: what lies there could be somebody else's code.
        folder = Path(tempfile.mkdtemp(prefix="own_device-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder
