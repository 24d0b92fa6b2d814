"""One browser and one server for all browser tests."""

import os
import shutil
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tools.site import server

sys.path.insert(0, str(Path(__file__).parent))
import checks  # noqa: E402

MISSING = "Chromium was not found: apt install chromium, or name the program in CHROMIUM."


def find_chromium():
    names = [os.environ["CHROMIUM"]] if os.environ.get("CHROMIUM") else [
        "chromium", "chromium-browser", "google-chrome"]
    return next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="session")
def browser():
    program = find_chromium()
    if program is None:
        pytest.fail(MISSING, pytrace=False)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=checks.BROWSER)
        yield started
        started.close()


@contextmanager
def served(folder):
    with server(0, folder) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/"
        running.shutdown()


@pytest.fixture(scope="session")
def serve():
    """with serve(folder) as address: ..."""
    return served
