"""The workshop edition: python -m tools.workshop

Writes _build/workshop/: one folder with all that a learner needs, and its zip. The
notebooks in it are made from the chapters, never edited: outputs are cleared, each
solution is replaced by a link to the site, the instructor's note goes, starters and
checks stay as they are. Needs no torch.
"""

import os
import re
import shutil
import zipfile
from pathlib import Path

import nbformat

from tools import chapters, notebook_form, site
from tools.chapters import REPO
from tools.setup_env import DEFAULT
from utils.recorded import replace_file

BUILT = REPO / "_build" / "workshop"
NAME = "pytorch-2.5-measured-workshop"
SITE = "../site/chapters"  # from a notebook to the pages
# What learners run. The other tools test and build the book, which takes its tests.
TOOLS = ("__init__", "chapters", "clean", "notebook_form", "prose", "record", "setup_env")
COPIED = ("LICENSE", "benchmarks/aa.json", "claims.yml", f"constraints/torch-{DEFAULT}.txt", "pyproject.toml",
          "recorded", "requirements.txt", "utils", *(f"tools/{name}.py" for name in TOOLS))
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info", "*.so", "*.pyd", "*.ipynb", "*.md")


# --- the learner's notebooks --------------------------------------------------------


def learner(notebook, page: str) -> str:
    """The text of a chapter's learner edition. page: the chapter's name on the site, such
    as 20_regional_compilation."""
    made = nbformat.from_dict(notebook)  # a copy
    made.metadata.get("book", {}).pop("run", None)  # the id of outputs that are cleared
    made.cells[0].source += f"\n\n[This chapter on the site]({SITE}/{page}.html), with outputs and solutions."
    heading = ""
    for place, cell in enumerate(made.cells):
        tags = set(cell.metadata.get("tags", []))
        if cell.cell_type == "markdown":
            heading = (re.findall(r"^### (Exercise .+)$", cell.source, re.M) or [heading])[-1]
            cell.source = re.sub(r"\]\((\w+)\.md(#[^)]*)?\)", rf"]({SITE}/\1.html\2)", without_note(cell.source))
        elif "solution" in tags:
            text = f"[A solution]({SITE}/{page}.html#{anchor(heading)}) is folded on the site."
            made.cells[place] = nbformat.v4.new_markdown_cell(text, id=cell.id)
        else:
            cell.outputs, cell.execution_count = [], None
            # Without outputs there is nothing to compare with.
            cell.metadata["tags"] = sorted(tags - {notebook_form.CHECKED})
    return notebook_form.canonical(made)


def without_note(source: str) -> str:
    """A Markdown text without what is meant for the instructor alone."""
    return re.sub(r"<details>\s*<summary>Instructor note</summary>.*?</details>\n*", "", source, flags=re.S)


def anchor(heading: str) -> str:
    """The id that the site gives a heading."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


# --- the folder and its zip -----------------------------------------------------------


def write(folder: Path, html: Path):
    """Everything a learner needs, in `folder` (made anew); html: the built site."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in COPIED:
        _copy(REPO / name, folder / name)
    _copy(REPO / "chapters", folder / "chapters")  # own_device/; the pages are in the site
    for path in chapters.find():
        replace_file(folder / "chapters" / path.name, learner(chapters.read(path), path.stem))
    shutil.copytree(html, folder / "site", ignore=shutil.ignore_patterns(".*"))
    _copy(REPO / "tools" / "START.md", folder / "START.md")
    replace_file(folder / "wheels.txt", wheel_list())


def _copy(source: Path, target: Path):
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=LEFT_OUT)
    else:
        shutil.copyfile(source, target)


def wheel_list() -> str:
    """The lane's pins as a requirements file, with the markers of system and Python."""
    pins = (REPO / "constraints" / f"torch-{DEFAULT}.txt").read_text(encoding="utf-8").splitlines()
    return "\n".join([
        f"# What a room needs for torch {DEFAULT}: make wheelhouse downloads it for one system and Python.",
        "# A torch for the CPU alone needs no line that begins with cuda, nvidia or triton.",
        *(line for line in pins if line and not line.startswith("#"))]) + "\n"


def pack(folder: Path, target: Path):
    """A zip that is the same, byte for byte, for the same files."""
    made = target.with_suffix(".part")  # an interrupted zip opens without complaint
    with zipfile.ZipFile(made, "w") as file:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            entry = zipfile.ZipInfo(f"{folder.name}/{path.relative_to(folder).as_posix()}")  # dated 1980
            entry.create_system, entry.external_attr = 3, 0o644 << 16  # on Windows too
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, path.read_bytes())
    os.replace(made, target)


def main():
    os.environ.pop("REPO_URL", None)  # a room has no use for buttons that lead outside
    site.build()
    folder = BUILT / NAME
    write(folder, site.HTML)
    pack(folder, folder.parent / f"{NAME}.zip")
    size = (folder.parent / f"{NAME}.zip").stat().st_size
    print(f"The workshop edition is in _build/workshop/: {NAME}.zip, {size / 1e6:.0f} MB; START.md says how to begin.")


if __name__ == "__main__":
    main()
