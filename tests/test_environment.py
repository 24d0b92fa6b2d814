"""The setup cell and the gates."""

import os
import re
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
from tools import board
board.results([])
print(len(claims.load()), recorded.own()["provenance"]["device"])
"""


def test_all_but_the_timer_and_the_board_of_a_room_work_without_torch(python, tmp_path):
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


def test_flex_needs_a_compiler_on_a_cpu(monkeypatch):
    monkeypatch.setattr(environment, "pick_device", lambda: SimpleNamespace(type="cpu"))
    monkeypatch.setattr(environment, "torch_version", lambda: (2, 13))
    import torch
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    for compiler in (Gate(False, "No compiler."), Gate(True, "A compiler.")):
        monkeypatch.setitem(environment._gates, "compiler", compiler)
        assert environment._flex_compiled().ok == compiler.ok
    assert environment._flex_compiled().reason == "FlexAttention compiles on this CPU (AVX2)."


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
