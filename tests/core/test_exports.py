"""The public names of the parts: they are there, they are documented, and importing a part loads nothing heavy."""

import subprocess
import sys
from importlib import import_module

import pytest

from softmargin.tasks.solvers import SOLVERS

PARTS = ("softmargin", "softmargin.data", "softmargin.kernels", "softmargin.problems", "softmargin.solvers")


@pytest.mark.parametrize("name", PARTS)
def test_every_name_is_there_and_documented(name):
    part = import_module(name)
    assert len(set(part.__all__)) == len(part.__all__)
    for public in part.__all__:
        assert getattr(part, public).__doc__, public
        assert public in dir(part)


@pytest.mark.parametrize("name", PARTS)
def test_other_names_are_an_error_that_names_the_part(name):
    with pytest.raises(AttributeError, match=rf"module '{name}' has no attribute 'Unknown'"):
        import_module(name).Unknown  # noqa: B018


def test_all_solvers_are_exported():
    import softmargin.solvers

    assert {entry.name for entry in SOLVERS} <= set(softmargin.solvers.__all__)


def test_parts_are_imported_without_their_modules():
    code = f"import sys, {', '.join(PARTS)}; sys.exit('numpy' in sys.modules or 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
