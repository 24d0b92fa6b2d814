"""What changed since the release: python -m tools.gates [--write]

Prints the gates of utils.environment that answer otherwise on this torch than on 2.5.1.
--write keeps this torch's answers in recorded/gates/, which the page "Since 2.5" is made
from: building the site needs no torch.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from tools.chapters import REPO
from utils import environment
from utils.recorded import numbers, replace_file
from utils.untrusted import read_json

FOLDER = REPO / "recorded" / "gates"
RELEASE = "2.5.1"
# They ask what is installed or plugged in, not what a version of torch does.
OF_THE_MACHINE = {"compiler", "inductor", "cudnn_attention", "cudnn_preferred", "package_build", "windows_program"}


def path(release: str) -> Path:
    return FOLDER / f"torch-{release}.json"


def answers() -> dict[str, dict]:
    """Gate -> {"ok": bool, "reason": sentence} of this torch, asked as under Linux with a C++
    compiler on an x86 CPU with AVX2, wherever this runs: what differs is then the version's
    doing."""
    import torch

    linux = SimpleNamespace(system=lambda: "Linux", machine=lambda: "x86_64")
    compiles = {"compiler": environment.Gate(True, "A C++ compiler works.")}
    with (patch.object(environment, "pick_device", lambda: torch.device("cpu")),
          patch.object(environment, "platform", linux),
          patch.object(environment, "_gates", compiles),
          patch.object(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")):
        asked = {name: ask() for name, ask in environment.GATES.items() if name not in OF_THE_MACHINE}
    return {name: {"ok": found.ok, "reason": found.reason} for name, found in asked.items()}


def load() -> dict[str, dict]:
    """Release -> its committed answers, oldest first."""
    found = {file.stem.removeprefix("torch-"): read_json(file) for file in FOLDER.glob("torch-*.json")}
    return dict(sorted(found.items(), key=lambda item: numbers(item[0])))


def changed(old: dict, new: dict) -> list[str]:
    """The gates that both answer, and not alike."""
    return [name for name in old if name in new and new[name] != old[name]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep this torch's answers in recorded/gates/")
    options = parser.parse_args()
    import torch

    release, found = torch.__version__.split("+")[0], answers()
    if options.write:
        FOLDER.mkdir(parents=True, exist_ok=True)
        replace_file(path(release), json.dumps(found, indent=1) + "\n")
        return
    old = load()[RELEASE]
    names = changed(old, found)
    print(f"{len(names)} of {len(found)} gates answer otherwise on torch {release} than on {RELEASE}.")
    for name in names:
        for version, answer in ((RELEASE, old[name]), (release, found[name])):
            print(textwrap.fill(answer["reason"], 76, initial_indent=f"{version:8}", subsequent_indent=" " * 8))
        print()


if __name__ == "__main__":
    main()
