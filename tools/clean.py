"""Remove all that the book wrote: environments, site, caches, results (python tools/clean.py).

Committed files stay. Standard library only: it also removes the environment it could
have run in.
"""

import os
import shutil
import sys

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, REPO)
from utils.environment import cache_home, temporary_home  # noqa: E402


def targets():
    yield cache_home()
    yield temporary_home()
    for name in (".venv", "_build", "build", "pytorch_2_5_measured.egg-info"):
        yield os.path.join(REPO, name)
    for folder, names, _ in os.walk(REPO):
        names[:] = [n for n in names if n not in (".git", ".venv", "_build")]
        for name in ("__pycache__", ".ipynb_checkpoints", ".pytest_cache"):
            if name in names:
                yield os.path.join(folder, name)


def main():
    left = False
    for path in list(targets()):
        if os.path.isdir(path):
            print("removing", os.path.relpath(path, REPO) if path.startswith(REPO) else path)
            shutil.rmtree(path, ignore_errors=True)
            if os.path.exists(path):
                print("could not remove all of", path, file=sys.stderr)
                left = True
    return int(left)


if __name__ == "__main__":
    sys.exit(main())
