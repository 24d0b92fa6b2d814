"""The machine, the setup cell and the gates; `python -m utils.environment` is the preflight
check of utils.preflight.

The check has to run where nothing is installed, on an old Python too, to be able to
say so: only the standard library at the top, and no syntax newer than Python 3.6.
"""

import contextlib
import functools
import io
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

PYTHONS = {"2.5": ((3, 10), (3, 12)), "": ((3, 10), (3, 13))}  # by torch release; "" is any other
EFFORTS = ("test", "read", "publish")
# The same sentence for the setup cell and the machine check; torch says it beside a line of its own source.
SLOW_GUARDS = "A fault of Python 3.13.0 slows the guards of compiled code; 3.13.1 is without it."


def effort():
    """How much to measure: BOOK_EFFORT, one of test, read (default), publish.

    Raises ValueError for another word.
    """
    value = os.environ.get("BOOK_EFFORT", "read")
    if value not in EFFORTS:
        raise ValueError("BOOK_EFFORT is %r; it can be %s" % (value, ", ".join(EFFORTS)))
    return value


def sizes(**by_effort):
    """The value for this effort: sizes(test=4, read=12, publish=96)."""
    if set(by_effort) != set(EFFORTS):
        raise ValueError("sizes wants test=, read= and publish=")
    return by_effort[effort()]


def cache_home():
    """Folder of everything the book keeps outside the repository; `make clean` removes it.
    BOOK_CACHE names another place for it: the folder there is still the book's own, as the
    place may hold more."""
    name = "pytorch-2-5-measured"
    if os.environ.get("BOOK_CACHE"):
        return os.path.join(os.path.abspath(os.path.expanduser(os.environ["BOOK_CACHE"])), name)
    home = os.path.expanduser("~")
    base = {
        "Windows": os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local"),
        "Darwin": os.path.join(home, "Library", "Caches"),
    }.get(platform.system()) or os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, name)


def temporary_home():
    """Takes the place of `cache_home` where that cannot be written. It is each user's own, as
    the temporary folder is everybody's on most systems; `make clean` removes it too."""
    user = os.getuid() if hasattr(os, "getuid") else "own"
    return os.path.join(tempfile.gettempdir(), "pytorch-2-5-measured-%s" % user)


# --- the setup cell -----------------------------------------------------------


class Here:
    """What a chapter asks about the place it runs in. Made by `begin`.

    device: torch.device; release: torch's version without its build; torch: (major,
    minor); threads: those torch uses; effort: see `effort`.
    """

    def __init__(self):
        import torch

        self.device = pick_device()
        self.release = torch.__version__.split("+")[0]
        self.torch = torch_version()
        self.threads = torch.get_num_threads()
        self.effort = effort()

    def __repr__(self):
        return "torch %s on %s, %d threads, effort %s" % (
            self.release, self.device.type, self.threads, self.effort)


def begin():
    """The setup cell of every chapter: own Inductor cache, quiet logs, fixed seed, a banner.

    The cache folder is this process's alone and removed at exit: otherwise the FX graph
    cache (on by default since 2.5) makes the second run's "first call" a warm one.
    Returns a `Here`.
    """
    if "torch" not in sys.modules:
        # Read when torch is imported: the profiler's own lines, C++ warnings.
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from utils.fresh import own_cache

    own_cache()
    import torch

    # A CUDA build has a line to say on a machine with nvcc and no GPU: 2.5 prints it, newer ones log it.
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
    with contextlib.redirect_stderr(io.StringIO()):
        import torch.utils.cpp_extension
    warnings.filterwarnings("ignore", message="Guards may run slower on Python 3.13.0")  # `_missing` tells it
    torch.manual_seed(0)
    here = Here()
    print("Python %s, torch %s, %s" % (platform.python_version(), torch.__version__, _device_name(here.device)))
    print("%d threads, effort %s" % (here.threads, here.effort))
    for line in _missing(here.device):
        print(line)
    return here


def pick_device():
    """CUDA, XPU or MPS where torch can compute on one, else the CPU."""
    import torch

    for name in seen_devices():
        if _computes(name):
            return torch.device(name)
    return torch.device("cpu")


def seen_devices():
    """The kinds of GPU that torch sees here, the first choice first."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a build for a GPU whose driver is missing says so, each time
        return [name for name, there in (
            ("cuda", torch.cuda.is_available), ("xpu", lambda: hasattr(torch, "xpu") and torch.xpu.is_available()),
            ("mps", torch.backends.mps.is_available)) if there()]


@functools.lru_cache(None)
def _computes(device):
    """A GPU can be seen by a torch that was built without kernels for it."""
    import torch

    try:
        return torch.ones(2, device=device).add_(1).cpu().sum().item() == 4
    except RuntimeError:
        return False


def _device_name(device):
    import torch

    if device.type in ("cuda", "xpu"):
        return getattr(torch, device.type).get_device_name(0)
    return "%s (%s)" % (cpu_name(), device.type)


def _missing(device):
    """One sentence for each thing that this machine lacks and the book would use."""
    for name in seen_devices()[:1] if device.type == "cpu" else ():
        yield ("torch sees a GPU here (%s) and cannot compute on it: a build for it may, see TORCH_INDEX in the README."
               % name)
    if slow_guards():
        yield SLOW_GUARDS
    ok, reason = gate("compiler")
    if not ok:
        yield reason


def slow_guards():
    """Is this the one Python whose dictionaries Dynamo cannot watch (cpython issue 125608)?"""
    return sys.version_info[:3] == (3, 13, 0)


def is_x86():
    """A CPU of 64 bits as PCs have it, under the names that systems give it."""
    return platform.machine() in ("x86_64", "AMD64")


def cpu_name():
    """The CPU's name as its system gives it."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.lower().startswith("model name"):
                    return line.split(":", 1)[1].strip()
    if sys.platform == "darwin":
        found = output_of(["sysctl", "-n", "machdep.cpu.brand_string"])
        if found:
            return found
    return platform.processor() or platform.machine()


# --- gates: what this torch on this machine can do, and why --------------------


class Gate(tuple):
    """(ok, reason); true when the thing works here. `reason` is one sentence either way."""

    def __new__(cls, ok, reason):
        return super().__new__(cls, (bool(ok), reason))

    ok = property(lambda self: self[0])
    reason = property(lambda self: self[1])

    def __bool__(self):
        return self[0]


def torch_version():
    """(major, minor) of the installed torch."""
    import torch

    return tuple(int(n) for n in re.findall(r"\d+", torch.__version__)[:2])


def find_compiler():
    """The C++ compiler Inductor would use (CXX first, as Inductor does), or None."""
    named = os.environ.get("CXX")
    names = [named] if named else {"Windows": ["cl"], "Darwin": ["clang++"]}.get(
        platform.system(), ["g++"])
    return next((path for path in map(shutil.which, names) if path), None)


COMPILER_FIX = {
    "Windows": "install the Visual Studio Build Tools and start from their x64 Native Tools Command Prompt",
    "Darwin": "run xcode-select --install",
}.get(platform.system(), "install g++ (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++)")


def _compiler():
    path = find_compiler()
    if not path:
        return Gate(False, "No C++ compiler was found, so nothing can be compiled here: %s." % COMPILER_FIX)
    if platform.system() == "Windows":
        if os.environ.get("VSCMD_ARG_TGT_ARCH") == "x86":
            return Gate(False, "This prompt compiles for 32 bits, and Python has 64: "
                        "start from the x64 Native Tools Command Prompt.")
        return Gate(True, "A C++ compiler was found: %s." % os.path.basename(path))
    if any(" " in place for place in (sys.prefix, sys.base_prefix)):
        return Gate(False, "Inductor cannot compile where a path holds a blank, as this book's or Python's does: "
                    "move the book, or take another Python.")
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "probe.cpp")
        with open(source, "w") as file:
            file.write("#include <vector>\nint main() { return (int)std::vector<int>().size(); }\n")
        if output_of([path, source, "-o", os.path.join(folder, "probe")]) is None:
            return Gate(False, "The C++ compiler %s does not compile a small program: %s."
                        % (os.path.basename(path), COMPILER_FIX))
    return Gate(True, "A C++ compiler works: %s." % os.path.basename(path))


def _inductor():
    device = pick_device().type
    if device == "mps" and torch_version() < (2, 8):
        return Gate(False, "Inductor compiles for Apple's GPUs since torch 2.8.")
    if device in ("cuda", "xpu"):
        from torch.utils._triton import has_triton

        if not has_triton():
            return Gate(False, "Inductor compiles for this GPU with Triton, which is missing or too new for it.")
    return gate("compiler")


def _flex_device():
    """Where chapter 50 computes: Apple's GPUs have no float64 to check against."""
    device = pick_device().type
    return "cpu" if device == "mps" else device


def _flex_compiled():
    device = _flex_device()
    if device in ("cuda", "xpu") and not gate("inductor"):
        return gate("inductor")
    if device == "cuda":
        return Gate(True, "FlexAttention compiles on CUDA since 2.5.")
    if device == "cpu" and platform.system() == "Darwin":
        return Gate(False, "FlexAttention does not compile on a CPU under macOS.")
    if device == "cpu" and torch_version() < (2, 6):
        return Gate(False, "FlexAttention compiles on a CPU only since torch 2.6.")
    if device == "cpu":
        import torch

        capability = torch.backends.cpu.get_cpu_capability()
        if not capability.startswith(("AVX2", "AVX512")):
            return Gate(False, "FlexAttention compiles on a CPU with AVX2 or newer; this one has %s." % capability)
        if (2, 7) <= torch_version() <= (2, 8) and torch.get_num_threads() > 1:
            return Gate(False, "For two threads or more torch 2.7 and 2.8 write FlexAttention's C++ with a missing "
                        "brace: start Jupyter with OMP_NUM_THREADS=1 to see it compiled.")
        return gate("compiler") and Gate(True, "FlexAttention compiles on this CPU (%s)." % capability)
    if device == "xpu":
        return Gate(torch_version() >= (2, 9), "FlexAttention compiles on Intel GPUs since torch 2.9.")
    return Gate(False, "FlexAttention does not compile on %s." % device)


def _flex_backward():
    if _flex_device() == "cpu" and torch_version() >= (2, 11):
        return Gate(False, "Since torch 2.11 the backward of FlexAttention raises on a CPU.")
    return Gate(True, "The backward of FlexAttention runs here.")


def _since(version, yes, no):
    """A gate of a version, where there is no capability to ask."""
    return lambda: Gate(torch_version() >= version, yes if torch_version() >= version else no)


def _aoti_package():
    import torch._inductor as inductor

    ok = hasattr(inductor, "aoti_compile_and_package")
    return Gate(ok, "AOTInductor writes one package file (torch 2.6 and later)." if ok else
                "aoti_compile_and_package came with torch 2.6; 2.5 has torch._export.aot_compile.")


def _inline_flag():
    ok = torch_version() < (2, 12)
    return Gate(ok, "inline_inbuilt_nn_modules can be switched off." if ok else
                "Since torch 2.12 inline_inbuilt_nn_modules is always on; setting it does nothing.")


def _flash_unbatched():
    import torch
    from torch.nn.attention import SDPBackend

    x = torch.zeros(4, 256, 64)
    ok = torch._fused_sdp_choice(x, x, x) == SDPBackend.FLASH_ATTENTION.value
    return Gate(ok, "Flash on the CPU takes tensors without a batch dimension (torch 2.14 does)." if ok else
                "Flash on the CPU of this torch wants a batch dimension; torch 2.14 does without.")


def _gloo_recorder():
    import torch

    ok = hasattr(getattr(torch._C, "_distributed_c10d", None), "_dump_fr_trace")
    return Gate(ok, "Flight Recorder records gloo's collectives (torch 2.8 and later)." if ok else
                "Before torch 2.8 Flight Recorder records NCCL's collectives only, none of gloo's.")


def _fr_analyser():
    from importlib.util import find_spec

    ok = find_spec("torch.distributed.flight_recorder") is not None
    return Gate(ok, "torchfrtrace is in the package (torch 2.10 and later)." if ok else
                "Before torch 2.10 torchfrtrace cannot start: what it imports is not in the package.")


def _nvidia_capability():
    """(major, minor) of the NVIDIA GPU that torch uses, or None."""
    import torch

    if pick_device().type != "cuda" or torch.version.hip:
        return None
    return tuple(torch.cuda.get_device_capability())


def _cudnn_attention():
    capability = _nvidia_capability()
    if capability is None:
        return Gate(False, "cuDNN attention runs on NVIDIA GPUs only, and torch can use none here.")
    return Gate(capability >= (8, 0), "cuDNN attention needs an NVIDIA GPU of sm_80 or newer; this one is sm_%d%d."
                % capability)


def _cudnn_preferred():
    ok = _nvidia_capability() in ((9, 0), (10, 0), (10, 3))
    return Gate(ok, "torch may prefer cuDNN attention on this GPU." if ok else
                "torch prefers cuDNN attention on data center GPUs from the H100 on only.")


def _cpu_precision_casts():
    import inspect

    from torch._inductor import lowering

    # What rounds calls it so; 2.5 reads the switch and rounds nothing.
    ok = "emulate_output_cast" in inspect.getsource(lowering)
    return Gate(ok, "Inductor's C++ can round between operators (emulate_precision_casts)." if ok else
                "Inductor's C++ does not heed emulate_precision_casts in this version.")


def _half_rms_norm():
    import torch

    ok = torch.nn.functional.rms_norm(torch.full((1, 64), 300.0, dtype=torch.float16), (64,)).eq(1).all()
    return Gate(ok, "F.rms_norm computes in float32 inside (torch 2.6 and later)." if ok else
                "F.rms_norm of this torch squares in float16, which overflows; 2.6 computes in float32.")


def find_wine():
    """Wine under the names that systems give it, or None."""
    names = ("wine64", "wine", "/usr/lib/wine/wine64")
    return next((path for path in map(shutil.which, names) if path), None)


def _windows_program():
    if platform.system() == "Windows":
        return Gate(False, "This is Windows: your own compiler builds the kernel, and nothing has to be crossed.")
    if not is_x86():
        return Gate(False, "The Windows program is made for x86-64, and this machine is %s." % platform.machine())
    import torch

    capability = torch.backends.cpu.get_cpu_capability()
    if not capability.startswith(("AVX2", "AVX512")):
        return Gate(False, "The Windows program needs a CPU with AVX2; this one has %s." % capability)
    if not gate("compiler"):
        return gate("compiler")
    if not (shutil.which("x86_64-w64-mingw32-g++") and find_wine()):
        return Gate(False, "A Windows program needs MinGW to be built and Wine to be run "
                    "(Debian, Ubuntu: apt install g++-mingw-w64-x86-64 wine64 wine).")
    return Gate(True, "A Windows program can be built and run here.")


def _package_build():
    from importlib import metadata

    def has(package, least):
        try:
            return [int(n) for n in re.findall(r"\d+", metadata.version(package))] >= least
        except metadata.PackageNotFoundError:
            return False

    ok = has("pip", [0]) and (has("setuptools", [70, 1]) or has("setuptools", [0]) and has("wheel", [0]))
    return Gate(ok, "pip can build a package here without the network." if ok else
                "pip cannot build a package here without the network: that takes pip and setuptools 70.1 or newer.")


def _private_enable():
    import torch._dynamo.compiled_autograd as compiled_autograd

    ok = hasattr(compiled_autograd, "_enable")
    return Gate(ok, "The context manager of compiled autograd is called _enable (torch 2.6 and later)." if ok else
                "The context manager of compiled autograd is called enable in torch 2.5.")


def _traced_backward():
    import torch._dynamo.config as config

    ok = hasattr(config, "trace_autograd_ops")
    return Gate(ok, "Dynamo can trace backward() itself: torch._dynamo.config.trace_autograd_ops." if ok else
                "Dynamo of this torch cannot trace backward() itself; newer ones have trace_autograd_ops.")


def _gemm_template():
    import torch

    capability = torch.backends.cpu.get_cpu_capability()
    if platform.system() == "Windows":
        return Gate(False, "Inductor's C++ matrix-product template is not tried on Windows here.")
    if not is_x86() or not capability.startswith(("AVX2", "AVX512")):
        return Gate(False, "Inductor's C++ matrix-product template needs an x86 CPU with AVX2 or newer; "
                    "this one is %s with %s." % (platform.machine(), capability))
    return gate("compiler") and Gate(True, "Inductor can build its C++ matrix-product template here (%s)." % capability)


GATES = {
    "compiler": _compiler,
    "inductor": _inductor,
    "flex_compiled": _flex_compiled,
    "flex_backward": _flex_backward,
    "aoti_package": _aoti_package,
    "inline_flag": _inline_flag,
    "private_enable": _private_enable,
    "traced_backward": _traced_backward,
    "windows_program": _windows_program,
    "cpu_precision_casts": _cpu_precision_casts,
    "half_rms_norm": _half_rms_norm,
    "gemm_template": _gemm_template,
    "gemm_two_threads": _since(
        (2, 9), "The template is built for any number of threads.",
        "For two threads or more the template of torch 2.5 to 2.8 is C++ with a missing brace: this chapter uses one."),
    "flash_unbatched": _flash_unbatched,
    "sequential_whole": _since(
        (2, 14), "nn.Sequential compiled in place is one graph.",
        "Up to torch 2.13 Dynamo passes through nn.Sequential and compiles each block."),
    "gloo_recorder": _gloo_recorder,
    "fr_analyser": _fr_analyser,
    "cudnn_attention": _cudnn_attention,
    "cudnn_preferred": _cudnn_preferred,
    "package_build": _package_build,
    "mask_length_check": _since(
        (2, 6), "A BlockMask made for another length is refused.",
        "torch 2.5 accepts a BlockMask made for a longer sequence without a word."),
}
_gates = {}  # answers do not change while a process runs, and the compiler's takes a moment


def gate(name):
    """Can this be done here? A `Gate`: true or false, with a sentence why.

    Raises KeyError with the known names for another name.
    """
    if name not in GATES:
        raise KeyError("no gate %r; there are %s" % (name, ", ".join(GATES)))
    if name not in _gates:
        _gates[name] = GATES[name]()
    return _gates[name]


def output_of(command, timeout=60):
    """What a command (a list of words) prints, stripped; None when it is missing, fails or takes longer
    than timeout seconds."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=timeout)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None


def main():
    """The preflight check; its exit status."""
    # As a script, this file's folder is on the path and not the book's.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from utils import preflight

    return preflight.main()


if __name__ == "__main__":
    sys.exit(main())
