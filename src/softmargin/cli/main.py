"""The entry point: a clear word where the extra is missing, else the commands."""

import sys


def main() -> None:
    try:
        import typer  # noqa: F401
    except ImportError:
        sys.exit('The command line needs two more packages: pip install "softmargin[cli]"')
    from softmargin.cli.app import app

    app(prog_name="softmargin")
