"""Where the pictures get matplotlib from, which is an extra."""

from typing import Any

from softmargin.core.errors import MissingPackageError


def pyplot() -> Any:
    """`matplotlib.pyplot`, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise  # it is there, but something that it needs is not
        raise MissingPackageError('Pictures need matplotlib: pip install "softmargin[plot]".') from None
    return plt
