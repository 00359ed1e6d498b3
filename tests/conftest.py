"""Where pictures are drawn, how hypothesis searches, and who hears an interrupt."""

import os
import signal

import pytest
from hypothesis import settings

os.environ["MPLBACKEND"] = "Agg"  # no test opens a window

# Briefly by default, for long with `pytest --hypothesis-profile=long`.
settings.register_profile("brief", deadline=None)
settings.register_profile("long", deadline=None, max_examples=20_000)
settings.load_profile("brief")


@pytest.fixture(autouse=True)
def _interrupts_are_heard():
    """A shell that starts the tests in the background has Ctrl-C ignored; tests that send it need Python's handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
