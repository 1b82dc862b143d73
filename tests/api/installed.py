"""What an installation outside the checkout must be able to do; a script for a process of its own.

Without arguments the installed package is used as it is: by the tox environment `wheel`. With the folder
of an unpacked wheel, that is what is imported, and the checkout cannot be: so `test_wheel.py` does.
"""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
SMALL = {
    "name": "small",
    "task": "reviews",
    "model": "tiny-bert",
    "limit": 48,
    "train": {"epochs": 1},
    "defenses": ["none", {"sample-noise": {"sigma": 1.0}}],
    "attacks": ["eia-nn", "sample-nearest"],
}


def use(unpacked: str) -> None:
    """Has an unpacked wheel stand for the installed package."""
    sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in getattr(f, "__module__", "")]
    sys.path[:] = [unpacked, *(p for p in sys.path if Path(p or ".").resolve() != CHECKOUT)]


def listed() -> str:
    """What `leakboard list` prints."""
    from leakboard.bench.cli import console, main

    sys.argv, console._width = ["leakboard", "list"], 200
    with redirect_stdout(io.StringIO()) as out, suppress(SystemExit):
        main()
    return out.getvalue()


def main(unpacked: str = "", frame: str = "") -> None:
    if unpacked:
        use(unpacked)
    import leakboard as lb

    heavy = {"torch", "numpy", "pandas", "pydantic"} & set(sys.modules)
    assert not heavy, f"importing leakboard loads {heavy}"
    out = listed()
    for name in ("sap-cti", "eia-map", "sst2", "minilm", "smoke", "sample-noise", "sample-nearest"):
        assert name in out, f"{name} is not listed"
    matrix = lb.published("matrix")
    assert len(matrix) > 100
    assert matrix.suite is not None
    if frame:
        matrix.export(frame)
    else:
        results = lb.run(SMALL, out="records")
        assert [record.status for record in results] == ["ok", "ok"]
        print(results.best())
        results.plot(out="plots")
        lb.check("sample-nearest").raise_if_failed()
    own = [
        m
        for n, m in sys.modules.items()
        if n.split(".")[0] == "leakboard" and hasattr(m, "__file__")
    ]
    here = [m.__file__ for m in own if m.__file__ and CHECKOUT in Path(m.__file__).parents]
    assert not here, f"comes from the checkout: {here[0]}"


if __name__ == "__main__":
    main(*sys.argv[1:])
