"""The links of the learner notebooks lead to pages and exercises of the built site."""

import re

import checks
import pytest

from tools import chapters, workshop
from tools.site import HTML


@pytest.mark.parametrize("path", chapters.find(), ids=lambda path: path.stem)
def test_links_to_the_site(path):
    text = workshop.learner(chapters.read(path), path.stem)
    links = re.findall(r"\]\(\.\./site/([\w/.-]+)(?:#([\w-]+))?\)", text)
    assert (f"chapters/{path.stem}.html", "") in links
    assert text.count("../site/") == len(links)
    for page, anchor in links:
        assert (HTML / page).is_file(), page
        ids = {tag["id"] for tag in checks._soup(HTML / page).find_all(id=True)} if anchor else {""}
        assert anchor in ids, f"{page} has no {anchor}"
