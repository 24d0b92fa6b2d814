"""Every check of an exercise says "not yet" to the starter and to typical wrong answers,
and "right" to the solution.

A chapter takes too long to run as a whole: of the cells before an exercise only the
statements are run that define what its own cells use.
"""

import ast
import re
import sys
import types
from pathlib import Path

import pytest
import torch
import yaml

from tools import chapters
from tools.notebook_form import names
from utils.fresh import own_cache

WRONG = yaml.safe_load((Path(__file__).parent / "wrong_answers.yml").read_text(encoding="utf-8"))


def exercises() -> list:
    return [pytest.param(path, found[2], id=f"{found[1]}.{found[2]}")
            for path in chapters.find() for cell in chapters.read(path).cells
            if cell.cell_type == "code" and (found := re.fullmatch(r"exercise-(\d\d)-(\d)", cell.id))]


def statements(source):
    """(text, names it binds, names it uses) of each statement of a cell."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        text = "\n".join(lines[first - 1:node.end_lineno])
        yield text, *names(text)


def lifted(cells, wanted):
    """The statements of cells that `wanted` names need, in their order, and those that set
    torch's threads, which what follows needs though they bind no name."""
    found = [part for cell in cells for part in statements(cell.source)]
    needed, kept = set(wanted), set()
    more = {n for n, (text, binds, _) in enumerate(found) if not binds and "torch.set_num_threads(" in text}
    while more := (more | {n for n, (_, binds, _) in enumerate(found) if binds & needed}) - kept:
        kept |= more
        needed |= {name for n in more for name in found[n][2]}
    return "\n\n\n".join(found[n][0] for n in sorted(kept))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run(source) executes source in a module of its own (run.space), from a file: Dynamo
    imports the module by its name and keeps what it found, so each test's name is its own;
    inspect.getsource reads the file."""
    monkeypatch.chdir(chapters.REPO / "chapters")
    own_cache()  # in another run's folder Inductor would find what it tuned, and not tune again
    monkeypatch.setenv("BOOK_RESULTS", str(tmp_path / "results"))
    module = types.ModuleType(tmp_path.name)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    torch.compiler.reset()
    threads = torch.get_num_threads()

    def execute(source):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.py"
        path.write_text(source, encoding="utf-8")
        exec(compile(source, str(path), "exec"), vars(module))
    execute.space = vars(module)
    yield execute
    torch.set_num_threads(threads)
    torch.compiler.reset()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path, number", exercises())
def test_exercise(path, number, run):
    chapter, cells = path.stem[:2], [c for c in chapters.read(path).cells if c.cell_type == "code"]
    ids = [c.id for c in cells]
    starter, solution = (cells[ids.index(f"{part}-{chapter}-{number}")] for part in ("exercise", "solution"))
    before = [c for c in cells[:ids.index(starter.id)] if "solution" not in c.metadata.get("tags", [])]
    check, key = f"check_{chapter}_{number}", f"{chapter}.{number}"
    wrong = WRONG.get(key, [])
    assert wrong, f"tests/wrong_answers.yml has no wrong answer to {key}"
    uses = {check}.union(*(names(source)[1] for source in (starter.source, solution.source, *wrong)))

    said = []
    run(lifted(before, uses))
    asked = run.space[check]

    def asking(answer):
        said.append(asked(answer))
        return said[-1]

    run.space[check] = asking
    run(starter.source)
    assert said and all(word.startswith("not yet") for word in said), f"the starter got {said}"
    for source in wrong:
        run(source)
        assert asking(run.space["answer"]).startswith("not yet: "), f"a wrong answer got {said[-1]!r}:\n{source}"
    said.clear()
    run(solution.source)
    assert said and set(said) == {"right"}, f"the solution got {said}"


def test_wrong_answers_belong_to_exercises():
    known = {param.id for param in exercises()}
    assert set(WRONG) <= known, f"no such exercise: {', '.join(sorted(set(WRONG) - known))}"


def test_what_is_lifted():
    def cell(source):
        return type("Cell", (), {"source": source})

    cells = [cell("import math\nslow = 1 / 0"), cell("@staticmethod\ndef f(x):\n    return g(x)\nslow2 = f(1)"),
             cell("def g(y):\n    slow = y\n    return math.sqrt(slow)"),
             cell("few = 1\nif few:\n    torch.set_num_threads(few)"),
             cell("def slow3():\n    torch.set_num_threads(2)")]
    assert lifted(cells, {"f"}) == ("import math\n\n\n@staticmethod\ndef f(x):\n    return g(x)\n\n\n"
                                    "def g(y):\n    slow = y\n    return math.sqrt(slow)\n\n\n"
                                    "few = 1\n\n\nif few:\n    torch.set_num_threads(few)")
