"""One HTML file that asks for no other: what the slides and the room's board are."""

from html import escape
from pathlib import Path

HERE = Path(__file__).parent
# Nothing from elsewhere, even if a text should ask for it one day.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(title: str, style: str, body: str, script: str = "") -> str:
    """The text of a file. style: a CSS file beside this module; body, script: as they are."""
    css = (HERE / style).read_text(encoding="utf-8")
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n<style>\n{css}</style>\n</head>\n'
            f"<body>\n{body}\n{f'<script>{chr(10)}{script}</script>{chr(10)}' if script else ''}</body>\n</html>\n")
