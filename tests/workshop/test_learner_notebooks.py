"""Every learner notebook runs top to bottom as it is, from the unzipped edition alone.

Expensive: `make test-workshop` makes the edition and runs this, on the default lane.
"""

import zipfile
from importlib.metadata import version

import nbformat
import pytest

from tools import chapters, setup_env, workshop
from tools.notebook_form import NO_CHAPTER

STEMS = [path.stem for path in chapters.find()]


@pytest.fixture(scope="session")
def edition(tmp_path_factory):
    assert version("torch").split("+")[0] == setup_env.DEFAULT, "learners have the default torch"
    made = workshop.BUILT / f"{workshop.NAME}.zip"
    assert made.exists(), "there is no workshop edition: run make workshop"
    folder = tmp_path_factory.mktemp("room")
    with zipfile.ZipFile(made) as file:
        file.extractall(folder)
    return folder / workshop.NAME


@pytest.mark.parametrize("stem", STEMS)
def test_it_runs_as_it_is(stem, edition):
    path = edition / "chapters" / f"{stem}.ipynb"
    notebook = chapters.read(path)
    where = "import tools, utils; print(tools.__file__, utils.__file__)"
    notebook.cells.append(nbformat.v4.new_code_cell(where, id="where"))
    env = {"BOOK_EFFORT": "test", "BOOK_RESULTS": str(edition / "results"),
           "PYTHONPATH": str(edition)}  # before the book that this environment has installed
    chapters.execute(notebook, path, env)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert code[-1].outputs[0].text.count(str(edition)) == 2, "it used files of the book, not of the edition"
    if stem[:2] not in NO_CHAPTER:
        answers = [cell for cell in code if cell.id.startswith("exercise-")]
        assert answers and all(cell.outputs for cell in answers)  # each starter is answered
