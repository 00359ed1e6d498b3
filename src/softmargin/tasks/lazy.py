"""A name in a module that is imported only when it is used."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Lazy:
    """`Lazy("package.module:name")` stands for that name; `load()` imports the module and returns it."""

    path: str

    @property
    def module(self) -> str:
        return self.path.partition(":")[0]

    @property
    def name(self) -> str:
        return self.path.partition(":")[2]

    @property
    def dotted(self) -> str:
        return f"{self.module}.{self.name}"

    def load(self) -> Any:
        return getattr(import_module(self.module), self.name)
