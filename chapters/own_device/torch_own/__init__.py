"""The device "own". `import torch` loads it; `torch.own` is this module."""

import contextlib
import sys
from pathlib import Path

device = contextlib.nullcontext  # with torch.own.device(0): the only one


def _autoload():
    """What the entry point names: register the device, once."""
    import torch  # not at the top: torch may be the one that is importing us

    if hasattr(torch, "own"):
        return
    torch.ops.load_library(next(Path(__file__).parent.glob("_C.*")))
    torch.utils.rename_privateuse1_backend("own")
    torch._register_device_module("own", sys.modules[__name__])
    torch.utils.generate_methods_for_privateuse1_backend()
    # The backward runs in the caller's thread: a thread of the device may
    # outlive Python and abort the process (compare pytorch issue 190489).
    torch.autograd.set_multithreading_enabled(False)


def is_available():
    return True


def device_count():
    return 1


def current_device():
    return 0


def synchronize(device=None):
    """Nothing to wait for: all work is done when a call returns."""


def manual_seed_all(seed):
    """Nothing to seed: random numbers come from the CPU's generator."""


def _is_in_bad_fork():
    return False


def counts():
    """Operators that fell back, how often, and bytes copied; starts anew."""
    import torch

    return torch.ops.own.counts()
