"""The preflight check: python -m utils.environment [--quick] [--json]

One screen: what this machine has, and for each chapter green (all of it runs here), yellow
(a part is missing, and what) or red (it cannot run), with the minutes it takes. The exit
status is 1 when something is red.

It runs where torch is missing or broken, and on an old Python, to be able to say so: only
the standard library, no syntax newer than Python 3.6, and torch in a process of its own.
What a chapter needs is read from its notebook: the gates it asks, its box, its minutes.
"""

import argparse
import glob
import json
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import time

from utils import environment

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REFERENCE = os.path.join(REPO, "recorded", "seconds", "reference.json")  # tools.dry_run writes it
GREEN, YELLOW, RED = "green", "yellow", "red"
WIDE = 78  # columns of the screen
LEAST_GIB = 7.5  # a machine sold with 8 GiB has a little less
CALIBRATION_S = 10
TORCH_TIMEOUT_S = 180
PORTS = ((8888, "JupyterLab"), (8000, "the site"))
# The last line of what it prints is the answer: torch may print before.
ASK_TORCH = """
import json, torch
from utils import environment
def ask(name):
    try:
        return list(environment.gate(name))
    except Exception as error:
        return [False, "Nobody can tell: asking for it raised %s." % type(error).__name__]
device = environment.pick_device()
print(json.dumps({"release": torch.__version__, "device": device.type, "name": environment._device_name(device),
                  "gates": {name: ask(name) for name in environment.GATES}}))
"""


def setup_command():
    """How torch gets here: the learner's edition has no Makefile, and Windows no make."""
    if platform.system() == "Windows":
        return "py -3.12 tools/setup_env.py lane"
    return "make lab" if os.path.exists(os.path.join(REPO, "Makefile")) else "python3 tools/setup_env.py lane"


# --- the machine ------------------------------------------------------------------------


def ask_torch():
    """What torch says in a process of its own, as ASK_TORCH prints it; {"error": sentence}
    where it cannot be imported, {} where it is not installed."""
    try:
        done = subprocess.run([sys.executable, "-c", ASK_TORCH], cwd=REPO, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=TORCH_TIMEOUT_S, env={**os.environ, "NO_COLOR": "1"})
    except subprocess.TimeoutExpired:
        return {"error": "torch did not answer within %d seconds" % TORCH_TIMEOUT_S}
    except OSError as error:
        return {"error": "Python could not be started (%s)" % error.strerror}
    if done.returncode == 0:
        return json.loads(done.stdout.decode(errors="replace").splitlines()[-1])
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    last = lines[-1] if lines else "it died with status %d" % done.returncode
    return {} if last == "ModuleNotFoundError: No module named 'torch'" else {
        "error": "torch cannot be imported (%s)" % textwrap.shorten(last, 90)}


def row(what, state, says, fix=""):
    """One thing of the machine. state: of the machine check; says: a sentence; fix: what to
    do, "" where there is nothing to do."""
    return {"what": what, "state": state, "says": says, "fix": fix}


def machine(asked):
    """The rows of the machine check. asked: what `ask_torch` returned."""
    compiler = environment.gate("compiler")
    return [_python(asked), _torch(asked),
            row("compiler", GREEN if compiler else YELLOW, compiler.reason, "" if compiler else environment.COMPILER_FIX),
            _device(asked), _cores(), _memory(), _cache(), _ports(), _wine()]


def _python(asked):
    release = asked.get("release", "")
    low, high = environment.PYTHONS.get(".".join(release.split(".")[:2]), environment.PYTHONS[""])
    says = "%s; the book runs on %d.%d to %d.%d%s." % (
        (platform.python_version(),) + low + high + (" with this torch" if release else "",))
    if environment.slow_guards() and (3, 13) <= high:
        return row("Python", YELLOW, "%s %s" % (says, environment.SLOW_GUARDS),
                   "install Python 3.13.1 or later")
    if low <= sys.version_info[:2] <= high:
        return row("Python", GREEN, says)
    return row("Python", RED, says, "install Python 3.12 and name it: make lab PYTHON=python3.12, "
               "or py -3.12 on Windows")


def _torch(asked):
    if "release" in asked:
        old = [int(n) for n in re.findall(r"\d+", asked["release"])[:2]] < [2, 5]
        return row("torch", RED if old else GREEN,
                   asked["release"] + (", older than the release that the book is about." if old else "."),
                   setup_command() if old else "")
    return row("torch", RED, asked.get("error", "torch is not installed in this Python") + ".", setup_command())


def _device(asked):
    if "device" in asked:
        return row("device", GREEN, "%s." % asked["name"])
    return row("device", YELLOW, "%s (cpu); torch will tell whether it can use a GPU." % environment.cpu_name())


def _cores():
    cores = os.cpu_count() or 1
    if cores > 1:
        return row("cores", GREEN, "%d." % cores)
    return row("cores", YELLOW, "One: timings of two threads are not possible, and two ranks share it.")


def _memory():
    try:
        gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2.0**30
    except (AttributeError, ValueError, OSError):
        return row("memory", GREEN, "Not known on this system; the book wants 8 GiB.")
    return row("memory", GREEN if gib >= LEAST_GIB else YELLOW, "%.0f GiB; the book wants 8 GiB." % gib,
               "" if gib >= LEAST_GIB else "close other programs, and set BOOK_EFFORT=test")


def _cache():
    folder = environment.cache_home()
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return row("cache", GREEN, "The cache folder can be written.")
    except OSError as error:
        return row("cache", YELLOW, "The cache folder cannot be written (%s): results are not kept." % error.strerror,
                   "set BOOK_CACHE to a folder that can be written")


def port_free(port):
    """Can a server of this machine listen on the port? 0 asks for any."""
    try:
        with socket.socket() as server:
            server.bind(("127.0.0.1", port))
            server.listen(1)
            with socket.create_connection(server.getsockname(), timeout=2):
                return True
    except OSError:
        return False


def _ports():
    if not port_free(0):
        return row("ports", YELLOW, "Programs of this machine cannot reach each other on 127.0.0.1.",
                   "let the firewall allow Python on the loopback interface")
    taken = ["%d (%s)" % port for port in PORTS if not port_free(port[0])]
    return row("ports", GREEN, "Taken: %s; another one is used." % ", ".join(taken) if taken else
               "%s are free." % " and ".join("%d" % port for port, _ in PORTS))


def _wine():
    if platform.system() == "Windows":
        return row("Wine", GREEN, "Not needed on Windows.")
    if not environment.is_x86():
        return row("Wine", GREEN, "Not needed: the Windows program of chapter 35 is for x86-64.")
    if environment.find_wine():
        return row("Wine", GREEN, "It is here.")
    return row("Wine", YELLOW, "Not found; only the Windows program of chapter 35 needs it.",
               "Debian, Ubuntu: apt install g++-mingw-w64-x86-64 wine64 wine")


# --- the chapters -----------------------------------------------------------------------


def chapters():
    """{number: what its notebook says}: title, gates that its cells ask, whether its box
    names a compiler, whether its processes talk to each other, minutes."""
    found = {}
    for path in sorted(glob.glob(os.path.join(REPO, "chapters", "[0-9][0-9]_*.ipynb"))):
        with open(path, encoding="utf-8") as file:
            notebook = json.load(file)
        book = notebook["metadata"].get("book", {})
        if "minutes_reading" not in book:  # the scoreboard teaches nothing
            continue
        text, code = ("\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind)
                      for kind in ("markdown", "code"))
        found[os.path.basename(path)[:2]] = {
            "title": re.search(r"^# (.+)$", text, re.M).group(1),
            "gates": sorted(set(re.findall(r'\bgate\("(\w+)"', code))),
            "compiler": "C++ compiler" in text.split("\n## ")[0],
            "ranks": "init_process_group" in code,
            "reading": book["minutes_reading"], "exercises": book["minutes_exercises"]}
    return found


def committed_gates():
    """((major, minor), {gate: can it do that?}) of the newest torch that the book pins, from
    recorded/gates/; ((0, 0), {}) without any."""
    newest = ((0, 0), {})
    for pins in glob.glob(os.path.join(REPO, "constraints", "torch-*.txt")):
        path = os.path.join(REPO, "recorded", "gates", os.path.basename(pins)[:-len("txt")] + "json")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            answers = {name: answer["ok"] for name, answer in json.load(file).items()}
        newest = max(newest, (_version(os.path.basename(path)), answers), key=lambda found: found[0])
    return newest


def _version(text):
    """(major, minor)"""
    return tuple(int(n) for n in re.findall(r"\d+", text)[:2])


def missing(chapter, asked, rows, committed):
    """(state, [(reason, fix)]) of one chapter on this machine. asked: of `ask_torch`; rows:
    of `machine`; committed: of `committed_gates`."""
    stop = [(found["says"], found["fix"]) for found in rows if found["state"] == RED]
    if stop:
        return RED, stop
    has = {found["what"]: found for found in rows}
    answers = {name: asked["gates"][name] for name in chapter["gates"] if name in asked["gates"]}
    wanted = [name for name in ("ports",) if chapter["ranks"]] + ["memory"]
    if chapter["compiler"]:
        wanted.insert(0, "compiler")
    reasons = [(has[name]["says"], has[name]["fix"]) for name in wanted if has[name]["state"] != GREEN]
    without = [says for says, _ in reasons if says == has["compiler"]["says"]]
    for name, (ok, reason) in answers.items():
        # What the book's own torch cannot do either is no fault of this machine: the chapter
        # shows it. A gate without a committed answer asks for a part of the machine.
        if not ok and committed[1].get(name, True) and reason not in without:
            newer = name in committed[1] and _version(asked["release"]) < committed[0]
            reasons.append((reason, "torch %d.%d (%s)" % (committed[0] + (setup_command(),)) if newer else ""))
    # A chapter that asks has another way; one that does not ask stops at its first compilation.
    stops = without and not any(reason in without for _, reason in answers.values())
    return RED if stops else YELLOW if reasons else GREEN, reasons


# --- how fast is this machine? ----------------------------------------------------------

PROGRAM = """#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
int main() { std::map<std::string, std::vector<int>> m; m["a"].push_back(1); std::regex r("a+");
  std::cout << m.size() << std::regex_match("aa", r); }
"""


def python_round():
    """A fixed piece of work for the interpreter: names, dicts, calls, as tracing is."""
    seen = {}
    for number in range(20000):
        seen[str(number % 997)] = seen.get(str(number % 991), 0) + number
    return seen


def compiler_round(compiler, folder):
    """A fixed piece of work for the C++ compiler: headers, mostly, as Inductor's kernels."""
    source = os.path.join(folder, "round.cpp")
    if not os.path.exists(source):
        with open(source, "w") as file:
            file.write(PROGRAM)
    subprocess.run([compiler, "-O2", "-c", source, "-o", os.path.join(folder, "round.o")], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)


def calibrate(seconds=CALIBRATION_S):
    """{work: median seconds of a round} of what chapters wait for most: Python, and, where
    there is a compiler other than cl, C++. It takes about the given seconds."""
    work = {"python": python_round}
    compiler = environment.find_compiler()
    with tempfile.TemporaryDirectory() as folder:
        if compiler and platform.system() != "Windows" and environment.gate("compiler"):
            work["compiler"] = lambda: compiler_round(compiler, folder)
        return {name: _median_round(run, seconds / len(work)) for name, run in work.items()}


def _median_round(run, seconds):
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def reference():
    """The seconds that chapters took on the reference machine, with its calibration."""
    try:
        with open(REFERENCE, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {"calibration": {}, "chapters": {}}


def slowdown(here, there):
    """How many times as long as the reference machine this one takes: the mean over what
    both did. 1.0 where they have nothing in common."""
    ratios = [here[name] / there[name] for name in here if name in there]
    return sum(ratios) / len(ratios) if ratios else 1.0


# --- the screen -------------------------------------------------------------------------


def report(quick=False):
    """All that the check finds, as a dict of plain values. quick: without calibration."""
    asked = ask_torch()
    rows, recorded, committed = machine(asked), reference(), committed_gates()
    measured = calibrate() if recorded["calibration"] and not quick else {}
    factor = slowdown(measured, recorded["calibration"])
    found = []
    for number, chapter in chapters().items():
        state, reasons = missing(chapter, asked, rows, committed)
        took = recorded["chapters"].get(number)
        run = None if took is None else round(took["seconds"] * factor / 60.0, 1)
        minutes = {"reading": chapter["reading"], "exercises": chapter["exercises"], "run": run}
        found.append({"chapter": number, "title": chapter["title"], "state": state, "minutes": minutes,
                      "reasons": [{"reason": reason, "fix": fix} for reason, fix in reasons]})
    states = [part["state"] for part in rows + found]
    return {"ok": RED not in states, "calibrated": bool(measured), "slowdown": round(factor, 2),
            "calibration": measured, "machine": rows, "chapters": found}


def lines(found):
    """The screen as lines."""
    for part in found["machine"]:
        yield from _wrapped("%-7s %-9s " % (part["state"], part["what"]), _with_fix(part["says"], part["fix"]))
    yield ""
    yield "%-7s %-35s %s" % ("", "chapter", "minutes = read + exercises + run")
    notes = {}
    for chapter in found["chapters"]:
        marks = [notes.setdefault((r["reason"], r["fix"]), "abcdefghijklmnopqrstuvwxyz"[len(notes) % 26])
                 for r in chapter["reasons"]]
        yield ("%-7s %s %-32s %s  %s" % (chapter["state"], chapter["chapter"], chapter["title"][:32],
                                         _sum(chapter["minutes"]), " ".join(marks))).rstrip()
    yield _how_fast(found)
    newer = {}  # a newer torch mends many things at once: it is named once
    for (reason, fix), mark in notes.items():
        if fix.startswith("torch "):
            newer.setdefault(fix, []).append(mark)
        yield from _wrapped("%s  " % mark, reason if fix.startswith("torch ") else _with_fix(reason, fix))
    for fix, marks in newer.items():
        yield from _wrapped("", "To do for %s: %s." % (", ".join(marks), fix))
    yield ""
    yield "This machine can run the book." if found["ok"] else "Mend what is red, then run this again."


def _sum(minutes):
    run = minutes["run"] and max(1, round(minutes["run"]))
    return "%7d = %2d + %2d + %2s" % (minutes["reading"] + minutes["exercises"] + (run or 0), minutes["reading"],
                                      minutes["exercises"], run or "?")


def _with_fix(says, fix):
    return says if not fix or fix in says else "%s To do: %s." % (says, fix)


def _wrapped(head, text):
    return textwrap.wrap(text, WIDE, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False)


def _how_fast(found):
    if not any(chapter["minutes"]["run"] for chapter in found["chapters"]):
        return "(run: ? is not timed yet)"
    if not found["calibrated"]:
        return "(run: as on the reference machine)"
    return "(run: this machine takes about %.1f times as long as the reference machine)" % found["slowdown"]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m utils.environment", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the calibration of ten seconds")
    parser.add_argument("--json", action="store_true", help="the same as JSON, for scripts")
    options = parser.parse_args(arguments)
    found = report(options.quick)
    print(json.dumps(found, indent=1) if options.json else "\n".join(lines(found)))
    return 0 if found["ok"] else 1
