"""Run chapters in a new kernel and keep their outputs and results.

    python -m tools.execute [CHAPTER ...]

One clean run of the whole notebook on a machine that does nothing else: outputs and
recorded results carry one run id. Refused when other processes used the cores.
"""

import os
import tempfile

from tools import chapters, notebook_form, record


def keep(path, notebook):
    """Store an executed notebook in the canonical form, whole or not at all."""
    text = notebook_form.canonical(notebook)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def main():
    options = record.parser(__doc__.splitlines()[0])
    options.add_argument("--name", default="reference", help="machine name of the results")
    options.add_argument("chapters", nargs="*", metavar="CHAPTER")
    options = options.parse_args()
    record.run(chapters.find(options.chapters), options.name, effort=options.effort, keep=keep,
               allow_busy=options.allow_busy)


if __name__ == "__main__":
    main()
