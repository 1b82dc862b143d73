"""Two defenses that stand for all: what tables and figures show of them."""

from __future__ import annotations

from types import SimpleNamespace

from leakboard.bench.contracts.threat import Goal

BY = {Goal.INVERSION: ("eia-nn", "eia-optimise"), Goal.ATTRIBUTE: ("aia-finetune",)}
FEW = {
    "sap": SimpleNamespace(
        colour="#0072b2",
        marker="o",
        knob="eta",
        measured_by=BY,
        measured_on=(),
        measured_worst=False,
        formerly=(),
    ),
    "none": SimpleNamespace(
        colour="#222222",
        marker="*",
        knob=None,
        measured_by={},
        measured_on=(),
        measured_worst=False,
        formerly=(),
    ),
}
