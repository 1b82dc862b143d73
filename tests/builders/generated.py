"""The generated tasks, made when this is loaded and kept as bytes: processes that part later need not make them.

Nothing of the house stays loaded, so that these load it as they want it.
"""

from __future__ import annotations

import pickle
import sys
from functools import cache, partial

from leakboard.bench.tasks import GENERATORS

MADE = {name: pickle.dumps(make()) for name, make in GENERATORS.items()}
for module in [name for name in sys.modules if name.split(".")[0] == "leakboard"]:
    del sys.modules[module]
del GENERATORS


def install() -> None:
    """Hands these out in the place of the generators."""
    from leakboard.bench.tasks import GENERATORS

    GENERATORS.update({name: cache(partial(pickle.loads, made)) for name, made in MADE.items()})
