"""Children start cold, answer or say why not, and none is left."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from utils import environment, fresh
from utils.fresh import FreshError, run_fresh


def double(x):
    return {"twice": 2 * x}


def test_function_and_source():
    assert run_fresh(double, 21).result == {"twice": 42}
    assert run_fresh("result = args[0] + 1", 41).result == 42


def test_the_child_is_another_process_with_its_own_cache():
    code = "import os; result = [os.getpid(), os.environ['TORCHINDUCTOR_CACHE_DIR']]"
    (pid, first), (_, second) = run_fresh(code).result, run_fresh(code).result
    assert pid != os.getpid() and first != second
    assert not os.path.exists(first)


def test_a_function_without_source_of_its_own_is_refused():
    with pytest.raises(ValueError, match="a lambda has no source of its own"):
        run_fresh(lambda: 1)
    with pytest.raises(ValueError, match="no source for"):
        run_fresh(len, [1])


def test_only_this_hosts_dead_processes_are_swept(tmp_path, monkeypatch):
    """A home may be shared, and a process number says nothing about another host."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for host in (fresh._host(), "another"):
        (tmp_path / f"{dead.pid}-{host}-x").mkdir()
    (tmp_path / f"{os.getpid()}-{fresh._host()}-x").mkdir()
    fresh._sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [f"{dead.pid}-another-x", f"{os.getpid()}-{fresh._host()}-x"])


def test_warm_is_the_same_folder_cold_never_is():
    code = ("import os; folder = os.environ['TORCHINDUCTOR_CACHE_DIR']; path = os.path.join(folder, 'x');"
            "result = os.path.exists(path); open(path, 'w').close()")
    assert [run_fresh(code, cache="warm:t").result for _ in range(2)] == [False, True]
    assert run_fresh(code, cache="warm:other").result is False
    assert run_fresh(code).result is False


def test_toolchain_words():
    code = "import os; result = len(os.listdir(os.environ['TORCHINDUCTOR_CACHE_DIR']))"
    assert run_fresh(code, toolchain="cold").result == 0
    assert run_fresh(code, toolchain="warm").result > 0


def test_environment_is_set_and_unset(monkeypatch):
    monkeypatch.setenv("BOOK_GONE", "1")
    code = "import os; result = [os.environ.get('BOOK_NEW'), os.environ.get('BOOK_GONE')]"
    assert run_fresh(code, env={"BOOK_NEW": 7, "BOOK_GONE": None}).result == ["7", None]


def test_costs_are_the_childs():
    r = run_fresh("import time; t = time.process_time()\n"
                  "while time.process_time() - t < 0.5: pass\n"
                  "x = bytearray(200_000_000); result = 1")
    assert r.wall_s >= r.cpu_s * 0.8 and 0.5 <= r.cpu_s < 5
    if sys.platform == "linux":
        assert 200e6 < r.peak_bytes < 260e6


@pytest.mark.parametrize("code, says", [
    ("1 / 0", "ZeroDivisionError"),
    ("import os; os.abort()", "signal 6"),
    ("import os; os._exit(0)", "before it had a result"),
    ("import os; os._exit(3)", "exit status 3"),
    ("import time; time.sleep(60)", "did not finish within 2 s"),
    ("result = object()", "not JSON serializable"),
    ("def f(:", "SyntaxError"),
])
def test_failures_say_what_happened(code, says):
    start = time.perf_counter()
    with pytest.raises(FreshError, match=says):
        run_fresh(code, timeout_s=2 if "sleep" in code else 60)
    assert time.perf_counter() - start < 30


def test_an_error_names_no_folder_of_this_machine():
    with pytest.raises(FreshError) as caught:
        run_fresh("import os; raise RuntimeError(os.environ['TORCHINDUCTOR_CACHE_DIR'])")
    assert os.path.expanduser("~") + os.sep not in str(caught.value)


def test_an_error_is_told_without_colours(monkeypatch):
    """Jupyter sets FORCE_COLOR, and Python colours tracebacks from 3.13 on; this stands for any program that asks."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = "'\\x1b[31m' * ('FORCE_COLOR' in os.environ and not os.environ.get('NO_COLOR'))"
    with pytest.raises(FreshError, match="OSError: no driver") as raised:
        run_fresh(f"import os; raise OSError({coloured} + 'no driver')")
    assert "\x1b" not in str(raised.value)


def test_much_output_does_not_block():
    assert run_fresh("import sys; print('x' * 10**7); print('y' * 10**7, file=sys.stderr); result = 1").result == 1


@pytest.mark.parametrize("arguments, error", [
    ({"cache": "hot"}, ValueError), ({"cache": "warm:"}, ValueError), ({"cache": "warm:../x"}, ValueError),
    ({"toolchain": "new"}, ValueError)])
def test_bad_words(arguments, error):
    with pytest.raises(error):
        run_fresh("result = 1", **arguments)
    with pytest.raises(TypeError):
        run_fresh("result = 1", object())


FAMILY = """
import os, subprocess, sys
sleep = [sys.executable, "-c", "import time; time.sleep(120)"]
subprocess.Popen(sleep)
subprocess.Popen(sleep, start_new_session=True)
subprocess.Popen(sleep, env={name: value for name, value in os.environ.items() if name != "BOOK_FRESH"})
if os.fork() == 0:
    os.setsid(); os.execv(sys.executable, sleep)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("end", ["result = 1", "os.abort()", "import time; time.sleep(60)"])
def test_no_descendant_survives(end, marked):
    try:
        run_fresh(FAMILY + end, timeout_s=3, env={"BOOK_TEST_FAMILY": end})
    except FreshError:
        pass
    time.sleep(0.2)
    assert marked("BOOK_TEST_FAMILY", end) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_killed_parent_leaves_no_child(marked, repo, tmp_path):
    code = ("from utils.fresh import run_fresh\n"
            f"run_fresh({FAMILY + 'import time; time.sleep(100)'!r}, toolchain='cold')")  # nothing to probe first
    env = {**os.environ, "BOOK_TEST_FAMILY": "killed", "BOOK_CACHE": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", code], env=env, cwd=repo)
    _until(lambda: len(marked("BOOK_TEST_FAMILY", "killed")) >= 6)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    _until(lambda: marked("BOOK_TEST_FAMILY", "killed") == [])
    # What it left on disk goes with the next process.
    left = tmp_path / "pytorch-2-5-measured" / "processes"
    leftover = os.listdir(left)
    subprocess.run([sys.executable, "-c", "from utils import fresh; fresh._process_folder()"],
                   env={**os.environ, "BOOK_CACHE": str(tmp_path)}, cwd=repo, check=True)
    assert leftover and os.listdir(left) == []


def _until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "took too long"
        time.sleep(0.1)


@pytest.fixture
def unwritable(monkeypatch, tmp_path):
    """A cache that cannot be written, for root neither; returns the temporary folder."""
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(fresh, "_folder", None)
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_unwritable_cache_falls_back(unwritable):
    assert run_fresh("result = 1", toolchain="cold").result == 1
    [made] = [path for path in unwritable.iterdir() if path.is_dir()]
    assert str(made) == environment.temporary_home() and made.stat().st_mode & 0o777 == 0o700


def test_a_fallback_that_others_can_write_is_refused(unwritable):
    """Compiled code is loaded from there, and the temporary folder is everybody's."""
    home = Path(environment.temporary_home())
    home.mkdir()
    home.chmod(0o777)
    with pytest.raises(OSError, match="can be written by others: remove it, or let BOOK_CACHE"):
        fresh.own_cache()
    home.rmdir()
    home.symlink_to(unwritable)
    with pytest.raises(OSError, match="can be written by others"):
        fresh.own_cache()
