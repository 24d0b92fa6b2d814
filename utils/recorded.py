"""Results kept as plain JSON: a reader's own, and those of named machines.

`record` writes what a chapter measures to one file a chapter in the reader's cache;
`recorded` reads the files of named machines in recorded/. Both have one layout, that of
recorded.schema.json. Reading executes nothing, follows no path named in a file, and
leaves out, with a sentence, what does not keep to the layout.

    python -m utils.recorded check FILE...      is this file in order?
    python -m utils.recorded diff A B           two machines, or two versions
    python -m utils.recorded board [FOLDER]     all verdicts of all machines

Imports without torch.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import json
import math
import os
import platform
import re
import sys
import tempfile
import uuid
from datetime import datetime, timezone
from pathlib import Path

from utils.environment import cache_home, cpu_name, effort, output_of
from utils.load import OtherLoad
from utils.ratio import Ratio
from utils.report import ratio, rows
from utils.untrusted import LARGEST, UNPRINTABLE, Malformed, brief, read_json, schema_faults

REPO = Path(__file__).resolve().parent.parent
YOURS = "this-machine"  # the machine's name in a reader's own files
_NAME = re.compile(r"[0-9]{2}\.[a-z0-9_]{1,60}")


# --- writing: a chapter's own results -------------------------------------------


def record(name: str, value) -> None:
    """Keep a result under `name` ("20.steady": chapter, dot, snake_case).

    value: a `timing.Comparison`, or a list of flat dicts of str, int, float, bool, None.
    Raises ValueError or TypeError for another name or value: those are mistakes of the
    cell. That the folder cannot be written is not: it costs one printed sentence.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a result: wanted is 20.snake_case")
    if hasattr(value, "to_json"):
        entry = plain(value.to_json())
    elif isinstance(value, list) and all(isinstance(row, dict) for row in value):
        entry = {"kind": "rows", "rows": plain(value)}
        if any(isinstance(cell, dict | list) for row in entry["rows"] for cell in row.values()):
            raise TypeError(f"{name}: the cells of a row are text, numbers, bools or None")
    else:
        raise TypeError(f"{name}: wanted a Comparison or a list of dicts, got {type(value).__name__}")
    _keep(name[:2], "results", name, entry)


def record_verdict(chapter: str, claim: str, measured, word: str) -> None:
    """Keep a verdict; `utils.claims.verdict` calls it. It goes to the chapter this process
    recorded results for, so that a visit to another's claim leaves that one's file alone."""
    _keep(next(reversed(_chapters), chapter), "verdicts", claim, {"measured": plain(measured), "word": word})


def plain(value):
    """`value` as JSON data: NaN and infinity become None, numbers of other libraries
    Python's, and text is cut to what the layout allows."""
    if isinstance(value, dict):
        return {_text(str(key), 80): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, 500)
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    raise TypeError(f"a result cannot hold a {type(value).__name__}")


def _text(text: str, longest: int) -> str:
    """No unprintable characters and no angle brackets: results end up in pages."""
    return UNPRINTABLE.sub(" ", text).replace("<", "‹").replace(">", "›")[:longest]


_chapters: dict[str, dict] = {}  # what this process recorded, by chapter
_load = OtherLoad()
_complained = False


def _keep(chapter: str, part: str, name: str, entry) -> None:
    """Put an entry into the chapter's file. The first one of a process starts it anew,
    so that a file never mixes two runs."""
    global _complained
    data = _chapters.setdefault(chapter, {"results": {}, "verdicts": {}})
    data[part][name] = entry
    content = {"schema": 1, "machine": YOURS, "provenance": provenance(),
               "chapters": {chapter: {"run": _run(), **data}}}
    try:
        folder = own_folder()
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / f"{chapter}.json", content)
    except OSError as error:
        if not _complained:
            print(f"Your results are not kept: their folder cannot be written "
                  f"({error.strerror or type(error).__name__}).")
        _complained = True


def own_folder() -> Path:
    """Where a reader's own results are: BOOK_RESULTS, else in the book's cache."""
    return Path(os.environ.get("BOOK_RESULTS") or os.path.join(cache_home(), "results"))


def named_folder() -> Path:
    """Where the recorded files of named machines are: BOOK_RECORDED, else recorded/."""
    return Path(os.environ.get("BOOK_RECORDED") or REPO / "recorded")


def _replace(path: Path, content: dict) -> None:
    replace_file(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def replace_file(path: Path, text: str) -> None:
    """Write a whole new file beside the old one, then swap: a reader sees one or the other."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


# --- provenance -------------------------------------------------------------------


@functools.cache
def provenance() -> dict:
    """What is the same for all chapters: hardware and versions."""
    device, driver = _device()
    return {
        "cpu": _text(cpu_name(), 500),
        "cores": os.cpu_count() or 1,
        "capability": _capability(),
        "device": device,
        "driver": driver,
        "torch": _torch_version(),
        "python": platform.python_version(),
        "os": _text(_system(), 500),
    }


def _system() -> str:
    """The system by its public name; a kernel's build name can be a private one."""
    if platform.system() != "Linux":
        return platform.platform()
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = "Linux"
    kernel = re.match(r"[\d.]+", platform.release())
    return f"{name}, kernel {kernel[0] if kernel else 'unknown'}, {platform.machine()}"


def _run() -> dict:
    torch = sys.modules.get("torch")
    return {
        "id": _run_id(),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit(),
        "effort": effort(),
        "threads": torch.get_num_threads() if torch else None,
        "other_load": _load.share(),
    }


@functools.cache
def _run_id() -> str:
    """One id a process; BOOK_RUN joins the processes of one run of the whole book."""
    given = os.environ.get("BOOK_RUN", "")
    return given if re.fullmatch(r"[A-Za-z0-9-]{1,40}", given) else uuid.uuid4().hex[:12]


def _torch_version() -> str:
    torch = sys.modules.get("torch")
    try:
        return torch.__version__ if torch else importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "0.0.0"  # recorded without torch


def _capability() -> str | None:
    """The vector instructions that torch uses on this CPU, such as AVX2."""
    torch = sys.modules.get("torch")
    return torch.backends.cpu.get_cpu_capability() if torch else None


def _device() -> tuple[str, str | None]:
    """(device, driver version)."""
    torch = sys.modules.get("torch")
    if torch is None:
        return "cpu", None
    from utils.environment import pick_device

    kind = pick_device().type
    if kind == "cuda":
        driver = output_of(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]) or ""
        return _text(f"cuda: {torch.cuda.get_device_name(0)}", 500), _text(driver.split("\n")[0], 500) or None
    if kind == "xpu":
        found = torch.xpu.get_device_properties(0)
        return _text(f"xpu: {found.name}", 500), getattr(found, "driver_version", None)
    return kind, None


@functools.cache
def commit() -> str | None:
    """The book's commit, with +changes where tracked files differ from it, as this process
    found it; None outside git."""
    commit = output_of(["git", "-C", str(REPO), "rev-parse", "--short=12", "HEAD"]) or ""
    if not re.fullmatch("[0-9a-f]{7,40}", commit):
        return None
    changed = output_of(["git", "-C", str(REPO), "status", "--porcelain", "--untracked-files=no"])
    return commit + ("+changes" if changed else "")


# --- reading ------------------------------------------------------------------------


def check(path) -> list[str]:
    """The faults of a file of a named machine, each a sentence that begins with the
    file's name; an empty list when it is in order."""
    return _examine(Path(path))[1]


def recorded(name: str) -> list[tuple[str, str, dict]]:
    """What named machines recorded under `name`: (machine, torch version, entry), sorted.
    The entry is the stored JSON value: its "kind" is "comparison" or "rows". In a run that
    is to be those of a named machine (BOOK_MACHINE), what the run itself recorded stands
    for what it will replace: a page never shows the last run's rows beside this one's."""
    files, found = load(), {}
    if machine := os.environ.get("BOOK_MACHINE"):
        files.append({"machine": machine, "provenance": provenance(), "chapters": _chapters})
    for data in files:
        entry = data["chapters"].get(name[:2], {}).get("results", {}).get(name)
        if entry is not None:
            found[data["machine"], release(data)] = entry
    return [(*key, found[key]) for key in sorted(found, key=lambda key: (key[0], numbers(key[1])))]


def load(folder=None) -> list[dict]:
    """All files of a folder that are in order (`named_folder()` when None), by machine and
    version; a sentence for each that is left out."""
    return sorted(_in_order(Path(folder or named_folder())), key=lambda data: (data["machine"], numbers(release(data))))


def own() -> dict | None:
    """The reader's own results: all chapters run with the torch of the newest one."""
    files = list(_in_order(own_folder(), named=False))
    if not files:
        return None
    newest = max(files, key=lambda data: max(c["run"]["date"] for c in data["chapters"].values()))
    return {**newest, "chapters": {number: chapter for data in files if release(data) == release(newest)
                                   for number, chapter in data["chapters"].items()}}


def verdicts(data: dict) -> dict[str, dict]:
    """Claim -> what a file recorded about it ("measured", "word"); of a claim that several
    chapters judge, the last one's."""
    return {claim: found for _, chapter in sorted(data["chapters"].items())
            for claim, found in chapter["verdicts"].items()}


def release(data: dict) -> str:
    """The torch version without its build: 2.5.1+cpu is 2.5.1."""
    return data["provenance"]["torch"].split("+")[0]


def file_name(data: dict) -> str:
    """<machine>.torch-<version>.json"""
    return f"{data['machine']}.torch-{release(data)}.json"


def numbers(version: str) -> list[int]:
    """What versions are sorted by, those of nightly builds too: 2.10.0a0 is [2, 10, 0, 0]."""
    return [int(n) for n in re.findall(r"\d+", version)]


def _json_files(folder: Path) -> list[Path]:
    try:
        return sorted(p for p in folder.iterdir() if p.suffix == ".json" and p.name[0] != ".")
    except OSError:
        return []


_told = set()  # one sentence a fault and process: chapters read the folder often


def _in_order(folder: Path, named=True):
    """The data of the files in order, and a sentence for each of the others."""
    for path in _json_files(folder):
        data, faults = _examine(path, named)
        if not faults:
            yield data
        elif faults[0] not in _told:
            _told.add(faults[0])
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            print(f"Left out: {faults[0]}{more}")


def _examine(path: Path, named=True) -> tuple[dict | None, list[str]]:
    """(data, faults). named: does the file's name have to agree with its content?"""
    try:
        data = read_json(path)
        faults = _faults(data)
        if named and not faults and path.name != file_name(data):
            faults = [f"by its content it should be called {file_name(data)}."]
    except Malformed as error:
        data, faults = None, [str(error)]
    return data, [f"{brief(path.name, 80)[1:-1]}: {fault}" for fault in faults]


def _faults(data) -> list[str]:
    """What breaks the layout, and what a schema cannot say."""
    faults = schema_faults(data, "recorded.schema.json")
    if faults:
        return faults
    for number, chapter in data["chapters"].items():
        for name, entry in chapter["results"].items():
            if name[:2] != number:
                faults.append(f"{name} stands under chapter {number}.")
            if entry["kind"] == "comparison":
                if set(entry["entries"]) != {entry["baseline"], *entry["ratios"]}:
                    faults.append(f"{name} has entries without a ratio, or the reverse.")
                ratios = entry["ratios"].values()
                if any(not r["low"] <= r["value"] <= r["high"] for r in ratios):
                    faults.append(f"{name} has a value outside its interval.")
        for claim, found in chapter["verdicts"].items():
            r = found["measured"]
            if isinstance(r, dict) and not r["low"] <= r.get("value", r["low"]) <= r["high"]:
                faults.append(f"{claim} has a value outside its interval.")
    return faults


# --- from a run to recorded/ ------------------------------------------------------------


def merge(folder, machine: str, other_load: dict[str, float | None] | None = None) -> dict:
    """The chapter files of one run as the file of a named machine.

    folder: where the run's BOOK_RESULTS was. other_load: per chapter ("20"), what the
    caller measured from outside with `utils.load`; else what the chapter saw itself.
    Raises ValueError with a sentence when there is nothing, a file is not in order, or
    the chapters are not one run (BOOK_RUN) of one torch on one machine.
    """
    merged = None
    for path in _json_files(Path(folder)):
        data, faults = _examine(path, named=False)
        if faults:
            raise ValueError(faults[0])
        if merged is None:
            merged = {"schema": 1, "machine": machine, "provenance": data["provenance"], "chapters": {}}
        merged["chapters"].update(data["chapters"])
        for what in merged["provenance"] | data["provenance"]:
            if data["provenance"].get(what) != merged["provenance"].get(what):
                raise ValueError(f"{path.name}: its {what} is not that of the other chapters.")
        if len({chapter["run"]["id"] for chapter in merged["chapters"].values()}) > 1:
            raise ValueError(f"{path.name}: it belongs to another run than the other chapters.")
    if merged is None:
        raise ValueError("there are no results to merge.")
    for chapter, share in (other_load or {}).items():
        if chapter in merged["chapters"]:
            merged["chapters"][chapter]["run"]["other_load"] = share
    if faults := _faults(merged):
        raise ValueError(faults[0])
    return merged


def write(path, data: dict) -> None:
    """Replace the file of a named machine, if `data` is in order and belongs under that
    name. Raises ValueError with a sentence."""
    path = Path(path)
    faults = _faults(data)
    if not faults and path.name != file_name(data):
        faults = [f"by its content it should be called {file_name(data)}."]
    if not faults and len(json.dumps(data, indent=1, ensure_ascii=False).encode()) > LARGEST:
        faults = [f"it is larger than {LARGEST // 1_000_000} MB."]
    if faults:
        raise ValueError(f"{path.name}: {faults[0]}")
    _replace(path, data)


# --- commands ---------------------------------------------------------------------------


def diff(a: dict, b: dict) -> list[dict]:
    """Rows of what two files hold in common: ratios with intervals, verdicts that changed."""
    rows = []
    for chapter in sorted(set(a["chapters"]) & set(b["chapters"])):
        one, two = a["chapters"][chapter], b["chapters"][chapter]
        for name in sorted(set(one["results"]) & set(two["results"])):
            left, right = (part["results"][name].get("ratios", {}) for part in (one, two))
            rows += [{"what": f"{name} {case}"[:44], "A": ratio(Ratio(**left[case])), "B": ratio(Ratio(**right[case]))}
                     for case in left if case in right]
        rows += [{"what": claim, "A": one["verdicts"][claim]["word"][:19],
                  "B": two["verdicts"][claim]["word"][:19]}
                 for claim in sorted(set(one["verdicts"]) & set(two["verdicts"]))
                 if one["verdicts"][claim]["word"] != two["verdicts"][claim]["word"]]
    return rows


def board(files: list[dict]) -> list[dict]:
    """Rows of all verdicts: claim, machine, torch, verdict."""
    words = {(claim, data["machine"], release(data)): found["word"]
             for data in files for claim, found in verdicts(data).items()}
    order = sorted(words, key=lambda key: (*key[:2], numbers(key[2])))
    return [dict(zip(("claim", "machine", "torch"), key), verdict=words[key]) for key in order]


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m utils.recorded", description="Results of named machines.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="is a file in order?").add_argument("files", nargs="+")
    two = commands.add_parser("diff", help="compare two files")
    two.add_argument("a")
    two.add_argument("b")
    commands.add_parser("board", help="all verdicts").add_argument("folder", nargs="?")
    given = parser.parse_args(arguments)

    if given.command == "board":
        if given.folder is not None and not Path(given.folder).is_dir():
            print(f"There is no folder {given.folder}.")
            return 1
        mine = own() if given.folder is None else None
        rows(board(load(given.folder) + ([mine] if mine else [])))
        return 0
    files = given.files if given.command == "check" else [given.a, given.b]
    found = [_examine(Path(file)) for file in files]
    for fault in (fault for _, faults in found for fault in faults):
        print(fault)
    if any(faults for _, faults in found):
        return 1
    if given.command == "check":
        print(f"{len(files)} in order.")
    else:
        rows(diff(*(data for data, _ in found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
