"""Fill a folder with what a room without internet installs from:

    python -m tools.wheelhouse [--system linux|windows|macos] [--python 3.12] [--index URL]

downloads the default lane's pins as wheels into _build/wheelhouse/, also for another
system or Python than this one. Several systems may share the folder.
tools/setup_env.py installs from it where it stands beside START.md as wheelhouse/. Needs
no torch.
"""

import argparse
import platform
import re
import subprocess
import sys

from packaging.markers import Marker

from tools.chapters import REPO, stop
from tools.setup_env import DEFAULT
from utils.environment import PYTHONS
from utils.report import memory

FOLDER = REPO / "_build" / "wheelhouse"
# What a wheel may be built for. pip itself takes older macOS versions from the one named.
PLATFORMS = {
    "linux": [*(f"manylinux_2_{minor}_x86_64" for minor in range(28, 4, -1)), "manylinux2014_x86_64",
              "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"],
    "windows": ["win_amd64"],
    "macos": ["macosx_14_0_arm64"],
}
MARKERS = {
    "linux": {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"},
    "windows": {"os_name": "nt", "sys_platform": "win32", "platform_system": "Windows", "platform_machine": "AMD64"},
    "macos": {"os_name": "posix", "sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"},
}
OLDEST, NEWEST = 0, 99  # patches of a Python
GPU = ("cuda-", "nvidia-", "triton")  # what torch's build for the CPU does not ask for


def wanted(pins: str, system: str, python: str, cpu: bool) -> list[str]:
    """The pins of a constraints file that hold for a system and a Python such as "3.12.0".
    pip would judge their markers by the machine it runs on."""
    where = {**MARKERS[system], "python_version": python.rpartition(".")[0], "python_full_version": python,
             "implementation_name": "cpython", "platform_python_implementation": "CPython"}
    found = []
    for line in pins.splitlines():
        pin, _, marker = line.partition(";")
        if "==" in pin and not line.startswith("#") and (not marker or Marker(marker).evaluate(where)):
            found.append(pin.strip())
    return [pin for pin in found if not (cpu and pin.startswith(GPU))]


def arguments(pins: list[str], system: str, python: str, index: str) -> list[str]:
    """What pip is asked for."""
    target = [part for tag in PLATFORMS[system] for part in ("--platform", tag)]
    return ["download", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--dest", str(FOLDER),
            "--implementation", "cp", "--python-version", python, *target,
            *(["--extra-index-url", index] if index else []), *pins]


def download(command: list[str]):
    """Run pip; end with what it says when it fails."""
    done = subprocess.run([sys.executable, "-m", "pip", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if line.startswith("ERROR")]
        stop("The wheelhouse is not complete:\n" + "\n".join(errors or done.stdout.splitlines()[-5:]))


def checked(options):
    """(python, for the CPU alone?) of the options; ends with a sentence on what cannot be."""
    python = options.python or "%d.%d" % sys.version_info[:2]
    low, high = PYTHONS[""]
    if not (re.fullmatch(r"3\.\d+", python) and low <= tuple(map(int, python.split("."))) <= high):
        stop("--python %s: the book runs on %d.%d to %d.%d." % (python, *low, *high), 2)
    cpu = options.index.rstrip("/").endswith("/cpu")
    if options.index and not cpu:
        # The pins name the CUDA packages of the usual build.
        stop("Torch comes from the usual index or from one of CPU builds, whose address ends in /cpu.", 2)
    return python, cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = {"Windows": "windows", "Darwin": "macos"}.get(platform.system(), "linux")
    parser.add_argument("--system", choices=PLATFORMS, default=here)
    parser.add_argument("--python", default="", help="the room's Python, such as 3.12 (this one's when not given)")
    parser.add_argument("--index", default="", help="another index for torch: one of CPU builds")
    options = parser.parse_args()
    python, cpu = checked(options)
    text = (REPO / "constraints" / f"torch-{DEFAULT}.txt").read_text(encoding="utf-8")
    # Some pins depend on the patch of a Python, which the machines of a room need not share.
    oldest, newest = (wanted(text, options.system, f"{python}.{patch}", cpu) for patch in (OLDEST, NEWEST))
    print(f"Downloading {len({*oldest, *newest})} packages for {options.system}, Python {python} ...", flush=True)
    torch = [pin for pin in oldest if pin.startswith("torch==")]
    rest = [pin for pin in oldest if pin not in torch]
    later = [pin for pin in newest if pin not in oldest]
    download(arguments(torch, options.system, f"{python}.{OLDEST}", options.index))  # another index has torch alone
    for pins, patch in ((rest, OLDEST), (later, NEWEST)):
        if pins:
            download(arguments(pins, options.system, f"{python}.{patch}", ""))
    size = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"_build/wheelhouse/ holds {len(list(FOLDER.iterdir()))} wheels, {memory(size)}: "
          "copy it beside START.md as wheelhouse/.")


if __name__ == "__main__":
    main()
