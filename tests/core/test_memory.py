"""How much memory there is: the system's and the cgroup's word, whichever allows less."""

from pathlib import Path

import pytest

from softmargin.core import memory
from softmargin.core.memory import free_bytes

MEMINFO, LIMIT, USED = "/proc/meminfo", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"
TEN_GIB = f"MemTotal: 99 kB\nMemFree: 1 kB\nMemAvailable:   {10 << 20} kB\nBuffers: 3 kB\n"


@pytest.fixture
def files(monkeypatch):
    """A file system of fake files; those that are not there cannot be read."""
    contents = {}

    def read_text(path):
        if str(path) not in contents:
            raise FileNotFoundError(str(path))
        return contents[str(path)]

    monkeypatch.setattr(Path, "read_text", read_text)
    return contents


def test_this_machine_has_some():
    assert 1 << 20 < free_bytes() < 1 << 50


def test_what_is_available_counts_not_what_is_free(files):
    files[MEMINFO] = TEN_GIB
    assert free_bytes() == 10 << 30


@pytest.mark.parametrize(
    ("limit", "used", "expected"),
    [
        ("max\n", "5\n", 10 << 30),  # no limit
        (f"{4 << 30}\n", f"{1 << 30}\n", 3 << 30),
        (f"{99 << 30}\n", f"{1 << 30}\n", 10 << 30),  # a limit beyond what the system has
        (f"{1 << 30}\n", f"{2 << 30}\n", 0),  # overdrawn: nothing, not less
        ("many\n", "5\n", 10 << 30),
        (f"{4 << 30}\n", "\n", 10 << 30),
    ],
)
def test_within_the_limit_of_the_cgroup(files, limit, used, expected):
    files |= {MEMINFO: TEN_GIB, LIMIT: limit, USED: used}
    assert free_bytes() == expected


@pytest.mark.parametrize("content", [None, "", "MemTotal: 5 kB\n", "MemAvailable: some kB\n"])
def test_without_that_line_half_of_what_is_built_in(files, monkeypatch, content):
    if content is not None:
        files[MEMINFO] = content
    monkeypatch.setattr(memory.os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}.__getitem__)
    assert free_bytes() == 4096 * 500


def test_where_nobody_knows_a_guess(files, monkeypatch):
    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(memory.os, "sysconf", unknown)
    assert free_bytes() == 1 << 30
