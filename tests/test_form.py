"""The canonical form of the notebooks: the book's own are in it, and every fault is found."""

import json
import sys

import nbformat
import pytest

from tools import chapters, notebook_form
from tools.setup_env import DEFAULT
from utils import recorded, report

PNG = "iVBORw0KGgo="


# --- the book's own ---------------------------------------------------------------------


@pytest.mark.parametrize("path", chapters.find(), ids=lambda p: p.stem)
def test_the_chapters_are_in_form(path):
    found = list(notebook_form.faults(path))
    assert not found, "\n".join(f"{path.name}, {fault}" for fault in found)


@pytest.fixture(scope="module")
def reference():
    """What the reference machine recorded with the book's own torch, by chapter."""
    return next((data["chapters"] for data in recorded.load(chapters.REPO / "recorded")
                 if data["machine"] == "reference" and recorded.release(data) == DEFAULT), {})


@pytest.mark.parametrize("path", chapters.find(), ids=lambda p: p.stem)
def test_outputs_and_recorded_results_are_of_one_run(path, reference):
    run = chapters.read(path).metadata.get("book", {}).get("run")
    if entry := reference.get(path.stem[:2]):
        assert entry["run"]["id"] == run, f"{path.name} and the recorded results are of two runs"


@pytest.mark.parametrize("path", chapters.find(), ids=lambda p: p.stem)
def test_recorded_rows_in_the_outputs_are_the_recorded_ones(path, reference, monkeypatch, capsys):
    monkeypatch.setenv("BOOK_RECORDED", str(chapters.REPO / "recorded"))
    for name in reference.get(path.stem[:2], {}).get("results", ()):
        report.recorded_rows(name)
    told = {" ".join(line.split()) for line in capsys.readouterr().out.splitlines()}
    shown = [" ".join(line.split()) for cell in chapters.read(path).cells for output in cell.get("outputs", ())
             for line in output.get("text", "").splitlines() if line.startswith("reference ")]
    assert [line for line in shown if line not in told] == []


# --- a small chapter that is in order, and its faults -------------------------------------


def text(name, source):
    return nbformat.v4.new_markdown_cell(source, id=name)


def code(name, source, count, *tags):
    cell = nbformat.v4.new_code_cell(source, id=name, execution_count=count)
    cell.outputs = [nbformat.v4.new_output("stream", text="out\n")]
    if tags:
        cell.metadata["tags"] = sorted(tags)
    return cell


def good():
    """A chapter in order."""
    notebook = nbformat.v4.new_notebook(metadata={
        **notebook_form.METADATA, "book": {"minutes_reading": 5, "minutes_exercises": 9}})
    notebook.cells = [
        text("title", "# Title\n\nDoes it pay?"),
        text("box", "| You will learn | You need |\n|---|---|\n| a | 5 minutes reading + 9 minutes exercises |"),
        code("setup", notebook_form.SETUP, 1),
        text("predict", "## Predict\n\nGuess.\n\n## Same answer?\n\n## When it does not help\n\n"
                        "## What goes wrong\n\n## 2.5 and today"),
        *[code(f"step-{n}", f"x = {n}\nprint(x)", 2 + n, "nbval-check-output") for n in range(5)],
        text("first", "### Exercise 10.1: Do it (4 min)"),
        code("check-10-1", "def check_10_1(answer):\n    return 'right'", 7),
        code("exercise-10-1", "mine = 1\nprint(check_10_1(mine))", 8),
        code("solution-10-1", "best = 2\nassert check_10_1(best) == 'right'", 9, "solution", "hide-cell"),
        text("second", "### Exercise 10.2: Do more (5 min)"),
        code("check-10-2", "def check_10_2(answer):\n    return 'right'", 10),
        code("exercise-10-2", "print(check_10_2(1))", 11),
        code("solution-10-2", "assert check_10_2(2) == 'right'", 12, "solution", "hide-cell"),
        text("end", "## Claims\n\n## Key points\n\n- a\n- b\n- c\n\n## Quiz\n\n"
                    + "<details><summary>Answer</summary>\nYes.\n</details>\n" * 3
                    + "\n## Further reading\n\n<details><summary>Instructor note</summary>\nGo.\n</details>"),
    ]
    return notebook


@pytest.fixture
def faults(tmp_path):
    """faults(notebook, fixed=True) -> its faults."""
    path = tmp_path / "10_small.ipynb"

    def find(notebook, fixed=True):
        content = notebook_form.canonical(notebook) if fixed else nbformat.writes(notebook) + "\n"
        path.write_text(content, encoding="utf-8", newline="\n")
        return list(notebook_form.faults(path))
    return find


def by_id(notebook, name):
    return next(cell for cell in notebook.cells if cell.id == name)


def test_the_small_chapter_is_in_form(faults):
    assert faults(good()) == [] and faults(good(), fixed=False) == []


def change(name, **values):
    return lambda notebook: by_id(notebook, name).update(values)


def drop(name):
    return lambda notebook: notebook.cells.remove(by_id(notebook, name))


def replace(name, old, new):
    def do(notebook):
        cell = by_id(notebook, name)
        assert old in cell.source
        cell.source = cell.source.replace(old, new)
    return do


def output(name, *outputs):
    return lambda notebook: by_id(notebook, name).update(outputs=[nbformat.from_dict(o) for o in outputs])


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def figure(alt):
    return {"output_type": "display_data", "data": {"image/png": PNG}, "metadata": {"image/png": {"alt": alt}}}


def html(content):
    return {"output_type": "display_data", "data": {"text/html": content}, "metadata": {}}


@pytest.mark.parametrize("do, told", [
    (change("step-0", metadata={"tags": ["nbval-check-output", "slow"]}), "step-0: unknown tag 'slow'"),
    (change("step-0", source="x = 1\n" * 21), "step-0: 21 lines of code; 20 at most"),
    (change("step-0", source="x = '" + "a" * 80 + "'"), "step-0: a line of 86 columns"),
    (change("step-0", source="%timeit 1"), "step-0: not plain Python"),
    (change("title", source="# T\n\nOne. Two."), "title: two sentences on one line: 'One. Two.'"),
    (output("step-0", stream("a", "stderr")), "step-0: it writes to stderr: 'a'"),
    (output("step-0", {"output_type": "error", "ename": "E", "evalue": "e", "traceback": []}), "step-0: its output is an error"),
    (output("step-0", stream("in /home/someone/x.py")), "an absolute path in its output: '/home/someone/x.py'"),
    (output("step-0", stream("in C:\\Users\\x")), "step-0: an absolute path"),
    (output("step-0", html("<p>/tmp/torchinductor/a</p>")), "step-0: an absolute path"),
    (output("step-0", figure("")), "step-0: a figure without an alt text"),
    (output("step-0", figure("a"), figure("b")), "step-0: 2 figures; one a cell"),
    (change("step-3", execution_count=7), "not one clean run"),
    (change("step-3", execution_count=None), "not one clean run"),
    (change("setup", source="here = 1"), "the first code cell is not the setup cell"),
    (change("box", source="no table"), "nothing says '| You will learn | You need |'"),
    (replace("box", "5 minutes reading", "6 minutes reading"), "its box does not say '5 minutes reading"),
    (replace("predict", "## Predict", "## Guess"), "nothing says '## Predict'"),
    (replace("end", "## Key points", "## Points"), "nothing says '## Key points'"),
    (replace("end", "- b\n- c", ""), "1 key points; three to five"),
    (replace("end", "<summary>Instructor note</summary>", ""), "Instructor note"),
    (replace("end", "</details>\n<details><summary>Answer</summary>\nYes.\n", ""), "1 folded quiz answers; three"),
    (lambda nb: nb.metadata.book.pop("minutes_reading"), "no minutes_reading and minutes_exercises"),
    (replace("second", "(5 min)", "(6 min)"), "its exercises take 10 minutes, its metadata say 9"),
    (replace("second", " (5 min)", ""), "1 exercises titled"),
    (drop("check-10-2"), "no cell check-10-2"),
    (drop("solution-10-1"), "no cell solution-10-1"),
    (lambda nb: nb.cells.insert(2, nb.cells.pop(nb.cells.index(by_id(nb, "solution-10-1")))), "not in this order"),
    (change("solution-10-1", metadata={"tags": ["solution"]}), "tagged solution and hide-cell"),
    (change("solution-10-1", metadata={}), "tagged solution and hide-cell"),
    (replace("exercise-10-2", "1", "best"), "exercise-10-2: uses best, which only a solution defines"),
    (replace("exercise-10-2", "print", "def f():\n    return best\n\n\nprint"), "exercise-10-2: uses best"),
    (change("step-0", metadata={}), "4 cells with a checked output; five at least"),
    (lambda nb: nb.cells.extend(code(f"more-{n}", "x = 1", 13 + n) for n in range(10)), "7 of 22 code cells are checked or assert"),
    (lambda nb: nb.cells.extend(code(f"more-{n}", "assert x", 13 + n) for n in range(30)), "42 code cells; 40 at most"),
    (output("step-0", stream("a" * 1_000_001)), "larger than 1000 kB"),
])
def test_a_fault_is_named(do, told, faults):
    notebook = good()
    do(notebook)
    found = faults(notebook)
    assert any(told in fault for fault in found), found


@pytest.mark.parametrize("do", [
    replace("exercise-10-2", "print", "best = 1\nprint"),
    replace("exercise-10-2", "print", "def f(best):\n    return best\n\n\nprint"),
    output("step-0", stream("see https://a.org/b/c, 3 / 4 / 5, <cache>/ab/c.py, image/png, </p>\n")),
    output("step-0", html(f'<img src="data:image/png;base64,/9j/4AA/{PNG}/a/b" alt="x">')),
    output("step-0", figure("A bar.")),
    lambda nb: [cell.update(execution_count=None, outputs=[]) for cell in nb.cells if cell.cell_type == "code"],
])
def test_what_is_in_order(do, faults):
    notebook = good()
    do(notebook)
    assert faults(notebook) == []


def test_another_kind_of_page_needs_no_template(tmp_path):
    path = tmp_path / "99_scoreboard.ipynb"
    notebook = good()
    del notebook.cells[3:]
    path.write_text(notebook_form.canonical(notebook), encoding="utf-8")
    assert list(notebook_form.faults(path)) == []


# --- what --fix writes ---------------------------------------------------------------------


def messy():
    notebook = good()
    notebook.metadata |= {"widgets": {"state": {}}, "language_info": {"name": "python", "version": "3.11.2"}}
    cell = by_id(notebook, "step-0")
    cell.metadata |= {"execution": {"iopub.execute_input": "2024-01-01T00:00:00Z"}, "collapsed": True}
    cell.outputs = [nbformat.from_dict(o) for o in (
        stream("a"), stream("b\n"), figure("A bar."),
        {"output_type": "display_data", "metadata": {"isolated": True},
         "data": {"text/plain": "x", "application/vnd.jupyter.widget-view+json": {"model_id": "1"}}})]
    by_id(notebook, "step-1").id = "1c3e5a7b"
    by_id(notebook, "step-2").id = "step_2"
    by_id(notebook, "step-3").source += "\n\n"
    return notebook


def test_fix_writes_the_form_and_is_idempotent(faults):
    assert {fault.split(":")[0] for fault in faults(messy(), fixed=False)} == {"notebook", "step-0", "1c3e5a7b", "step_2"}
    assert faults(messy()) == []
    once = notebook_form.canonical(messy())
    fixed = nbformat.reads(once, 4)
    assert notebook_form.canonical(fixed) == once and once.endswith("}\n") and not once.endswith("\n\n")
    assert set(fixed.metadata) == {"kernelspec", "language_info", "book"}
    cell = by_id(fixed, "step-0")
    assert cell.metadata == {"tags": ["nbval-check-output"], "mystnb": {"image": {"alt": "A bar."}}}
    assert [out.get("text", out.get("data")) for out in cell.outputs] == ["ab\n", {"image/png": PNG}, {"text/plain": "x"}]
    assert [c.id for c in fixed.cells][5:7] == ["predict-code-1", "predict-code-2"]


def test_fix_leaves_its_argument_alone():
    notebook = messy()
    notebook_form.canonical(notebook)
    assert notebook == messy()


def test_fix_gives_ids_to_an_old_notebook(tmp_path):
    old = json.loads(notebook_form.canonical(good()))
    old["nbformat_minor"] = 4
    for cell in old["cells"]:
        del cell["id"]
    path = tmp_path / "10_small.ipynb"
    path.write_text(json.dumps(old), encoding="utf-8")
    assert any("4.5 is wanted" in fault for fault in notebook_form.faults(path))
    fixed = nbformat.reads(notebook_form.canonical(chapters.read(path)), 4)
    ids = [cell.id for cell in fixed.cells]
    assert ids[:3] == ["title", "title-text-1", "title-code-1"] and len(set(ids)) == len(ids)


@pytest.fixture
def command(monkeypatch, capsys):
    """command("--fix", path) -> (exit status, stdout) of tools.notebook_form."""
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["notebook_form", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            notebook_form.main()
        told = capsys.readouterr()
        assert told.err == ""
        return end.value.code, told.out
    return run


def test_the_command(tmp_path, command):
    path, broken = tmp_path / "10_small.ipynb", tmp_path / "20_broken.ipynb"
    path.write_text(nbformat.writes(messy()), encoding="utf-8")
    broken.write_text("{", encoding="utf-8")
    before = path.read_bytes()
    status, told = command(path, broken)
    assert status == 1 and path.read_bytes() == before
    assert "10_small.ipynb, step-0: its metadata are not in the canonical form\n" in told
    assert "20_broken.ipynb is not a notebook that can be read: " in told
    assert command("--fix", path) == (0, "") and path.read_bytes() != before
    assert command(path) == (0, "")


@pytest.mark.parametrize("source, binds, uses", [
    ("rows = [row for row in found]", {"rows"}, {"found"}),
    ("sizes = {name: size(name) for name in {n for n in found}}", {"sizes"}, {"size", "found"}),
    ("def f(x):\n    return [g(y) for y in x]", {"f"}, {"g"}),
    ("for row in [row for row in found]:\n    print(row)", {"row"}, {"found", "print", "row"}),
])
def test_the_variable_of_a_comprehension_is_no_name_of_the_cell(source, binds, uses):
    assert notebook_form.names(source) == (binds, uses)
