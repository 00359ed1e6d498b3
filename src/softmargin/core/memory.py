"""How much memory there is to use."""

import os
from pathlib import Path

_FALLBACK = 1 << 30
# Whoever needs no more than this need not ask how much memory is free, which takes 0.1 ms.
LITTLE_BYTES = 1 << 25


def free_bytes() -> int:
    """Memory that this process may still take: what the system has available, within its cgroup's limit."""
    limits = [_cgroup_rest(), _system_available()]
    known = [limit for limit in limits if limit is not None]
    return max(0, min(known)) if known else _FALLBACK


def _system_available() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:  # elsewhere: half of what is built in
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return None


def _cgroup_rest() -> int | None:
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text().strip()
        return None if limit == "max" else int(limit) - int(used)
    except (OSError, ValueError):
        return None
