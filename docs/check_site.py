"""Check the built site: every link leads somewhere, anchors included, no page needs the network or shows addresses.

python docs/check_site.py build/site
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself, unlike <a href>, which waits for a click.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "link": "href"}
# Links that name a page for machines, and load nothing.
UNLOADED_LINKS = {"canonical", "next", "prev", "search", "index", "author", "copyright"}


class Page(HTMLParser):
    """The names that links can lead to, the links, and what the page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        given = dict(attrs)
        self.names |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        address = given.get(LOADED.get(tag, ""))
        if address and not (tag == "link" and given.get("rel") in UNLOADED_LINKS):
            self.loaded.append(address)


def problems(folder: Path) -> list[str]:
    static = folder / "_static"  # holds templates of the theme beside what the pages load
    files = sorted(file for file in folder.rglob("*.html") if not file.is_relative_to(static))
    texts = {file.resolve(): file.read_text(encoding="utf-8") for file in files}
    pages = {file: Page(text) for file, text in texts.items()}
    found = [f"{file} shows the address of an object" for file, text in texts.items() if " object at 0x" in text]
    for file, page in pages.items():
        name = file.relative_to(folder.resolve())
        for address in page.loaded:
            if urlsplit(address).netloc:
                found.append(f"{name} loads {address}: the site must not need the network")
        for address in dict.fromkeys([*page.links, *page.loaded]):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                found.append(f"{name} links to {address}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                found.append(f"{name} links to {address}, but there is no such place on that page")
    for sheet in folder.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8").replace(" ", "")
        if "url(http" in text or "url(//" in text or "@importurl(http" in text:
            found.append(f"{sheet.relative_to(folder)} loads from another host: the site must not need the network")
    if not files:
        found.append(f"{folder} holds no pages: build the site first")
    return found


if __name__ == "__main__":
    lines = problems(Path(sys.argv[1]))
    print("\n".join(lines) or f"{sys.argv[1]}: every link leads somewhere, and nothing is loaded from elsewhere")
    sys.exit(bool(lines))
