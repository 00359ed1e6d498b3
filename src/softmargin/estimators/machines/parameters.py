"""Parameters by name, as scikit-learn has them: those of `__init__`."""

from inspect import signature
from typing import Any

from softmargin.core.errors import SoftmarginError


class Parameters:
    """Adds `get_params` and `set_params`; every parameter of `__init__` is an attribute of the same name."""

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Any:
        """Change some of the parameters, and return the object itself."""
        for name, value in params.items():
            if name not in self._names():
                raise SoftmarginError(f"{type(self).__name__} has no parameter {name!r}: it has {self._names()}.")
            setattr(self, name, value)
        return self
