"""Records of swept parameters."""

from __future__ import annotations

from records import leak, record

from leakboard.bench.contracts.record import Record
from leakboard.bench.contracts.threat import Goal


def deep(seeds: int = 2) -> list[Record]:
    """SAP at two settings and three cuts; another attack decides at each."""
    made = []
    for seed in range(seeds):
        for eta, lost in ((None, 0.0), (50.0, 0.3)):
            for cut in (4, 0, 2):
                found = [leak(0.9 - lost - 0.1 * cut + 0.01 * seed, attack="eia-optimise")]
                found.append(leak(0.8 - lost, attack="eia-nn") if cut == 0 else leak(0.01))
                params = {"eta": eta, "bottom": "frozen"}
                made.append(record("sap", params, seed, 0.8, found, "sst2", cut=cut))
    return made


def told(attribute: str = "gender") -> list[Record]:
    """Two attacks at three shares: the mean network is ahead where little is labelled."""
    found = [
        leak(s, attack=a, goal=Goal.ATTRIBUTE, attribute=attribute, params={"labelled": n}, chance=0.4)
        for a, successes in (("aia-mlp", (0.5, 0.6, 0.7)), ("aia-finetune", (0.4, 0.65, 0.8)))
        for n, s in zip((0.01, 0.1, 0.5), successes, strict=True)
    ]  # fmt: skip
    return [record("sap", {"eta": 75.0}, leaks=[*found, leak(0.9)])]
