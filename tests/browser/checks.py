"""What the browser tests look for. Each check returns faults as sentences: none is good."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup

PHONE, DESKTOP = 390, 1280
HEAVIEST = 500_000  # bytes of a page and its own images
BROWSER = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
           "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync"]


# --- in the browser -----------------------------------------------------------------


@contextmanager
def visit(browser, url, width=DESKTOP, theme="light"):
    """Opens a page; gives it and the list of faults that it adds to while it is open:
    requests that leave, console errors, uncaught errors."""
    faults = []
    origin = "{0.scheme}://{0.netloc}/".format(urlparse(url))

    def on_request(request):
        if not request.url.startswith((origin, "data:", "blob:")):
            faults.append(f"a request leaves: {request.url}")

    def on_console(line):
        if line.type == "error":
            faults.append(f"the console says: {line.text} ({line.location['url']})")

    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    try:
        page = context.new_page()
        page.on("request", on_request)
        page.on("console", on_console)
        page.on("pageerror", lambda error: faults.append(f"an error is not caught: {error}"))
        page.goto(url, wait_until="load")
        page.wait_for_timeout(300)  # scripts that start themselves later
        yield page, faults
    finally:
        context.close()


def sideways(page):
    """Does the page as a whole scroll sideways?"""
    wide, shown = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    if wide > shown:
        yield f"the page is {wide} pixels wide in a window of {shown}"


def theme(page, wanted):
    """Is the page as light or dark as the system asks for?"""
    found = page.evaluate("document.documentElement.dataset.theme")
    if found != wanted:
        yield f"the theme is {found}, not {wanted}"


# Words of code are thousands, in a few colours: one of each is enough for axe.
ONE_OF_EACH = """() => {
  const seen = new Set();
  for (const code of document.querySelectorAll(".highlight pre")) {
    const copy = code.cloneNode(true);
    for (const word of copy.querySelectorAll("span")) {
      if (seen.has(word.className)) word.replaceWith(word.textContent);
      seen.add(word.className);
    }
    code.replaceWith(copy);
  }
}"""


def accessibility(page):
    """Serious and critical findings of axe."""
    page.evaluate(ONE_OF_EACH)
    # preload: axe would ask for the theme's imported styles again, at a wrong address.
    options = {"resultTypes": ["violations"], "preload": False}
    for finding in Axe().run(page, options=options).response["violations"]:
        if finding["impact"] in ("serious", "critical"):
            places = ", ".join(" ".join(map(str, node["target"])) for node in finding["nodes"][:3])
            yield f"{finding['id']} ({finding['impact']}): {finding['help']}: {places}"


def explorers(page):
    """Does each explorer move by keyboard and by mouse, and change picture and caption?"""
    for number, explorer in enumerate(page.locator(".explore").all(), 1):
        slider = explorer.locator("input[type=range]")
        if not slider.is_visible():
            yield f"explorer {number} shows no slider"
            continue
        seen = [_shown(explorer)]
        slider.focus()
        for key in ("ArrowRight", "End", "ArrowLeft"):
            page.keyboard.press(key)
            seen.append(_shown(explorer))
        box = slider.bounding_box()
        slider.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
        seen.append(_shown(explorer))
        if any(len(shown) != 1 for shown in seen):
            yield f"explorer {number} shows {[len(shown) for shown in seen]} pictures, not one at a time"
        elif any(len(set(what)) < len(seen) for what in zip(*(shown[0] for shown in seen))):
            yield f"explorer {number} does not change picture and caption with every move"
        elif seen[-1][0][1] != slider.get_attribute("aria-valuetext"):
            yield f"explorer {number} does not say its position to a screen reader"


def _shown(explorer):
    """(picture, caption) of the figures that can be seen."""
    return [(figure.locator("img").get_attribute("src"), figure.locator("figcaption").inner_text())
            for figure in explorer.locator("figure").all() if figure.is_visible()]


def sidebar(page, width):
    """Does the button of the sidebar open it (phone) or close and open it (desktop)?"""
    link = page.locator(".bd-sidebar-primary nav a").first
    for wanted in (True, False) if width < 992 else (False, True):
        button = ".primary-toggle" if wanted or width >= 992 else ".bd-sidebar-primary"
        if button == ".primary-toggle":
            page.locator(button).first.click()
        else:
            page.keyboard.press("Escape")
            page.mouse.click(width - 5, 450)
        page.wait_for_timeout(600)  # the sidebar slides
        box = link.bounding_box() if link.is_visible() else None
        if (box is not None and box["x"] >= 0) != wanted:
            yield f"the sidebar does not {'open' if wanted else 'close'}"
            return


# --- in the files -------------------------------------------------------------------


def dead_links(folder: Path):
    """Links to files and anchors of the site that do not exist."""
    pages = {path: _soup(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    anchors = {path: {tag[name] for name in ("id", "name") for tag in soup.find_all(attrs={name: True})}
               for path, soup in pages.items()}
    for path, soup in pages.items():
        for tag in soup.find_all(href=True) + soup.find_all(src=True):
            address, anchor = urldefrag(tag.get("href") or tag.get("src"))
            parts = urlparse(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            where = f"{path.relative_to(folder)}: {address}{'#' if anchor else ''}{anchor}"
            if not target.is_file():
                yield f"{where} is no file of the site"
            elif anchor and target in anchors and unquote(anchor) not in anchors[target]:
                yield f"{where} has no such anchor"


def alt_texts(path: Path):
    """Images without a text, or with a file's name in its place."""
    for image in _soup(path).find_all("img"):
        alt = (image.get("alt") or "").strip()
        if not alt or alt.lower().endswith((".png", ".jpg", ".svg")):
            yield f"{path.name}: the alt text of {image['src'][:60]} is {alt!r}"


def weight(path: Path):
    """Bytes of a page and of the images that are its own, not the theme's."""
    images = {(path.parent / unquote(tag["src"])).resolve() for tag in _soup(path).find_all("img", src=True)
              if not tag["src"].startswith("data:") and "_static/" not in tag["src"]}
    size = path.stat().st_size + sum(image.stat().st_size for image in images)
    if size > HEAVIEST:
        yield f"{path.name} and its images take {size / 1000:.0f} kB; at most {HEAVIEST / 1000:.0f} kB"


def _soup(path):
    return BeautifulSoup(path.read_bytes(), "html.parser")
