from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension


class Build(BuildExtension):
    def get_export_symbols(self, ext):
        return []  # torch.ops.load_library loads it; there is no Python module inside


setup(
    name="torch_own",
    version="1",
    packages=["torch_own"],
    ext_modules=[CppExtension("torch_own._C", ["torch_own/device.cpp"])],
    cmdclass={"build_ext": Build.with_options(use_ninja=False)},
    entry_points={"torch.backends": ["own = torch_own:_autoload"]},
)
