import os

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

# PyTorch's library does the work, so neither optimising nor debugging is worth the time.
FLAGS = [] if os.name == "nt" else ["-O1", "-g0"]


class Build(BuildExtension):
    def get_export_symbols(self, ext):
        return []  # torch.ops.load_library loads it; there is no Python module inside


setup(
    name="torch_own",
    version="1",
    packages=["torch_own"],
    ext_modules=[CppExtension("torch_own._C", ["torch_own/device.cpp"], extra_compile_args=FLAGS)],
    cmdclass={"build_ext": Build.with_options(use_ninja=False)},
    entry_points={"torch.backends": ["own = torch_own:_autoload"]},
)
