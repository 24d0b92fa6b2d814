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


def test_python_3_13_0_is_told_once_and_not_by_torch(monkeypatch, capsys):
    import warnings

    monkeypatch.setattr(sys, "version_info", (3, 13, 0, "final", 0))
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        environment.begin()
        warnings.warn("Guards may run slower on Python 3.13.0. Consider upgrading to Python 3.13.1+.", RuntimeWarning)
    assert not met and environment.SLOW_GUARDS in capsys.readouterr().out.splitlines()


def test_a_gpu_that_the_build_has_no_kernels_for_is_not_used(monkeypatch, capsys):
    import torch

    def ones(*size, device=None):
        raise RuntimeError("CUDA error: no kernel image is available for execution on the device")

    monkeypatch.setattr(environment, "seen_devices", lambda: ["cuda"])
    monkeypatch.setattr(environment, "_computes", environment._computes.__wrapped__)  # ask anew
    monkeypatch.setattr(torch, "ones", ones)
    assert environment.pick_device().type == "cpu"
    assert "torch sees a GPU here (cuda)" in next(environment._missing(torch.device("cpu")))
    monkeypatch.undo()
    assert environment._computes.__wrapped__("cpu")


@pytest.mark.parametrize("device, release, triton, ok", [
    ("cpu", (2, 5), False, True), ("cuda", (2, 13), True, True), ("cuda", (2, 13), False, False),
    ("xpu", (2, 13), False, False), ("mps", (2, 7), True, False), ("mps", (2, 8), False, True)])
def test_inductor_needs_triton_on_a_gpu(device, release, triton, ok, monkeypatch):
    import torch.utils._triton as ask

    monkeypatch.setattr(environment, "pick_device", lambda: SimpleNamespace(type=device))
    monkeypatch.setattr(environment, "torch_version", lambda: release)
    monkeypatch.setattr(ask, "has_triton", lambda: triton)
    monkeypatch.setitem(environment._gates, "compiler", Gate(True, "A compiler."))
    assert environment._inductor().ok == ok
    monkeypatch.setitem(environment._gates, "compiler", Gate(False, "No compiler."))
    assert not environment._inductor()


@pytest.mark.skipif(sys.platform == "win32", reason="the commands there are quoted")
def test_a_blank_in_the_path_is_told(monkeypatch):
    monkeypatch.setattr(sys, "prefix", "/home/me/my books/.venv/torch")
    ok, reason = environment._compiler()
    assert ok is (environment.find_compiler() is None) or "where a path holds a blank" in reason


def test_the_cache_is_a_folder_of_its_own(monkeypatch, tmp_path):
    """make clean removes it: whatever else BOOK_CACHE holds stays."""
    from tools import clean

    monkeypatch.setenv("BOOK_CACHE", str(tmp_path))
    assert os.path.dirname(environment.cache_home()) == str(tmp_path)
    assert str(tmp_path) not in list(clean.targets())
    monkeypatch.setenv("BOOK_CACHE", os.path.join("~", "here"))
    assert os.path.isabs(environment.cache_home()) and "~" not in environment.cache_home()


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
