"""Honest cold starts: functions run in a new interpreter with a cache of its own.

A compilation leaves traces in the process (loaded modules, compiled code) and on disk
(Inductor's cache folder). A cold start can only be measured in a new process with a
new folder; `run_fresh` gives both, and leaves nothing running.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import inspect
import json
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from utils.environment import cache_home, cpu_name, find_compiler, temporary_home
from utils.report import scrub

MARK = "BOOK_FRESH"  # environment variable that every process started for a child inherits
TAIL = 2000          # characters of stderr kept for an error message


class FreshError(RuntimeError):
    """The child failed, ran out of time or ended without a result; the text says which."""


@dataclass(frozen=True)
class Fresh:
    """What a child returned. wall_s: from the start of its interpreter to its end; cpu_s:
    its CPU time and its finished children's; peak_bytes: its own largest resident
    memory (None where the system does not tell)."""

    result: object
    wall_s: float
    cpu_s: float
    peak_bytes: int | None


def run_fresh(f, *args, cache="cold", toolchain="warm", env=None, timeout_s=300.0) -> Fresh:
    """Run f(*args) in a new interpreter and wait for it.

    f: a function whose imports are inside it and whose arguments and result are JSON;
        or source text that reads `args` and sets `result`.
    cache: "cold" (a new Inductor folder, removed afterwards) or "warm:<name>" (a folder
        that lasts as long as this process and is shared by all calls with that name).
    toolchain: "warm" starts a new folder with Inductor's probes of this CPU and compiler
        already in it; "cold" pays for them.
    env: environment variables to set (a value of None unsets one).
    timeout_s: after this many seconds the child and all it started are killed.

    Raises FreshError, ValueError (bad cache or toolchain word, a function without source),
    TypeError (not JSON).
    """
    if toolchain not in ("warm", "cold"):
        raise ValueError(f"toolchain is 'warm' or 'cold', not {toolchain!r}")
    kind, _, name = cache.partition(":")
    if not (cache == "cold" or kind == "warm" and name.isidentifier()):
        raise ValueError(f"cache is 'cold' or 'warm:<name>', not {cache!r}")
    job = {"source": _source(f), "call": None if isinstance(f, str) else f.__name__,
           "args": json.loads(json.dumps(args))}

    with tempfile.TemporaryDirectory(dir=_process_folder(), prefix="fresh-",
                                     ignore_cleanup_errors=True) as folder:
        inductor = Path(_process_folder(), f"warm-{name}") if name else Path(folder, "inductor")
        if not inductor.exists():
            _start_cache(inductor, toolchain)
        job |= {"module": os.path.join(folder, "job.py"), "answer": os.path.join(folder, "answer.json")}
        return _run_child(job, folder, _child_env(inductor, env), timeout_s)


def own_cache() -> str:
    """Give this process its own Inductor cache folder, removed at exit; returns its path."""
    inductor = Path(_process_folder(), "inductor")
    if not inductor.exists():
        _start_cache(inductor, "warm")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(inductor)
    return str(inductor)


# --- the parent's side ------------------------------------------------------------


def _run_child(job, folder, env, timeout_s) -> Fresh:
    mark = env[MARK]
    with open(os.path.join(folder, "stdout"), "w+b") as out, \
            open(os.path.join(folder, "stderr"), "w+b") as err:
        start = time.perf_counter()
        child = subprocess.Popen([sys.executable, "-m", "utils.fresh"], stdin=subprocess.PIPE,
                                 stdout=out, stderr=err, env=env, start_new_session=True)
        try:
            # stdin stays open: when this process dies, by SIGKILL too, the child sees it close.
            child.stdin.write(json.dumps(job).encode() + b"\n")
            child.stdin.flush()
            child.wait(timeout_s)
            wall_s = time.perf_counter() - start
        except subprocess.TimeoutExpired:
            raise FreshError(f"The child did not finish within {timeout_s:g} s and was ended."
                             + _tail(err)) from None
        except BrokenPipeError:
            child.wait()
        finally:
            kill_marked(mark)
            _end_session(child.pid)
            child.wait()
            child.stdin.close()
        if child.returncode != 0:
            raise FreshError(f"The child ended with {_how(child.returncode)}." + _tail(err))
        try:
            answer = json.loads(Path(job["answer"]).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise FreshError("The child ended before it had a result." + _tail(err)) from None
    return Fresh(answer["result"], wall_s, answer["cpu_s"], answer["peak_bytes"])


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit status {code}"


def _tail(file) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - TAIL))
    text = file.read().decode("utf-8", "replace").strip()
    return "\n" + scrub(text) if text else ""


def _source(f) -> str:
    if isinstance(f, str):
        return f
    if f.__name__ == "<lambda>":
        raise ValueError("a lambda has no source of its own: pass a function with a name, or source text")
    try:
        return textwrap.dedent(inspect.getsource(f))
    except (OSError, TypeError) as error:
        raise ValueError(f"no source for {f!r}: pass a function written in a cell or file") from error


def _child_env(inductor, extra) -> dict:
    env = {**os.environ, "KINETO_LOG_LEVEL": "6", "TORCH_CPP_LOG_LEVEL": "ERROR",
           "TORCHINDUCTOR_CACHE_DIR": str(inductor), "TRITON_CACHE_DIR": str(inductor / "triton"),
           "NO_COLOR": "1",  # Jupyter asks for colours, and from 3.13 on Python puts them into tracebacks
           **(extra or {}),
           MARK: f"{os.getpid()}-{time.monotonic_ns()}"}
    return {k: str(v) for k, v in env.items() if v is not None}


def kill_marked(mark: str, name: str = MARK) -> None:
    """End every process that carries this mark in its environment, however it was
    started: a process group misses those that left the session."""
    import psutil

    def marked(process):
        try:
            return process.pid != os.getpid() and process.environ().get(name) == mark
        except (psutil.Error, OSError):
            return False  # ended meanwhile, or somebody else's

    for _ in range(10):  # one that starts another while we look leaves it for the next round
        found = [process for process in psutil.process_iter() if marked(process)]
        if not found:
            return
        for process in found:
            with contextlib.suppress(psutil.Error, OSError):
                process.kill()
        psutil.wait_procs(found, timeout=1)


def _end_session(leader: int) -> None:
    """End the session that a child began: it holds those that dropped the mark."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):  # nobody is left
            os.killpg(leader, signal.SIGKILL)


# --- cache folders --------------------------------------------------------------


def _process_folder() -> str:
    """This process's folder, removed at exit; leftovers of dead processes go first."""
    global _folder
    if _folder is None or _folder[0] != os.getpid():
        base = _writable(os.path.join(cache_home(), "processes"))
        _sweep(base)
        _folder = os.getpid(), tempfile.mkdtemp(prefix=f"{os.getpid()}-{_host()}-", dir=base)
        atexit.register(_remove, *_folder)
    return _folder[1]


_folder: tuple[int, str] | None = None


def _remove(pid, folder):
    if os.getpid() == pid:  # a forked worker runs its parent's exit handlers too
        shutil.rmtree(folder, ignore_errors=True)


def _writable(folder: str) -> str:
    """The folder, or one in the temporary folder when it cannot be written. Raises OSError."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        home = temporary_home()
        os.makedirs(home, mode=0o700, exist_ok=True)
        found = os.lstat(home)
        # What lies in there is loaded and run, so it must not be somebody else's.
        if not stat.S_ISDIR(found.st_mode) or hasattr(os, "getuid") and (found.st_uid, found.st_mode & 0o022) != (
                os.getuid(), 0):
            raise OSError(f"{home} can be written by others: remove it, or let BOOK_CACHE name a folder.") from None
        folder = os.path.join(home, os.path.basename(folder))
        os.makedirs(folder, exist_ok=True)
        return folder


def _host() -> str:
    """Hosts, and containers, may share a home; each knows its own processes only."""
    return re.sub(r"[^A-Za-z0-9]", "", platform.node())


def _sweep(base):
    """Remove what killed processes of this host left behind."""
    import psutil

    for entry in os.scandir(base):
        pid, host, *_ = entry.name.split("-") + [""]
        if pid.isdigit() and host == _host() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(entry.path, ignore_errors=True)


def _start_cache(folder: Path, toolchain: str) -> None:
    probes = _toolchain_folder() if toolchain == "warm" else None
    if probes:
        shutil.copytree(probes, folder)
    else:
        folder.mkdir(parents=True)


def _toolchain_folder() -> str | None:
    """The folder with Inductor's probes of this CPU and compiler, made on first use; None
    without a compiler. They cost seconds in every empty cache folder, whatever is compiled."""
    compiler = find_compiler()
    if not compiler:
        return None
    import torch

    about = "|".join([torch.__version__, cpu_name(), platform.python_version(), os.path.realpath(compiler),
                      str(os.stat(compiler).st_mtime_ns)])
    key = f"{torch.__version__}-{hashlib.sha256(about.encode()).hexdigest()[:12]}"
    base = _writable(os.path.join(cache_home(), "toolchain"))
    final = os.path.join(base, key)
    if os.path.isdir(final):
        return final
    print("Probing this CPU and compiler once for torch", torch.__version__, "(about 10 s) ...", flush=True)
    made = tempfile.mkdtemp(prefix="new-", dir=base)
    probe = "from torch._inductor.cpu_vec_isa import pick_vec_isa; pick_vec_isa()"
    done = subprocess.run([sys.executable, "-c", probe], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                          env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": made})
    try:
        if done.returncode == 0:
            os.rename(made, final)  # whole or not at all, also when two processes do it at once
    except OSError:
        pass
    shutil.rmtree(made, ignore_errors=True)
    return final if os.path.isdir(final) else None


# --- the child's side -------------------------------------------------------------


def _child() -> None:
    job = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    Path(job["module"]).write_text(job["source"], encoding="utf-8")
    space = {"__name__": "job", "__file__": job["module"], "args": job["args"]}
    # A real file, so that tracebacks and inspect.getsource show the code.
    exec(compile(job["source"], job["module"], "exec"), space)
    result = space[job["call"]](*job["args"]) if job["call"] else space.get("result")
    answer = {"result": result, "cpu_s": sum(os.times()[:4]), "peak_bytes": _peak_bytes()}
    Path(job["answer"] + ".part").write_text(json.dumps(answer), encoding="utf-8")
    os.replace(job["answer"] + ".part", job["answer"])


def _end_with_parent() -> None:
    """The parent holds our stdin open; when it ends, end all that carries our mark."""
    # os.read, not sys.stdin: a buffered reader's lock would hang the interpreter's exit.
    while os.read(0, 1):
        pass
    kill_marked(os.environ[MARK])
    _end_session(os.getpid())
    os._exit(1)


def _peak_bytes() -> int | None:
    # Not ru_maxrss: a child inherits it from its parent.
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        pass
    import psutil

    return getattr(psutil.Process().memory_info(), "peak_wset", None)


if __name__ == "__main__":
    _child()
