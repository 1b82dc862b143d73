"""The base class of defenses and attacks."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from leakboard.bench.contracts import LeakboardError, MethodSpec, Objective


@dataclass(frozen=True)
class Source:
    """Where a method comes from."""

    title: str
    where: str = ""
    """Section, equation, figure or table."""
    url: str = ""

    def __str__(self) -> str:
        return f"{self.title}, {self.where}" if self.where else self.title


@dataclass(frozen=True)
class Conditions:
    """Facts of a cell by which a method decides whether it can run there.

    Attributes:
        cut: transformer blocks below the trust boundary; 0 is the embedding cut.
        has_marked_secrets: the task marks the secrets in its training texts.
        has_canaries: canaries are planted in the training texts.
        causal: a hidden state of the model depends only on the tokens so far; None if the model is not known yet.
        has_attributes: the task has private attributes of authors.
    """

    cut: int = 0
    objective: Objective = "classification"
    has_marked_secrets: bool = False
    has_canaries: bool = False
    causal: bool | None = None
    has_attributes: bool = True


FORMER_HOOKS = ("refuses", "unfit", "unmarked")
"""Methods that `Method.skip` replaces; a class that still defines one is rejected."""


class Method(BaseModel):
    """Base of defenses and attacks: a name, a source, and parameters as fields of the class."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: ClassVar[str]
    display_name: ClassVar[str] = ""
    """As its authors write it, for sentences and figures; the name where empty."""
    source: ClassVar[Source]
    version: ClassVar[int] = 1
    """Increase it when a change alters results, so that older records no longer count for the method."""

    formerly: ClassVar[tuple[str, ...]] = ()
    """Former names, which older records contain."""
    younger: ClassVar[frozenset[str]] = frozenset()
    """Parameters that were added after the first records of the method. `params` leaves one out if it has its default,
    so that the keys of older records do not change."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for former in FORMER_HOOKS:
            if callable(vars(cls).get(former)):
                raise LeakboardError(
                    f"{cls.__qualname__}.{former}() is no longer called. Define skip(self, conditions) instead: "
                    "it returns the reason why the method cannot run under these conditions, or None; the cut is "
                    "conditions.cut"
                )

    def skip(self, conditions: Conditions) -> str | None:
        """Reason why the method cannot run in a cell with these conditions; None if it can.

        A plan calls it once per cell; the reason becomes that of the skipped record.
        """
        return None

    @property
    def params(self) -> dict[str, object]:
        """All parameters, including defaults, as JSON values."""
        values = self.model_dump(mode="json")
        fields = type(self).model_fields
        return {k: v for k, v in values.items() if k not in self.younger or v != fields[k].default}

    @classmethod
    def code(cls) -> str:
        """Digest of the file that defines the method; "" without one, as in a notebook."""
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        return _digest_of(Path(file)) if file else ""

    def __str__(self) -> str:
        """The name and the parameters that were given, such as 'sap eta=75'."""
        params = self.params
        given = self.model_dump(mode="json", exclude_unset=True)
        given = {k: v for k, v in given.items() if k in params}
        words = [f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in given.items()]
        return " ".join([self.name, *words]).replace("=None", "=none")


@cache
def _digest_of(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()[:16]


def spec_of(method: Method) -> MethodSpec:
    """The name, version and all parameters of a configured method."""
    return MethodSpec(name=method.name, params=method.params, version=method.version)
