"""The entry point: a clear word where the extra is missing, else the commands."""

import gc
import sys

# Imports make many objects that stay. Looking through them again and again for garbage takes a tenth of a short run.
_OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main() -> None:
    try:
        import typer  # noqa: F401
    except ImportError:
        sys.exit('The command line needs two more packages: pip install "softmargin[cli]"')
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    from softmargin.cli.app import app

    app(prog_name="softmargin")
