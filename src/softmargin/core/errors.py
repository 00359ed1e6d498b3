"""What can go wrong, as types. Each message names the cause and the next thing to try."""


class SoftmarginError(ValueError):
    """Base of all errors that this package raises on purpose."""


class DataFormatError(SoftmarginError):
    """A data file does not hold what its format promises."""

    def __init__(self, message: str, *, file: str = "", line: int | None = None, column: int | None = None) -> None:
        place = ":".join(str(part) for part in (file, line, column) if part not in (None, ""))
        super().__init__(f"{place}: {message}" if place else message)
        self.message, self.file, self.line, self.column = message, file, line, column


class ModelFileError(SoftmarginError):
    """A model file is damaged, of another format, or from a newer version."""


class MissingPackageError(SoftmarginError, ImportError):
    """Something needs a package that is not installed."""


class Abandoned(Exception):
    """Raised between row blocks to give up the step in progress; the loop catches it."""
