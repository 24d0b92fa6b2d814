"""Run chapters in a new kernel and keep their outputs and results.

    python -m tools.execute [CHAPTER ...]

One clean run of the whole notebook on a machine that does nothing else: outputs and
recorded results carry one run id. Refused when other processes used the cores, and on
another torch than the book's own: the outputs that a reader sees are of one version.
"""

from importlib.metadata import version

from tools import chapters, notebook_form, record
from tools.chapters import stop
from tools.setup_env import DEFAULT
from utils.recorded import replace_file


def keep(path, notebook):
    """Store an executed notebook in the canonical form, whole or not at all. Raises
    ValueError when an output cannot be shown: an absolute path, a warning."""
    if faults := list(notebook_form.output_faults(notebook)):
        raise ValueError("\n".join(f"{path.stem}, {fault}" for fault in faults))
    replace_file(path, notebook_form.canonical(notebook))


def main():
    options = record.parser(__doc__.splitlines()[0])
    options.add_argument("--name", default="reference", help="machine name of the results")
    options.add_argument("chapters", nargs="*", metavar="CHAPTER")
    options = options.parse_args()
    if (release := version("torch").split("+")[0]) != DEFAULT:
        stop(f"The book shows the outputs of torch {DEFAULT}, this is {release}: "
             "python -m tools.record NAME keeps results alone.", 2)
    run = record.Run(options.name, options.effort, options.allow_busy, keep)
    run.all(chapters.find(options.chapters))


if __name__ == "__main__":
    main()
