"""What several test files use."""

import os

os.environ["BOOK_EFFORT"] = "test"
os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # read when torch is imported

import subprocess
import sys
from pathlib import Path

import pytest
import setuptools  # noqa: F401  torch brings it in later, when it may find the standard library's distutils first

import tools  # noqa: F401  before jsonschema, which it makes quick to import

REPO = Path(__file__).resolve().parent.parent


@pytest.fixture
def repo():
    return REPO


@pytest.fixture
def python():
    """Run Python code in a new interpreter: python("print(1)") -> CompletedProcess."""
    def run(code, timeout=120, **env):
        env = {k: v for k, v in {**os.environ, **env}.items() if v is not None}
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              timeout=timeout, env=env, cwd=REPO)
    return run


@pytest.fixture
def marked():
    """Processes alive that carry an environment variable: marked("NAME", "value")."""
    import psutil

    def find(name, value):
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(name) == value and process.status() != "zombie":
                    found.append(process.pid)
            except (psutil.Error, OSError):
                pass
        return found
    return find
