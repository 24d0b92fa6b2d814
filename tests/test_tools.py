"""Running chapters: what is kept, what is refused, and that no process is left."""

import json
import os
import signal
import subprocess
import sys
import time

import nbformat
import pytest

from tools import chapters, execute, mutants, notebook_form, record
from tools import test as suite
from utils import recorded

# A suite that runs in the background hands its children an ignored Ctrl+C.
DRIVE = ("import importlib.metadata, pathlib, signal, sys; from tools import chapters, execute;"
         "signal.signal(signal.SIGINT, signal.default_int_handler);"
         "chapters.REPO = pathlib.Path(sys.argv.pop(1));"
         "execute.DEFAULT = importlib.metadata.version('torch').split('+')[0]; execute.main()")
RECORDING = "from utils.recorded import record\n\nrecord('10.things', [{'count': 3}])"
CHILD = "import subprocess, sys\n\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"


def write(folder, name, *sources):
    """A notebook of code cells called a, b, c, ... and its path."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source, id=chr(97 + n)) for n, source in enumerate(sources)]
    path = folder / "chapters" / f"{name}.ipynb"
    path.parent.mkdir(exist_ok=True)
    path.write_text(notebook_form.canonical(notebook), encoding="utf-8")
    return path


@pytest.fixture
def run(tmp_path, repo, marked):
    """run("10") -> CompletedProcess of tools.execute over tmp_path/chapters; none of its
    processes is left when it returns."""
    def start(*arguments):
        return subprocess.Popen([sys.executable, "-c", DRIVE, str(tmp_path), *arguments], cwd=repo, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "BOOK_TOOLS_TEST": str(tmp_path)})

    def left():
        return marked("BOOK_TOOLS_TEST", str(tmp_path))

    def complete(*arguments, send=None, when=None):
        process = start(*arguments)
        try:
            if send:
                until(lambda: when in "\n".join(map(command, left())))
                process.send_signal(send)
            out, err = process.communicate(timeout=120)
            until(lambda: not left())
            return subprocess.CompletedProcess(arguments, process.returncode, out, err)
        finally:
            process.kill()
    return complete


@pytest.fixture
def executed(tmp_path, monkeypatch, capfd, marked):
    """executed("10") -> (exit status, stderr) of tools.execute as `run` has it, but without a
    process of its own: the kernels are real, and none of their processes is left."""
    monkeypatch.setattr(chapters, "REPO", tmp_path)
    monkeypatch.setattr(execute, "DEFAULT", execute.version("torch").split("+")[0])
    monkeypatch.setenv("BOOK_TOOLS_TEST", str(tmp_path))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["execute", *arguments])
        with pytest.raises(SystemExit) as end:
            execute.main()
        until(lambda: not marked("BOOK_TOOLS_TEST", str(tmp_path)))
        return end.value.code, capfd.readouterr().err
    return run


@pytest.fixture
def book(tmp_path, monkeypatch):
    """tmp_path as the book; its cells run without a kernel. book(0.37): others used that share."""
    def set_share(share):
        def execute(notebook, path, env):
            code = "\n".join(cell.source for cell in notebook.cells)
            subprocess.run([sys.executable, "-c", code], env={**os.environ, **env}, check=True)
            return share
        monkeypatch.setattr(chapters, "execute", execute)
    monkeypatch.setattr(chapters, "REPO", tmp_path)
    set_share(0.0)
    return set_share


def until(true, limit_s=60.0):
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.1)


def command(pid):
    import psutil

    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""


# --- one run, kept --------------------------------------------------------------------


def test_outputs_and_results_carry_one_run_id(tmp_path, run):
    path = write(tmp_path, "10_things", RECORDING, "print('effort', __import__('os').environ['BOOK_EFFORT'])")
    write(tmp_path, "20_others", "1 / 0")
    plain = write(tmp_path, "30_plain", "print(1)")  # it records nothing
    done = run("10", "30", "--allow-busy", "--name", "here")
    assert done.returncode == 0, done.stderr
    assert chapters.read(plain).cells[0].outputs[0].text == "1\n"
    notebook = chapters.read(path)
    assert [c.execution_count for c in notebook.cells] == [1, 2]
    assert notebook.cells[1].outputs[0].text == "effort test\n"
    assert path.read_text(encoding="utf-8") == notebook_form.canonical(notebook)
    (file,) = (tmp_path / "recorded").iterdir()
    assert file.name.startswith("here.torch-") and recorded.check(file) == []
    recorded_chapters = json.loads(file.read_text(encoding="utf-8"))["chapters"]
    assert list(recorded_chapters) == ["10"]
    entry = recorded_chapters["10"]
    assert entry["run"]["id"] == notebook.metadata.book.run
    assert entry["results"]["10.things"]["rows"] == [{"count": 3}]


def test_record_keeps_no_outputs_and_joins_chapters(tmp_path, book):
    paths = [write(tmp_path, "10_a", RECORDING), write(tmp_path, "20_b", RECORDING.replace("10.", "20."))]
    before = [p.read_bytes() for p in paths]
    for path in paths:
        record.Run("here", "test").all([path])
    assert [p.read_bytes() for p in paths] == before
    (file,) = (tmp_path / "recorded").iterdir()
    data = json.loads(file.read_text(encoding="utf-8"))
    assert list(data["chapters"]) == ["10", "20"]
    assert data["chapters"]["10"]["run"]["id"] != data["chapters"]["20"]["run"]["id"]


def test_a_run_shows_its_own_rows_not_the_last_ones(tmp_path, book, monkeypatch):
    monkeypatch.setenv("BOOK_RECORDED", str(tmp_path / "recorded"))
    path = write(tmp_path, "10_things", "import time\n\nfrom utils.recorded import record, recorded\n\n"
                 "record('10.things', [{'when': time.time()}])\n((machine, _, entry),) = recorded('10.things')\n"
                 "assert machine == 'here' and time.time() - entry['rows'][0]['when'] < 1")
    for _ in range(2):
        record.Run("here", "test").all([path])
        time.sleep(1)


# --- nothing kept -----------------------------------------------------------------------


@pytest.mark.parametrize("sources, said", [
    (["def f(x):\n    return 1 / x", "f(0)"], "10_things, cell b: "),
    (["import os\nprint(os.getcwd())"], "10_things, a: an absolute path"),
    ([RECORDING, "import warnings\nwarnings.warn('careful')"], "10_things, b: it writes to stderr"),
    (["import os\n" + CHILD + "\nos.kill(os.getpid(), 9)"], "10_things, cell a: Kernel died"),
], ids=["error", "path", "stderr", "killed-with-child"])
def test_a_bad_run_is_told_and_leaves_the_file_alone(tmp_path, executed, sources, said):
    path = write(tmp_path, "10_things", *sources)
    before = path.read_bytes()
    status, told = executed("--allow-busy")
    assert status == 1 and said in told, told
    assert "Nothing of 10_things was kept." in told
    assert str(tmp_path) not in told and "\x1b" not in told
    assert ("return 1 / x" in told and "ZeroDivisionError" in told) == ("return 1 / x" in sources[0])
    assert path.read_bytes() == before and not list(tmp_path.glob("recorded/*"))
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_process(tmp_path, run, sent):
    path = write(tmp_path, "10_things", RECORDING, CHILD, "import time\ntime.sleep(600)")
    before = path.read_bytes()
    done = run("--allow-busy", send=sent, when="time.sleep(600)")
    assert done.returncode == 130 and "10_things: interrupted; nothing of it was kept." in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_bytes() == before and not list(tmp_path.glob("recorded/*"))


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_run_leaves_no_process(tmp_path, run):
    source = "from utils.fresh import run_fresh\n\nrun_fresh('import time; time.sleep(600)', toolchain='cold')"
    path = write(tmp_path, "10_things", source)
    before = path.read_bytes()
    done = run("--allow-busy", send=signal.SIGKILL, when="utils.fresh")
    assert done.returncode == -signal.SIGKILL and path.read_bytes() == before


def test_a_busy_machine_is_refused(tmp_path, book, capsys):
    path = write(tmp_path, "10_things", RECORDING)
    before = path.read_bytes()

    book(0.37)
    with pytest.raises(SystemExit):
        record.Run("here", "test", keep=execute.keep).all([path])
    assert "37 % of the cores" in capsys.readouterr().err
    assert path.read_bytes() == before and not list(tmp_path.glob("recorded/*"))
    record.Run("here", "test", allow_busy=True, keep=execute.keep).all([path])
    (data,) = recorded.load(tmp_path / "recorded")
    assert data["chapters"]["10"]["run"]["other_load"] == 0.37


def test_results_belong_to_the_chapter_that_ran(tmp_path, book, capsys):
    path = write(tmp_path, "10_things", RECORDING.replace("10.", "20."))
    with pytest.raises(SystemExit):
        record.Run("here", "test").all([path])
    assert "10_things recorded results under 20" in capsys.readouterr().err
    assert not list(tmp_path.glob("recorded/*"))


def test_outputs_and_results_are_kept_together_or_not_at_all(tmp_path, book, capsys, monkeypatch):
    path = write(tmp_path, "10_things", RECORDING)
    before = path.read_bytes()

    def full(*_):
        raise OSError("No space left on device")
    monkeypatch.setattr(recorded, "write", full)
    with pytest.raises(SystemExit):
        record.Run("here", "test", keep=execute.keep).all([path])
    assert "No space left on device\nNothing of 10_things was kept." in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_damaged_file_of_results_is_not_replaced(tmp_path, book, capsys):
    path = write(tmp_path, "10_things", RECORDING)
    record.Run("here", "test").all([path])
    (file,) = (tmp_path / "recorded").iterdir()
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(SystemExit):
        record.Run("here", "test").all([path])
    assert file.name in capsys.readouterr().err and file.read_text(encoding="utf-8") == "{}"


@pytest.mark.parametrize("what", ["cpu", "capability", "driver", "python"])  # one name is sold with several of these
def test_another_machine_needs_another_name(tmp_path, book, capsys, what):
    path = write(tmp_path, "10_things", RECORDING)
    record.Run("here", "test").all([path])
    (file,) = (tmp_path / "recorded").iterdir()
    data = json.loads(file.read_text(encoding="utf-8"))
    data["provenance"][what] = was = "3.9.9" if what == "python" else "ANOTHER"
    recorded.write(file, data)
    with pytest.raises(SystemExit):
        record.Run("here", "test").all([path])
    assert f"another {what} ({was})" in capsys.readouterr().err


def test_an_older_file_that_does_not_name_the_capability(tmp_path, book):
    path = write(tmp_path, "10_things", RECORDING)
    record.Run("here", "test").all([path])
    (file,) = (tmp_path / "recorded").iterdir()
    data = json.loads(file.read_text(encoding="utf-8"))
    del data["provenance"]["capability"]
    recorded.write(file, data)
    record.Run("here", "test").all([path])  # these cells import no torch, which would know it
    assert json.loads(file.read_text(encoding="utf-8"))["provenance"]["capability"] is None


def test_a_wrong_effort_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setenv("BOOK_EFFORT", "fast")
    with pytest.raises(SystemExit) as end:
        record.parser("x")
    assert end.value.code == 2 and capsys.readouterr().err == "BOOK_EFFORT is 'fast'; it can be test, read, publish\n"


# --- words on the command line ----------------------------------------------------------


@pytest.mark.parametrize("words, said", [
    (["30"], "There is no chapter '30'; there are 10_things.\n"),
    (["10_things", "--name", "My Laptop"], "'My Laptop' is no name for a machine"),
    (["--name", recorded.YOURS], "'this-machine' is what every reader's own results are called: choose a name that"),
])
def test_unknown_chapter_and_bad_name(tmp_path, monkeypatch, capsys, words, said):
    write(tmp_path, "10_things", "1 / 0")
    monkeypatch.setattr(chapters, "REPO", tmp_path)
    monkeypatch.setattr(execute, "version", lambda name: execute.DEFAULT)
    monkeypatch.setattr(sys, "argv", ["execute", *words])
    with pytest.raises(SystemExit) as end:
        execute.main()
    assert end.value.code == 2 and capsys.readouterr().err.startswith(said)


def test_the_outputs_are_of_one_torch(monkeypatch, capsys):
    monkeypatch.setattr(execute, "version", lambda name: "2.6.0+cpu")
    monkeypatch.setattr(sys, "argv", ["execute"])
    with pytest.raises(SystemExit):
        execute.main()
    assert f"outputs of torch {execute.DEFAULT}, this is 2.6.0" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"cells": 3}', b"\xff\xfe", b'{"nbformat": 4}'])
def test_a_broken_notebook_costs_one_sentence(tmp_path, book, capsys, content):
    path = write(tmp_path, "10_things", "1")
    path.write_bytes(content)
    with pytest.raises(SystemExit):
        record.Run("here", "test").all([path])
    told = capsys.readouterr().err
    assert told.startswith("10_things.ipynb is not a notebook that can be read: ")
    assert told.count("\n") == 2 and "Traceback" not in told


def test_a_page_that_measures_nothing_is_passed_over(tmp_path, book, capsys):
    path = write(tmp_path, "99_scoreboard", "1 / 0")
    before = path.read_bytes()
    record.Run("here", "test", keep=execute.keep).all([path])
    assert capsys.readouterr().out == "99_scoreboard measures nothing: make book runs it.\n"
    assert path.read_bytes() == before and not list(tmp_path.glob("recorded/*"))


# --- mutants ----------------------------------------------------------------------------


def test_there_are_enough_mutants():
    listed = mutants.load()
    assert sum(m.file.startswith("utils/") for m in listed) >= 5
    for path in chapters.find():
        if path.stem[:2] not in notebook_form.NO_CHAPTER:
            own = [m.id for m in listed if m.file == f"chapters/{path.name}"]
            assert len(own) >= 3, f"{path.name} has the mutants {own}; three are wanted"


@pytest.mark.parametrize("mutant", mutants.load(), ids=lambda m: m.id)
def test_every_mutant_still_has_its_place(mutant, repo):
    assert mutant.mutated(repo) != (repo / mutant.file).read_text(encoding="utf-8")


def test_a_mutant_without_a_place_is_an_error(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n", encoding="utf-8")
    for old, told in (("y", "not there"), ("x", "2 times")):
        with pytest.raises(ValueError, match=told):
            mutants.Mutant("m", "a.py", old, "z", "tests/test_a.py").mutated(tmp_path)


@pytest.mark.parametrize("new, word", [("return 2", "caught"), ("return 0 + 1", "survived")])
def test_a_mutant_is_caught_or_survives(tmp_path, new, word):
    (tmp_path / "a.py").write_text("def f():\n    return 1\n", encoding="utf-8")
    (tmp_path / "test_a.py").write_text("from a import f\n\n\ndef test():\n    assert f() == 1\n", encoding="utf-8")
    assert mutants.Mutant("m", "a.py", "return 1", new, "test_a.py").run(tmp_path)[0] == word
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "def f():\n    return 1\n"


def test_a_test_that_cannot_run_catches_nothing(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    assert mutants.Mutant("m", "a.py", "x", "y", "test_missing.py").run(tmp_path)[0].startswith("not run")


def test_a_mutant_in_a_chapter_fails_its_own_cell(tmp_path):
    # As in tools: it would take longer to import than all else here.
    (tmp_path / "rfc3987_syntax.py").write_text("raise ImportError", encoding="utf-8")
    path = write(tmp_path, "10_things", "x = 1", "assert x == 1", "1 / 0")
    fault = mutants.Mutant("m", "chapters/10_things.ipynb", "x = 1", "x = 2", "chapter", cell="a", until="b")
    assert fault.run(tmp_path)[0] == "caught"
    fault = mutants.Mutant("m", "chapters/10_things.ipynb", "x = 1", "x = 0 + 1", "chapter", cell="a", until="b")
    assert fault.run(tmp_path)[0] == "survived"
    assert chapters.read(path).cells[0].source == "x = 1"


def test_a_test_run_leaves_the_readers_results_alone(tmp_path, monkeypatch):
    path = write(tmp_path, "10_things", RECORDING)
    own = tmp_path / "own"
    monkeypatch.setenv("BOOK_RESULTS", str(own))
    monkeypatch.setenv("PYTHONPATH", str(chapters.REPO))
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    assert suite.run_chapter(path)[0] == 0
    assert not own.exists()
