"""The preflight check: what it says of a machine, of each chapter, and how long that takes."""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from tools import chapters, notebook_form
from utils import environment, preflight
from utils.environment import Gate
from utils.preflight import GREEN, RED, YELLOW, row

TEACHING = notebook_form.teaching()
GOOD = {"release": "2.13.0", "device": "cpu", "name": "A CPU", "gates": {name: [True, "Yes."] for name in environment.GATES}}
COMMITTED = ((2, 13), {"new": True, "never": False})


def rows(**states):
    """The machine's rows, green but for those named: compiler="No compiler."."""
    names = ("Python", "torch", "compiler", "device", "cores", "memory", "cache", "ports", "Wine")
    return [row(name, YELLOW if name in states else GREEN, states.get(name, "Fine."), "mend it" if name in states else "")
            for name in names]


def chapter(*gates, compiler=False, ranks=False):
    return {"title": "T", "gates": list(gates), "compiler": compiler, "ranks": ranks, "reading": 5, "exercises": 9}


def judged(found, gates=(), release="2.13.0", **states):
    return preflight.missing(found, {"release": release, "gates": dict(gates)}, rows(**states), COMMITTED)


# --- the machine ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked():
    """What torch says here, in a process of its own."""
    return preflight.ask_torch()


@pytest.mark.parametrize("name", environment.GATES)
def test_every_gate_answers_with_a_sentence(name, asked):
    ok, reason = asked["gates"][name]
    assert isinstance(ok, bool) and not reason.startswith("Nobody can tell"), reason
    assert re.fullmatch(r"[A-Z].*\.", reason, re.S) or reason[0].isalpha() and reason.endswith("."), reason


def test_this_machine(asked, monkeypatch, capsys):
    monkeypatch.setattr(preflight, "ask_torch", lambda: asked)
    status, shown = preflight.main(["--quick"]), capsys.readouterr().out
    lines = shown.splitlines()
    assert status == 0 and lines[-1] == "This machine can run the book.", shown
    assert len(lines) <= 50 and max(map(len, lines)) <= 80  # one screen
    told = [line for line in lines if re.match(r"(green|yellow) +\d\d ", line)]
    assert [line.split()[1] for line in told] == [path.stem[:2] for path in TEACHING]


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A folder to put on the path whose torch raises."""
    folder = tmp_path_factory.mktemp("broken")
    (folder / "torch.py").write_text("raise ImportError('libtorch is not there')")
    return folder


def check(repo, *words, env=None):
    """The check as a script, as where nothing is installed."""
    return subprocess.run([sys.executable, "utils/environment.py", "--quick", *words], cwd=repo, capture_output=True,
                          text=True, env={**os.environ, **(env or {})})


def test_a_broken_torch_is_red_with_its_reason(repo, broken):
    done = check(repo, env={"PYTHONPATH": str(broken)})
    assert done.returncode == 1 and "Traceback" not in done.stdout + done.stderr
    assert "torch cannot be imported (ImportError: libtorch is not there)" in done.stdout
    assert "setup_env.py lane" in done.stdout or "make lab" in done.stdout
    assert not re.search(r"^(green|yellow) +\d\d ", done.stdout, re.M)


def test_json_is_the_same_for_scripts(repo, broken):
    done = check(repo, "--json", env={"PYTHONPATH": str(broken)})
    found = json.loads(done.stdout)
    assert done.returncode == 1 and found["ok"] is False and found["calibrated"] is False
    assert {part["state"] for part in found["chapters"]} == {RED}
    assert [part["chapter"] for part in found["chapters"]] == [path.stem[:2] for path in TEACHING]
    for part in found["chapters"]:
        assert set(part) == {"chapter", "title", "state", "minutes", "reasons"} and part["reasons"][0]["fix"]
    assert {part["what"] for part in found["machine"]} == {
        "Python", "torch", "compiler", "device", "cores", "memory", "cache", "ports", "Wine"}


def test_a_torch_that_is_not_there_and_one_that_dies(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in Jupyter; from 3.13 on Python colours what it says
    for code, found in [("import torch_that_is_not_there", "error"), ("import os; os._exit(3)", "error"),
                        ("raise ModuleNotFoundError(\"No module named 'torch'\")", None)]:
        monkeypatch.setattr(preflight, "ASK_TORCH", code)
        assert list(preflight.ask_torch()) == ([found] if found else [])
    monkeypatch.setattr(preflight, "ASK_TORCH", "import os; os._exit(3)")
    assert "status 3" in preflight.ask_torch()["error"]
    monkeypatch.setattr(preflight, "TORCH_TIMEOUT_S", 0.5)
    monkeypatch.setattr(preflight, "ASK_TORCH", "import time; time.sleep(60)")
    assert "did not answer" in preflight.ask_torch()["error"]


@pytest.mark.parametrize("version, release, state", [
    ((3, 9, 2), "", RED), ((3, 11, 0), "", GREEN), ((3, 13, 0), "2.5.1", RED), ((3, 13, 0), "2.13.0", YELLOW),
    ((3, 13, 1), "2.13.0", GREEN), ((3, 14, 0), "2.13.0", RED)])
def test_the_python(version, release, state, monkeypatch):
    monkeypatch.setattr(sys, "version_info", version)
    found = preflight._python({"release": release} if release else {})
    assert found["state"] == state and bool(found["fix"]) == (state != GREEN)
    assert (environment.SLOW_GUARDS in found["says"]) == (state == YELLOW)


@pytest.mark.parametrize("asked, state", [
    ({}, RED), ({"error": "torch cannot be imported (x)"}, RED), ({"release": "2.4.1"}, RED), ({"release": "2.5.1"}, GREEN)])
def test_the_torch(asked, state):
    found = preflight._torch(asked)
    assert found["state"] == state and bool(found["fix"]) == (state == RED) and found["says"].endswith(".")


def test_what_a_small_machine_is_told(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert preflight._cores()["state"] == YELLOW
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**20}.get, raising=False)
    assert preflight._memory()["state"] == YELLOW and preflight._memory()["says"].startswith("4 GiB")
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**21}.get)
    assert preflight._memory()["state"] == GREEN
    monkeypatch.setattr(environment, "find_wine", lambda: None)
    if sys.platform != "win32":
        assert preflight._wine()["state"] == YELLOW and "apt install" in preflight._wine()["fix"]


def test_a_cache_folder_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "file" / "cache"))
    assert preflight._cache()["state"] == YELLOW and "BOOK_CACHE" in preflight._cache()["fix"]
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    assert preflight._cache()["state"] == GREEN


def test_ports(monkeypatch):
    import socket

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert not preflight.port_free(port)
        monkeypatch.setattr(preflight, "PORTS", ((port, "x"),))
        assert preflight._ports()["says"] == f"Taken: {port} (x); another one is used."
    assert preflight.port_free(port)
    monkeypatch.setattr(preflight, "port_free", lambda port: False)
    assert preflight._ports()["state"] == YELLOW


# --- the chapters -----------------------------------------------------------------------


def test_what_chapters_need_is_read_from_them():
    found = preflight.chapters()
    assert list(found) == [path.stem[:2] for path in TEACHING]
    assert found["70"]["ranks"] and not found["20"]["ranks"]
    assert found["20"]["compiler"] and not found["10"]["compiler"]
    assert "windows_program" in found["35"]["gates"] and found["00"]["gates"] == ["compiler", "inductor"]
    for number, part in found.items():
        assert set(part["gates"]) <= set(environment.GATES), number
        book = chapters.read(next(p for p in TEACHING if p.stem[:2] == number)).metadata["book"]
        assert (part["reading"], part["exercises"]) == (book["minutes_reading"], book["minutes_exercises"])


def test_green_needs_nothing():
    assert judged(chapter("new", compiler=True, ranks=True), {"new": [True, "Yes."]}) == (GREEN, [])
    # What is missing is not what this chapter needs.
    assert judged(chapter("new"), {"new": [True, "Yes."]}, compiler="None.", ports="None.") == (GREEN, [])


def test_a_gate_that_says_no():
    no = {"new": [False, "Not here."], "never": [False, "In no version."], "part": [False, "No such GPU."]}
    assert judged(chapter("part"), no) == (YELLOW, [("No such GPU.", "")])
    # What the book's own torch says no to as well is what the chapter shows.
    assert judged(chapter("never"), no) == (GREEN, [])
    assert judged(chapter("new"), no) == (YELLOW, [("Not here.", "")])
    state, [(reason, fix)] = judged(chapter("new"), no, release="2.5.1")
    assert (state, reason) == (YELLOW, "Not here.") and fix.startswith("torch 2.13 (")


def test_without_a_compiler():
    """A chapter that asks has another way, one that does not stops."""
    says = "No compiler."
    assert judged(chapter("new", compiler=True), {"new": [True, "Yes."]}, compiler=says) == (RED, [(says, "mend it")])
    assert judged(chapter("part", compiler=True), {"part": [False, says]}, compiler=says) == (YELLOW, [(says, "mend it")])


def test_what_all_chapters_share():
    assert judged(chapter(ranks=True), ports="No loopback.") == (YELLOW, [("No loopback.", "mend it")])
    assert judged(chapter(), memory="2 GiB.") == (YELLOW, [("2 GiB.", "mend it")])
    stopped = [row("torch", RED, "torch is not installed.", "make lab"), *rows()]
    assert preflight.missing(chapter(), {}, stopped, COMMITTED) == (RED, [("torch is not installed.", "make lab")])


def test_the_books_own_gates_are_those_of_its_torch():
    release, answers = preflight.committed_gates()
    assert release == (2, 13) and answers["gloo_recorder"] and not answers["inline_flag"]
    assert "compiler" not in answers  # a part of the machine


# --- minutes ------------------------------------------------------------------------------


def test_slowdown():
    assert preflight.slowdown({"python": 2.0, "compiler": 4.0}, {"python": 1.0, "compiler": 1.0}) == 3
    assert preflight.slowdown({"python": 2.0}, {"python": 1.0, "compiler": 1.0}) == 2
    assert preflight.slowdown({}, {"python": 1.0}) == 1


def test_calibration_keeps_its_time(monkeypatch, tmp_path):
    """With a compiler that reads the program and leaves it at that: machine code takes it seconds."""
    if environment.gate("compiler") and sys.platform != "win32":
        quick = tmp_path / "g++"
        quick.write_text(f'#!/bin/sh\nexec {environment.find_compiler()} "$@" -fsyntax-only\n', encoding="utf-8")
        quick.chmod(0o755)
        monkeypatch.setenv("CXX", str(quick))
    start = time.monotonic()
    found = preflight.calibrate(0.6)
    assert 0.5 < time.monotonic() - start < 20
    assert found["python"] > 0
    if sys.platform != "win32" and gate_says_yes("compiler"):
        assert found["compiler"] > found["python"] / 100


def gate_says_yes(name):
    return bool(environment.gate(name))


def test_calibration_without_a_compiler(monkeypatch):
    monkeypatch.setattr(environment, "find_compiler", lambda: None)
    assert list(preflight.calibrate(0.1)) == ["python"]


def test_run_times_grow_with_the_slowdown(monkeypatch):
    monkeypatch.setattr(preflight, "ask_torch", lambda: GOOD)
    monkeypatch.setattr(preflight, "reference", lambda: {"calibration": {"python": 0.01}, "chapters": {"00": {"seconds": 60}}})
    monkeypatch.setattr(preflight, "calibrate", lambda: {"python": 0.03})
    found = preflight.report()
    assert found["slowdown"] == 3 and found["chapters"][0]["minutes"]["run"] == 3
    assert found["chapters"][1]["minutes"]["run"] is None
    shown = "\n".join(preflight.lines(found))
    assert "about 3.0 times as long" in shown and re.search(r"^\w+ +00 .+ 30 = 15 \+ 12 \+  3", shown, re.M)
    assert preflight.report(quick=True)["chapters"][0]["minutes"]["run"] == 1
    monkeypatch.setattr(preflight, "reference", lambda: {"calibration": {}, "chapters": {}})
    assert not preflight.report()["calibrated"]  # nothing to compare with


def test_reasons_stand_once_with_their_chapters(monkeypatch):
    gates = {**GOOD["gates"], **dict.fromkeys(("compiler", "inductor"), [False, "No compiler."])}
    monkeypatch.setattr(preflight, "ask_torch", lambda: {**GOOD, "gates": gates})
    monkeypatch.setitem(environment._gates, "compiler", Gate(False, "No compiler."))
    book = preflight.chapters()
    book["20"]["gates"] = []  # it asks for no compiler, so it would stop
    monkeypatch.setattr(preflight, "chapters", lambda: book)
    found = preflight.report(quick=True)
    states = {part["chapter"]: part["state"] for part in found["chapters"]}
    assert not found["ok"] and states["20"] == RED and states["95"] == YELLOW and states["10"] == GREEN
    shown = "\n".join(preflight.lines(found))
    assert shown.count("No compiler.") == 2  # the machine's row, one note
    assert shown.endswith("Mend what is red, then run this again.")


# --- elsewhere ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["python3.6", "python3.7", "python3.8", "python3.9"])
def test_an_old_python_says_that_it_is_too_old(name, repo):
    path = shutil.which(name)
    if not path or subprocess.run([path, "--version"], capture_output=True).returncode:
        # The syntax is what breaks an old Python; that can be checked by any.
        import ast
        for module in ("environment", "preflight"):
            source = (repo / "utils" / f"{module}.py").read_text(encoding="utf-8")
            ast.parse(source, feature_version=tuple(map(int, name[6:].split("."))))
        return
    done = subprocess.run([path, "utils/environment.py", "--quick"], cwd=repo, capture_output=True, text=True)
    assert done.returncode == 1 and "the book runs on" in done.stdout, done.stderr


def test_it_asks_for_the_standard_library_alone(python, repo):
    code = ("import sys; before = set(sys.modules); import utils.preflight; "
            "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))")
    found = set(python(code).stdout.split())
    assert found <= {*sys.stdlib_module_names, "utils"}


def test_the_setup_command_is_one_that_is_there(monkeypatch, tmp_path):
    if sys.platform != "win32":
        assert preflight.setup_command() == "make lab"
        monkeypatch.setattr(preflight, "REPO", str(tmp_path))  # the learner's edition has no Makefile
        assert preflight.setup_command() == "python3 tools/setup_env.py lane"
    monkeypatch.setattr(preflight.platform, "system", lambda: "Windows")
    assert preflight.setup_command().startswith("py -3.12 tools/setup_env.py")
