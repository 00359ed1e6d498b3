"""Every link in README and docs that stays in the project leads somewhere, headings included."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "benchmarks" / "README.md"]
PAGES += [ROOT / "benchmarks" / "results" / "README.md"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(page):
    """The names that headings have as targets of links, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", CODE.sub(lambda m: "" if m[0].startswith("```") else m[0], page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    page = path.read_text(encoding="utf-8")
    for link in LINK.findall(CODE.sub("", page)):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = path.parent / place if place else path
        assert target.exists(), f"{path.name} links to {link}"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{path.name} links to {link}"


def test_every_page_can_be_reached_from_the_index():
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(index.read_text("utf-8"))}
    site = {ROOT / "docs" / "index.md", *(ROOT / "docs" / "sections").iterdir()}  # the menus of the site
    for page in set((ROOT / "docs").rglob("*.md")) - {index} - site:
        assert page in linked, f"{page.name} is not in the index"


def test_files_that_are_named_exist():
    """Paths in backquotes, such as `problems/hinge.py`, `benchmarks/results/memory.md` and `memory.md`."""
    homes = (ROOT, ROOT / "src", ROOT / "src" / "softmargin", ROOT / "benchmarks", ROOT / "benchmarks" / "results")
    for path in PAGES:
        for name in re.findall(r"`([\w/.-]+\.(?:py|md))`", path.read_text(encoding="utf-8")):
            found = any((home / name).exists() for home in (*homes, path.parent))
            assert found or name == "docs/design/NNN-title.md", f"{path.name} names {name}"
