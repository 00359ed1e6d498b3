"""The site of the documentation lists what there is. Building it is left to `make docs`."""

import importlib
import pkgutil
import re
from pathlib import Path

import softmargin

DOCS = Path(__file__).parents[2] / "docs"


def listed():
    """The names on the page of the API, by the package that they are in."""
    found, package = {}, None
    for line in (DOCS / "api" / "index.rst").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            package = found.setdefault(match[1], [])
        elif match := re.fullmatch(r"   (\w+)", line):
            package.append(match[1])
    return found


def public_packages():
    """softmargin, and what is in it with a list of public names; those that need a package that is missing are not."""
    yield softmargin
    for module in pkgutil.iter_modules(softmargin.__path__):
        try:
            package = importlib.import_module(f"softmargin.{module.name}")
        except ImportError:
            continue
        if hasattr(package, "__all__"):
            yield package


def test_every_public_name_is_on_the_page_of_the_api_once():
    pages = listed()
    own = set(softmargin.__all__)
    for package in public_packages():
        again = own if package.__name__ == "softmargin.solvers" else set()  # the solvers are public in both
        assert sorted(pages[package.__name__]) == sorted(set(package.__all__) - again), package.__name__


def test_every_page_is_in_a_menu():
    """Sphinx would warn of one that is not; this sees it without Sphinx."""
    menus = [DOCS / "index.md", *(DOCS / "sections").glob("*.md")]
    listed = set()
    for menu in menus:
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", menu.read_text(encoding="utf-8"), re.M | re.S):
            for line in block.splitlines():
                entry = re.sub(r"^.*<(.*)>$", r"\1", line)
                if entry and not entry.startswith(":"):
                    listed |= (
                        {path.resolve() for path in menu.parent.glob(f"{entry}.md")}
                        if "*" not in entry
                        else {path.resolve() for path in (menu.parent / entry).parent.glob("*.md")}
                    )
    pages = {path.resolve() for path in DOCS.rglob("*.md") if path != DOCS / "index.md"}
    assert pages <= listed, pages - listed
