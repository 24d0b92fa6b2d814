"""The book's programs."""

import sys

# jsonschema, which nbformat brings in, would build the grammar of a format that no schema of
# the book uses: most of the time that these programs take to start.
sys.modules.setdefault("rfc3987_syntax", None)
