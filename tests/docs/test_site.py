"""The site of the documentation lists what there is. Building it is left to `make docs`."""

import importlib
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PACKAGES = ("", ".metrics", ".dask", ".kernels", ".data", ".problems", ".solvers")


def listed():
    """The names on the page of the API, by the package that they are in."""
    found, package = {}, None
    for line in (DOCS / "api" / "index.rst").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            package = found.setdefault(match[1], [])
        elif match := re.fullmatch(r"   (\w+)", line):
            package.append(match[1])
    return found


def test_every_public_name_is_on_the_page_of_the_api_once():
    pages = listed()
    assert set(pages) == {f"softmargin{package}" for package in PACKAGES}
    own = set(pages["softmargin"])
    for package, names in pages.items():
        public = set(importlib.import_module(package).__all__)
        elsewhere = own & public if package == "softmargin.solvers" else set()  # solvers are public twice
        assert sorted(names) == sorted(public - elsewhere), package


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
