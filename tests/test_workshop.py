"""The workshop edition: what learners get is the chapters without what is not theirs.

That its notebooks run is asked by `make test-workshop`; that its links to the site lead
somewhere, by the browser tests.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import chapters, notebook_form, setup_env, wheelhouse, workshop
from tools.chapters import REPO
from utils import preflight

CHAPTERS = {path.stem: path for path in chapters.find()}


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    """The unzipped edition, with a site of one page."""
    place = tmp_path_factory.mktemp("edition")
    (place / "html" / "chapters").mkdir(parents=True)
    (place / "html" / "index.html").write_text("<p>The site.</p>", encoding="utf-8")
    (place / "html" / ".buildinfo").write_text("when", encoding="utf-8")
    workshop.write(place / "made" / "room", place / "html")
    workshop.pack(place / "made" / "room", place / "room.zip")
    with zipfile.ZipFile(place / "room.zip") as file:
        file.extractall(place)
    return place / "room"


def code(notebook):
    """Id -> code cell."""
    return {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}


# --- notebooks ------------------------------------------------------------------------


@pytest.fixture(scope="module", params=CHAPTERS)
def stem(request):
    return request.param


@pytest.fixture(scope="module")
def pair(stem, edition):
    """(the chapter, its learner edition); read once for all tests, as reading checks the format"""
    return chapters.read(CHAPTERS[stem]), chapters.read(edition / "chapters" / f"{stem}.ipynb")


def test_every_cell_but_the_solutions_is_as_it_was(pair):
    chapter, learner = pair
    kept = {name: cell.source for name, cell in code(chapter).items()
            if "solution" not in cell.metadata.get("tags", [])}
    assert {name: cell.source for name, cell in code(learner).items()} == kept
    assert list(code(learner)) == list(kept)
    assert [cell.id for cell in learner.cells] == [cell.id for cell in chapter.cells]


def test_nothing_was_run_and_nothing_is_solved(pair):
    chapter, learner = pair
    assert not any(cell.outputs or cell.execution_count for cell in code(learner).values())
    assert "run" not in learner.metadata.get("book", {})
    tags = {tag for cell in learner.cells for tag in cell.metadata.get("tags", [])}
    assert not tags & {"solution", "nbval-check-output"}
    text = "\n".join(cell.source for cell in learner.cells)
    for name, cell in code(chapter).items():
        if name.startswith("solution-"):
            assert cell.source not in text
            lines = [line for line in cell.source.splitlines() if "_solution" in line]
            assert not any(line in text for line in lines)


def test_each_solution_is_a_link_to_its_exercise(pair):
    chapter, learner = pair
    solved = [cell for cell in learner.cells if cell.id.startswith("solution-")]
    assert len(solved) == sum(name.startswith("solution-") for name in code(chapter))
    for cell in solved:
        number, k = cell.id.split("-")[1:]
        assert cell.cell_type == "markdown"
        assert f"{number}_" in cell.source and f"#exercise-{number}-{k}-" in cell.source


def test_the_instructor_keeps_the_notes(pair):
    chapter, learner = pair
    before, after = ("\n".join(cell.source for cell in notebook.cells) for notebook in pair)
    assert "Instructor note" not in after
    assert after.count("<details>") == before.count("<details>") - before.count("Instructor note")
    assert after.count("</details>") == after.count("<details>")


def test_links_stay_inside(stem, pair, edition):
    text = "\n".join(cell.source for cell in pair[1].cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert f"{workshop.SITE}/{stem}.html" in links
    for link in links:
        if not link.startswith(("https://", workshop.SITE + "/", "#")):
            assert (edition / "chapters" / link).is_file(), link


def test_the_form_of_the_book(edition):
    for stem in CHAPTERS:
        path = edition / "chapters" / f"{stem}.ipynb"
        assert path.read_text(encoding="utf-8") == notebook_form.canonical(chapters.read(path))


# --- the folder -------------------------------------------------------------------------


def test_what_a_chapter_opens_is_there(edition):
    learners = [chapters.read(edition / "chapters" / f"{stem}.ipynb") for stem in CHAPTERS]
    opened = {found for learner in learners for cell in code(learner).values()
              for found in re.findall(r"""["'](\.\./[\w./-]+|own_device[\w/.-]*)["']""", cell.source)}
    assert "../benchmarks/aa.json" in opened
    for name in opened:
        assert (edition / "chapters" / name).exists(), name
    own = {path.relative_to(REPO) for path in (REPO / "chapters" / "own_device").rglob("*")
           if path.suffix in (".py", ".cpp")}
    assert own and all((edition / path).is_file() for path in own)
    files, kept = ({path.name for path in (place / "recorded").glob("*.json")} for place in (REPO, edition))
    assert files and kept == files


def test_its_commands_start_from_the_zip_alone(edition):
    """Every module can be imported, and none comes from the book's own folder."""
    modules = [".".join(path.relative_to(edition).with_suffix("").parts)
               for folder in ("utils", "tools") for path in sorted((edition / folder).glob("*.py"))]
    script = (f"import sys, importlib; found = [importlib.import_module(name) for name in {modules}]\n"
              "from utils import claims, recorded\n"
              "assert len(claims.load()) > 30 and len(recorded.load()) > 1\n"
              "print(*{m.__file__ for m in found}, sep='\\n')")
    done = subprocess.run([sys.executable, "-c", script], cwd=edition, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "tools.record" in modules and all(line.startswith(str(edition)) for line in done.stdout.splitlines())


def test_the_machine_check_knows_the_chapters_of_the_zip(edition, tmp_path):
    code = ("import json; from utils import preflight as p; "
            "print(json.dumps([p.chapters(), p.reference(), p.committed_gates(), p.setup_command()]))")
    done = subprocess.run([sys.executable, "-c", code], cwd=edition, capture_output=True, text=True)
    *found, setup = json.loads(done.stdout)
    assert found == json.loads(json.dumps([preflight.chapters(), preflight.reference(), preflight.committed_gates()]))
    assert "tools/setup_env.py lane" in setup
    (tmp_path / "torch.py").write_text("raise ImportError('broken')")
    done = subprocess.run([sys.executable, "utils/environment.py", "--quick"], cwd=edition, capture_output=True,
                          text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1 and done.stdout.count("\nred ") == 1 + len(preflight.chapters()), done.stdout


def test_the_way_to_the_first_chapter_is_two_commands(edition):
    text = (edition / "START.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```", text, re.M | re.S)[:2]
    for block in blocks:
        setup, lab = block.splitlines()
        assert setup.endswith("tools/setup_env.py lane") and f"torch-{setup_env.DEFAULT}" in lab
        assert (edition / re.search(r"lab/tree/(\S+)", lab)[1]).is_file()
    for name in re.findall(r"(?:python3|py -3.12) ([\w/]+\.py)", text):
        assert (edition / name).is_file(), name
    done = subprocess.run([sys.executable, "tools/setup_env.py", "lane", "--wheels", "lost"], cwd=edition,
                          capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("There is no folder ")


def test_the_hub_of_the_instructors_page_serves_this_edition():
    """Its configuration was tried with a JupyterHub; here only its names can be compared."""
    page = (REPO / "chapters" / "instructor.md").read_text(encoding="utf-8")
    [config] = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    c = SimpleNamespace(Spawner=SimpleNamespace())
    exec(config, {"c": c})
    assert c.Spawner.cmd == [f"/srv/{workshop.NAME}/.venv/torch-{setup_env.DEFAULT}/bin/jupyterhub-singleuser"]
    ada = SimpleNamespace(user=SimpleNamespace(name="ada"))
    assert c.Spawner.environment["PYTHONPATH"](ada) == f"/home/ada/{workshop.NAME}"
    assert f"lab/tree/{workshop.NAME}/chapters/00_measure.ipynb" in page
    assert f"pip install jupyterhub nbgitpuller -c constraints/torch-{setup_env.DEFAULT}.txt" in page


def test_only_what_learners_use(edition):
    files = [path.relative_to(edition).as_posix() for path in edition.rglob("*") if path.is_file()]
    assert not [name for name in files if name.startswith("tests/") or "__pycache__" in name or "/." in name]
    assert "site/index.html" in files and "wheels.txt" in files and "utils/recorded.schema.json" in files


def test_the_same_book_makes_the_same_zip(edition, tmp_path):
    html = edition.parent / "html"
    for name in ("a", "b"):
        workshop.write(tmp_path / name / "room", html)
        workshop.pack(tmp_path / name / "room", tmp_path / f"{name}.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    (tmp_path / "b" / "room" / "START.md").write_text("changed", encoding="utf-8")
    workshop.pack(tmp_path / "b" / "room", tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() != (tmp_path / "b.zip").read_bytes()


def test_the_site_in_it_has_no_buttons_that_lead_outside(monkeypatch):
    def build():
        raise SystemExit(f"built for {os.environ.get('REPO_URL')}")

    monkeypatch.setenv("REPO_URL", "https://github.com/someone/something")
    monkeypatch.setattr(workshop.site, "build", build)
    with pytest.raises(SystemExit, match="built for None"):
        workshop.main()


# --- wheels -----------------------------------------------------------------------------


PINS = """# a comment==1
always==1.0
old==1.1 ; python_full_version < '3.11'
windows==1.2 ; sys_platform == 'win32'
both==1.3 ; python_full_version >= '3.11' and sys_platform == 'linux'
apple==1.4 ; platform_machine == 'arm64' and sys_platform == 'darwin'
nvidia-x==1.5 ; sys_platform == 'linux'
patch==1.6 ; python_full_version < '3.13.5'
patch==1.7 ; python_full_version >= '3.13.5'
"""


@pytest.mark.parametrize("system, python, cpu, names", [
    ("linux", "3.10.0", False, "always old nvidia-x patch"), ("linux", "3.12.0", False, "always both nvidia-x patch"),
    ("linux", "3.12.0", True, "always both patch"), ("windows", "3.12.0", False, "always windows patch"),
    ("macos", "3.10.0", True, "always old apple patch")])
def test_the_pins_of_a_system_and_a_python(system, python, cpu, names):
    assert [pin.split("==")[0] for pin in wheelhouse.wanted(PINS, system, python, cpu)] == names.split()


@pytest.mark.parametrize("system", wheelhouse.PLATFORMS)
def test_a_wheelhouse_has_all_that_the_book_asks_for(system):
    text = (REPO / "constraints" / f"torch-{setup_env.DEFAULT}.txt").read_text(encoding="utf-8")
    found = [pin.split("==")[0] for pin in wheelhouse.wanted(text, system, "3.12.0", cpu=True)]
    asked = re.findall(r"^([a-z][\w-]+)>=", (REPO / "requirements.txt").read_text(encoding="utf-8"), re.M)
    assert set(asked) <= set(found) and len(found) == len(set(found))
    assert "setuptools" in found  # builds the book itself, offline
    command = wheelhouse.arguments(["a==1"], system, "3.12", "")
    assert command[-1] == "a==1" and "--no-deps" in command and wheelhouse.PLATFORMS[system][0] in command


def test_a_pin_of_a_later_patch_is_downloaded_too(tmp_path, monkeypatch, capsys):
    """Python 3.13.0 and 3.13.9 in one room: two versions of a package, which pip takes one by one."""
    (tmp_path / "constraints").mkdir()
    (tmp_path / "constraints" / f"torch-{setup_env.DEFAULT}.txt").write_text(PINS + "torch==9\n", encoding="utf-8")
    asked = []
    for name, value in (("REPO", tmp_path), ("FOLDER", tmp_path), ("download", asked.append)):
        monkeypatch.setattr(wheelhouse, name, value)
    words = ["--system", "windows", "--python", "3.13", "--index", "https://example.org/cpu"]
    monkeypatch.setattr(sys, "argv", ["wheelhouse", *words])
    wheelhouse.main()
    told = [(command[command.index("--python-version") + 1], "--extra-index-url" in command,
             [word for word in command if "==" in word]) for command in asked]
    assert told == [("3.13.0", True, ["torch==9"]), ("3.13.0", False, ["always==1.0", "windows==1.2", "patch==1.6"]),
                    ("3.13.99", False, ["patch==1.7"])]
    assert "Downloading 5 packages for windows, Python 3.13" in capsys.readouterr().out


def test_the_wheel_list_is_that_of_the_lane():
    lines = workshop.wheel_list().splitlines()
    pins = (REPO / f"constraints/torch-{setup_env.DEFAULT}.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == [line for line in pins if line and line[0] != "#"]


@pytest.mark.parametrize("words, said", [
    (["--python", "3.9"], "runs on 3.10 to 3.13"), (["--python", "3"], "runs on 3.10 to 3.13"),
    (["--index", "https://example.org/whl/cu126"], "one of CPU builds")])
def test_a_wheelhouse_that_cannot_be_is_one_sentence(words, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["wheelhouse", *words])
    with pytest.raises(SystemExit) as end:
        wheelhouse.main()
    told = capsys.readouterr().err
    assert end.value.code == 2 and said in told and len(told.splitlines()) == 1


def test_the_setup_installs_from_a_folder_of_wheels(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(setup_env, "REPO", str(tmp_path))
    assert setup_env.wheels("") == []
    (tmp_path / "wheelhouse").mkdir()
    assert setup_env.wheels("") == ["--no-index", "--find-links", str(tmp_path / "wheelhouse")]
    (tmp_path / "stick").mkdir()
    assert setup_env.wheels(str(tmp_path / "stick"))[-1] == str(tmp_path / "stick")
    assert "Installing from stick, without the network" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        setup_env.wheels(str(tmp_path / "lost"))


def test_a_lane_is_made_from_the_wheels_alone(tmp_path, monkeypatch):
    """Both steps of the setup are given the folder and no index."""
    steps = []
    monkeypatch.setattr(setup_env, "make", lambda name, describe, *given: steps.extend(given))
    monkeypatch.setattr(sys, "argv", ["setup_env", "lane", "--wheels", str(tmp_path), "--index", "https://example.org"])
    setup_env.main()
    for _, arguments in steps:
        given = arguments("folder")
        assert given[-3:] == ["--no-index", "--find-links", str(tmp_path)] and "https://example.org" not in given
    assert len(steps) == 2


def test_an_empty_folder_of_wheels_is_one_sentence(edition, tmp_path, monkeypatch, capfd):
    """With a real pip, which asks nobody: a copy of this environment's, as to unpack one takes seconds."""
    def create(folder, with_pip, **how):
        assert with_pip
        made(folder, **how)
        [packages] = (path for path in Path(folder).rglob("site-packages") if path.is_dir())
        shutil.copytree(distribution("pip").locate_file("pip"), packages / "pip")

    made = setup_env.venv.create
    monkeypatch.setattr(setup_env.venv, "create", create)
    monkeypatch.setattr(setup_env, "REPO", str(edition))
    monkeypatch.setattr(sys, "argv", ["setup_env", "lane", "--wheels", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        setup_env.main()
    told = capfd.readouterr().err
    assert end.value.code == 2 and told.startswith(f"The wheelhouse lacks torch=={setup_env.DEFAULT} for"), told
    assert len(told.splitlines()) == 1
