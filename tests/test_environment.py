"""The setup cell, the gates, and a machine check that runs anywhere."""

import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from utils import environment
from utils.environment import Gate, gate, sizes

WITHOUT_TORCH = """
import importlib, pathlib, sys
sys.modules["torch"] = None
for path in sorted(pathlib.Path("utils").glob("*.py")):
    if path.stem != "timing":
        importlib.import_module(f"utils.{path.stem}")
from utils import claims, recorded, scoreboard
recorded.record("20.a", [{"x": 1}])
scoreboard.board(scoreboard.rows(scoreboard.files()))
print(len(claims.load()), recorded.own()["provenance"]["device"])
"""


def test_all_but_the_timer_works_without_torch(python, tmp_path):
    done = python(WITHOUT_TORCH, BOOK_RESULTS=str(tmp_path))
    assert done.returncode == 0, done.stderr
    count, device = done.stdout.split()
    assert int(count) >= 38 and device == "cpu"


def test_effort_words(monkeypatch):
    for word in ("test", "read", "publish"):
        monkeypatch.setenv("BOOK_EFFORT", word)
        assert sizes(test="test", read="read", publish="publish") == word
    monkeypatch.setenv("BOOK_EFFORT", "fast")
    with pytest.raises(ValueError, match="'fast'; it can be test, read, publish"):
        environment.effort()
    with pytest.raises(ValueError):
        sizes(test=1)


@pytest.mark.parametrize("name", environment.GATES)
def test_every_gate_answers_with_a_sentence(name):
    ok, reason = gate(name)
    assert isinstance(ok, bool) and bool(gate(name)) == ok
    assert re.fullmatch(r"[A-Z].*\.", reason, re.S) or reason[0].isalpha() and reason.endswith("."), reason


def test_unknown_gate_lists_the_known():
    with pytest.raises(KeyError, match="compiler"):
        gate("warp_drive")


def test_gate_is_its_answer():
    assert Gate(True, "Yes.") and not Gate(False, "No.")


def test_a_missing_driver_is_no_noise(monkeypatch):
    import warnings

    import torch

    def none_and_says_so():
        warnings.warn("no driver")
        return False

    monkeypatch.setattr(torch.cuda, "is_available", none_and_says_so)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert environment.pick_device().type != "cuda"


def test_no_compiler_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    ok, reason = environment._compiler()
    assert not ok and "No C++ compiler was found" in reason and "install" in reason


def test_flex_on_an_apple_gpu_is_flex_on_the_cpu(monkeypatch):
    def answers(device):
        monkeypatch.setattr(environment, "pick_device", lambda: SimpleNamespace(type=device))
        return [environment.GATES[name]() for name in ("flex_compiled", "flex_backward")]

    assert answers("mps") == answers("cpu") != answers("meta")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_a_broken_compiler_is_noticed(monkeypatch, tmp_path):
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    ok, reason = environment._compiler()
    assert not ok and "does not compile" in reason


def test_begin_gives_the_process_its_own_cache(python, tmp_path):
    code = ("from utils.environment import begin; here = begin(); import os; "
            "print('CACHE', os.environ['TORCHINDUCTOR_CACHE_DIR'], os.path.isdir(os.environ['TORCHINDUCTOR_CACHE_DIR']),"
            " os.getpid())")
    done = python(code)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    folder, pid = re.search(r"CACHE (\S+) True (\d+)", done.stdout).groups()
    assert os.path.basename(os.path.dirname(folder)).startswith(f"{pid}-") and not os.path.exists(folder)


def test_check_on_this_machine(python):
    done = python("import utils.environment as e; raise SystemExit(e.main())")
    assert done.returncode == 0 and done.stdout.rstrip().endswith("This machine can run the book."), done.stdout


def test_check_without_torch_says_how_to_get_it(repo, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('broken')")
    done = subprocess.run([sys.executable, "utils/environment.py"], cwd=repo, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1 and "torch cannot be imported: run make lab" in done.stdout, done.stdout


@pytest.mark.parametrize("name", ["python3.8", "python3.9", "python3.7", "python3.6"])
def test_check_on_an_old_python(name, repo):
    path = shutil.which(name)
    if not path or subprocess.run([path, "--version"], capture_output=True).returncode:
        # The syntax is what breaks an old Python; that can be checked by any.
        import ast
        source = (repo / "utils/environment.py").read_text()
        ast.parse(source, feature_version=tuple(map(int, name[6:].split("."))))
        return
    done = subprocess.run([path, "utils/environment.py"], cwd=repo, capture_output=True, text=True)
    assert done.returncode == 1 and "the book runs on" in done.stdout, done.stderr
