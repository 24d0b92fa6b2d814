"""Build and serve the site: python -m tools.site build | serve [--port 8000]

REPO_URL=https://github.com/... adds the buttons to the repository; without it there are
none, and so no dead links.
"""

import argparse
import errno
import functools
import http.server
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

REPO = Path(__file__).resolve().parent.parent
HTML = REPO / "_build" / "html"
JUPYTER_BOOK = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]


def build():
    """Build what changed; a warning is an error."""
    config = REPO / "_config.yml"
    if os.environ.get("REPO_URL"):
        config = with_buttons(config, os.environ["REPO_URL"])
    # Sphinx copies styles and scripts only with a page that changed.
    index = HTML / "index.html"
    stale = index.exists() and any(p.stat().st_mtime > index.stat().st_mtime for p in (REPO / "_assets").iterdir())
    everything = ["--all"] if stale else []
    done = subprocess.run([*JUPYTER_BOOK, "build", ".", "--config", str(config), "-W", "-n", "--keep-going", "-q",
                           *everything],
                          cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(done.stdout)
        sys.exit("The site was not built: mend the warnings above.")
    for line in done.stdout.splitlines():
        if line.startswith("Left out"):  # a recorded file that is not in order
            print(line)
    print("The site is built: open _build/html/index.html, or run make serve.")


def with_buttons(config: Path, url: str) -> Path:
    """The configuration with the repository's address, in _build/."""
    if not re.match(r"https://(github|gitlab|bitbucket)\.\w+/", url):
        sys.exit(f"REPO_URL={url} is no address of a repository on GitHub, GitLab or Bitbucket.")
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    settings["repository"] = {"url": url, "branch": "main"}
    settings["html"] |= {"use_repository_button": True, "use_issues_button": True}
    made = REPO / "_build" / "_config.yml"
    made.parent.mkdir(exist_ok=True)
    made.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return made


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        """One line at the start is enough."""


class Server(http.server.ThreadingHTTPServer):
    allow_reuse_address = os.name != "nt"  # on Windows it lets two servers have one port


def server(port: int, folder: Path = HTML) -> Server:
    """A server of a folder, for this machine only; port 0 is any free one.

    Raises OSError when the port is taken.
    """
    return Server(("127.0.0.1", port), functools.partial(Quiet, directory=str(folder)))


def serve(port: int):
    if not (HTML / "index.html").exists():
        sys.exit("There is no site yet: run make book first.")
    try:
        running = server(port)
    except (OSError, OverflowError) as error:
        why = {errno.EADDRINUSE: "is taken", errno.EACCES: "is not yours to use"}.get(
            getattr(error, "errno", None), "cannot be used")
        print(f"Port {port} {why}; using a free one.")
        running = server(0)
    with running:
        print(f"The site is at http://127.0.0.1:{running.server_address[1]} until you press Ctrl+C.", flush=True)
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build")
    commands.add_parser("serve").add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    build() if options.command == "build" else serve(options.port)


if __name__ == "__main__":
    main()
