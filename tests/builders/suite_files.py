"""Methods of few parameters for tests of suite files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from leakboard.bench.contracts.threat import ThreatModel
from leakboard.bench.methods.attack import Attack
from leakboard.bench.methods.defense import Defense
from leakboard.bench.methods.method import Source
from leakboard.bench.suites.suite import Suite

HEAD = "name: mine\ntask: sst2\n"


class Plain(Defense):
    name = "none"
    source = Source("a test")
    emits: ClassVar[frozenset[Any]] = frozenset()

    def fine_tune(self, session: Any) -> Any:
        raise NotImplementedError


class Noise(Plain):
    name = "sap"
    eta: Annotated[float, Field(gt=0)] | Literal["none"] = 100.0
    bottom: Literal["frozen", "trainable"] = "frozen"
    secure: bool = False

    @model_validator(mode="after")
    def _fits(self) -> Noise:
        if self.bottom == "trainable" and self.secure:
            raise ValueError("a trainable bottom cannot be secure")
        return self


class Prior(Attack):
    name = "prior"
    source = Source("a test")
    threat = ThreatModel(frozenset(), frozenset())

    def guess(self, seen: Any, knowledge: Any, rng: Any) -> Any:
        raise NotImplementedError


class Learned(Prior):
    name = "aia-mlp"
    labelled: float = Field(0.1, gt=0, lt=1)
    layers: int = 2


Read = Callable[[str], Suite]
