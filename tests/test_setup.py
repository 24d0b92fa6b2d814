"""The commands of the README fail with one sentence, and pins mean what they say."""

import re
import subprocess
import sys

import pytest

from tools import setup_env
from tools.test import chosen, limit_s, run_unit_tests


def pinned(text):
    return {m[1]: m[2] for m in re.finditer(r"^([\w.-]+)==(\S+)", text, re.M)}


@pytest.mark.parametrize("release", ["2.13.0", "2.5.1"])
def test_a_lane_pins_its_torch(release, tmp_path):
    path = setup_env.pins(release, str(tmp_path))
    text = open(path, encoding="utf-8").read()
    assert pinned(text)["torch"] == release and setup_env.TORCH_OWN in text


@pytest.mark.parametrize("release", ["2.13.0", "2.5.1", "2.14.1"])
def test_another_build_brings_its_own_libraries(release, tmp_path):
    """A pinned CUDA library would make pip leave the build that was asked for."""
    found = pinned(open(setup_env.pins(release, str(tmp_path), other_build=True), encoding="utf-8").read())
    assert found["torch"] == release and not {"triton", "sympy", "cuda-toolkit"} & set(found) and "nbval" in found


def test_another_torch_has_the_default_pins_without_torchs_own(tmp_path):
    text = open(setup_env.pins("2.11.0", str(tmp_path)), encoding="utf-8").read()
    found, default = pinned(text), pinned(open(setup_env.pins("2.13.0", ""), encoding="utf-8").read())
    assert found.pop("torch") == "2.11.0"
    assert not {"triton", "sympy", "nvidia-cublas"} & set(found)
    assert found.items() <= default.items() and "nbval" in found


@pytest.mark.parametrize("word, says", [
    ("abc", "is not a version"), ("2.5", "is not a version"), ("2.4.1", "older than the release"),
    ("2.5.0", "older than the release"),
    ("2.5.1; rm", "is not a version")])
def test_a_wrong_torch_is_one_sentence(word, says, repo):
    done = subprocess.run([sys.executable, "tools/setup_env.py", "lane", word], cwd=repo, capture_output=True, text=True)
    assert done.returncode == 2 and says in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_wrong_python_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    with pytest.raises(SystemExit):
        setup_env.check_python("2.5.1")
    assert "This is Python 3.13; torch 2.5.1 runs on 3.10 to 3.12" in capsys.readouterr().err


def test_chapter_words(capsys):
    assert [p.stem[:2] for p in chosen(["20"])] == ["20"] and chosen(["none"]) == []
    assert [p.stem[:2] for p in chosen(["20", "30_inductor_cpu"])] == ["20", "30"]
    assert len(chosen([])) >= 4
    with pytest.raises(SystemExit):
        chosen(["20", "77"])
    assert "no chapter '77'" in capsys.readouterr().err


@pytest.mark.parametrize("words, files", [
    ("", ["tests"]), ("none", ["tests", "--ignore", "tests/test_exercises.py", "--dist", "loadfile"]),
    ("20", ["tests/test_exercises.py", "-k", "20."]), ("20 30 99", ["tests/test_exercises.py", "-k", "20. or 30."]),
    ("99", None)])
def test_what_words_run_besides_the_notebooks(words, files, monkeypatch):
    calls = []
    monkeypatch.setattr("tools.test.call", lambda command, **how: calls.append(command) or 0)
    assert run_unit_tests(words.split(), chosen(words.split())) == 0
    assert [command[command.index("-n") + 2:] for command in calls] == ([files] if files else [])


def test_limits_are_those_of_the_design(repo):
    path = {p.stem[:2]: p for p in chosen([])}
    assert [limit_s(path[c], v) for v in ("2.13.0", "2.5.1") for c in ("00", "20")] == [60, 90, 120, 180]


@pytest.mark.skipif(sys.platform == "win32", reason="make")
def test_record_wants_a_name(repo):
    done = subprocess.run(["make", "-s", "-o", ".venv/torch-2.13.0/.complete", "record"], cwd=repo,
                          capture_output=True, text=True)
    assert done.returncode == 2 and "make record NAME=my-laptop" in done.stdout
