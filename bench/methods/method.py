"""What defenses and attacks share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from bench.contracts import MethodSpec


@dataclass(frozen=True)
class Source:
    """Where a method comes from."""

    title: str
    where: str = ""
    """Section, equation, figure or table."""
    url: str = ""

    def __str__(self) -> str:
        return f"{self.title}, {self.where}" if self.where else self.title


class Method(BaseModel):
    """What defenses and attacks share: a name, a source, and parameters as fields of the class."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: ClassVar[str]
    source: ClassVar[Source]
    version: ClassVar[int] = 1
    """Raise it when a change alters results, so that old records no longer stand for the new method."""

    @property
    def params(self) -> dict[str, Any]:
        """All parameters, defaults included, as JSON values."""
        return self.model_dump(mode="json")

    def __str__(self) -> str:
        """The name and the parameters that were given, such as 'sap eta=75'."""
        given = self.model_dump(mode="json", exclude_unset=True)
        words = [f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in given.items()]
        return " ".join([self.name, *words]).replace("=None", "=none")


def spec_of(method: Method) -> MethodSpec:
    """The name, version and all parameters of a configured method."""
    return MethodSpec(name=method.name, params=method.params, version=method.version)
