"""Make an environment of the book: python tools/setup_env.py lane 2.13.0 | site

Standard library only, readable by an old Python so that it can say that it is too old.
A lane is .venv/torch-<version>: the pins of constraints/torch-<version>.txt, or for any
other version or build (--index) the default lane's pins without torch's own lines. Where a folder wheelhouse/
stands beside tools/, or --wheels names one, it installs from there and asks no index.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import venv

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, REPO)  # the book is not installed yet
from utils.environment import PYTHONS  # noqa: E402

DEFAULT = "2.13.0"
TORCH_OWN = "# torch's own lines"


def fail(sentence):
    print(sentence, file=sys.stderr)
    sys.exit(2)


def check_python(release):
    low, high = PYTHONS.get(".".join(release.split(".")[:2]), PYTHONS[""])
    if not low <= sys.version_info[:2] <= high:
        fail("This is Python %d.%d; %s runs on %d.%d to %d.%d: %s."
             % (sys.version_info[:2] + ("torch " + release if release else "the book",) + low + high
                + ("start this with py -3.12" if os.name == "nt" else "name another with PYTHON=python3.12",)))


def pins(release, folder, other_build=False):
    """The constraints file of a torch version. other_build: of another index than the usual
    one, whose torch brings other libraries."""
    own = os.path.join(REPO, "constraints", "torch-%s.txt" % release)
    if not os.path.exists(own):
        own = os.path.join(REPO, "constraints", "torch-%s.txt" % DEFAULT)
    elif not other_build:
        return own
    with open(own, encoding="utf-8") as file:
        text = file.read().split(TORCH_OWN)[0]
    path = os.path.join(folder, "constraints.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "torch==%s\n" % release)
    return path


def wheels(named):
    """pip's arguments for a folder of wheels: the named one, else wheelhouse/; none without."""
    folder = os.path.abspath(named) if named else os.path.join(REPO, "wheelhouse")
    if os.path.isdir(folder):
        print("Installing from %s, without the network" % os.path.basename(folder), flush=True)
        return ["--no-index", "--find-links", folder]
    if named:
        fail("There is no folder %s." % named)
    return []


def python_of(folder):
    return os.path.join(folder, "Scripts" if os.name == "nt" else "bin", "python")


def installed(folder):
    """torch's version in an environment, with its build: 2.13.0+cu126."""
    asked = subprocess.run([python_of(folder), "-c", "from importlib.metadata import version; print(version('torch'))"],
                           stdout=subprocess.PIPE, check=True)
    return asked.stdout.decode().strip()


def pip(folder, *arguments):
    command = [python_of(folder), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"] + list(arguments)
    env = None
    if "--no-index" in arguments:  # a folder alone: what pip is set to elsewhere does not count
        env = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        env["PIP_CONFIG_FILE"] = os.devnull
    start = time.time()
    with tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(command, cwd=REPO, env=env, stdout=log, stderr=subprocess.STDOUT)
        except OSError as error:
            fail("pip could not be started in %s: %s" % (os.path.relpath(folder, REPO), error))
        try:
            while process.poll() is None:
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    print("      %.0f s, still working" % (time.time() - start), flush=True)
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
        if process.returncode == 0:
            return
        log.seek(0)
        text = log.read().decode(errors="replace")
    lines = [line for line in text.splitlines() if line.startswith("ERROR")]
    wanted = re.search(r"No matching distribution found for (\S+)", text)
    if re.search(r"Temporary failure in name resolution|Failed to establish a new connection|"
                 r"NameResolutionError|Network is unreachable|nodename nor servname", text):
        fail("The packages could not be downloaded: there is no network, or the package index is out of reach.")
    if "--no-index" in arguments and (wanted or "Cannot install" in text):  # what pip says of a pin that it lacks
        named = re.search(r"(?:found for|Cannot install) ([\w.-]+[<>=]\S+)", text)
        fail("The wheelhouse lacks %s for this system and Python %d.%d: python -m tools.wheelhouse fills one."
             % ((named.group(1) if named else "packages",) + sys.version_info[:2]))
    if wanted:
        fail("There is no package %s for this system and Python %d.%d." % ((wanted.group(1),) + sys.version_info[:2]))
    fail("pip could not install the packages:\n" + "\n".join(lines or text.splitlines()[-15:]))


def make(name, describe, *steps):
    """The environment, made anew: pip keeps a torch that it finds, of whatever build or Python."""
    folder = os.path.join(REPO, ".venv", name)
    print("Setting up %s in .venv/%s" % (describe, name), flush=True)
    try:
        # With links, as python -m venv: a copied interpreter may not find its own library.
        venv.create(folder, with_pip=True, clear=True, symlinks=os.name != "nt")
    except subprocess.CalledProcessError as error:
        fail("No environment could be made in .venv/%s: %s. On Debian and Ubuntu: apt install python3-venv."
             % (name, error))
    except OSError as error:
        fail("No environment could be made in .venv/%s: %s." % (name, error))
    for number, (what, arguments) in enumerate(steps, 1):
        print("  %d/%d %s ..." % (number, len(steps), what), flush=True)
        pip(folder, *arguments(folder))
    open(os.path.join(folder, ".complete"), "w").close()
    return folder


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # pip ends with us
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["lane", "site"])
    parser.add_argument("torch", nargs="?", default=DEFAULT)
    parser.add_argument("--index", default="")
    parser.add_argument("--wheels", default="", help="install a lane from this folder, without the network")
    options = parser.parse_args()
    if options.kind == "site":
        check_python("")
        constraints = os.path.join("constraints", "site.txt")
        make("site", "the site's tools (no torch, about a minute)",
             ("Jupyter Book and the browser tests", lambda folder: ["-e", ".[site,browser]", "-c", constraints]))
        return
    if not re.match(r"^\d+\.\d+\.\d+$", options.torch):
        fail("TORCH=%s is not a version: give three numbers, such as TORCH=2.5.1." % options.torch)
    if tuple(map(int, options.torch.split("."))) < (2, 5, 1):
        fail("TORCH=%s is older than the release this book is about: take 2.5.1 or newer." % options.torch)
    check_python(options.torch)
    # Beside the usual index: it has what torch needs, and pip prefers 2.13.0+cpu to 2.13.0.
    local = wheels(options.wheels)
    index = local or (["--extra-index-url", options.index] if options.index else [])
    other = bool(options.index) and not local

    def constraints(folder):
        return ["-c", pins(options.torch, folder, other)]

    folder = make("torch-" + options.torch, "torch " + options.torch,
                  ("torch %s (may be large)" % options.torch,
                   lambda folder: ["torch==" + options.torch] + constraints(folder) + index),
                  ("the book's packages", lambda folder: ["-r", "requirements.txt"] + constraints(folder) + local))
    if other:  # pip takes the usual build where that index has none of this version
        print("  installed: torch " + installed(folder), flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        fail("Interrupted; the same command starts again.")
