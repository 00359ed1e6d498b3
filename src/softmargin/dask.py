"""Linear SVMs on a Dask cluster: the public names. Needs the extra `dask`: ``pip install softmargin[dask]``."""

try:
    from softmargin.estimators.on_dask import LinearSVC, LinearSVR, RankSVM
except ModuleNotFoundError as error:
    if error.name not in ("dask", "distributed"):
        raise
    from softmargin.core.errors import MissingPackageError

    raise MissingPackageError(
        "softmargin.dask needs Dask and its scheduler: pip install 'softmargin[dask]'."
    ) from error

__all__ = ["LinearSVC", "LinearSVR", "RankSVM"]
