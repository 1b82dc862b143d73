"""The architecture families, one file each; a file is found by the `model_types` of its class.

To add one, write a file here with a subclass of `Family`; nothing else has to be edited.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from leakboard.bench.backbones.family import Family
from leakboard.bench.contracts import LeakboardError


def family_of(model_type: str, where: str) -> Family:
    """The family of a transformers model type.

    Args:
        where: the model's name, for messages.

    Raises:
        LeakboardError: no family here cuts this architecture.
    """
    found = known()
    if model_type not in found:
        raise LeakboardError(
            f"model '{where}' is of the architecture '{model_type}', which cannot be cut here yet; "
            f"supported: {', '.join(sorted(found))}"
        )
    return found[model_type]()


def known() -> dict[str, type[Family]]:
    """The family of each model type; the first call takes seconds, since transformers is loaded."""
    modules = [import_module(info.name) for info in pkgutil.iter_modules(__path__, f"{__name__}.")]
    classes = [
        cls
        for module in modules
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Family) and cls.__module__ == module.__name__
    ]
    return {model_type: cls for cls in classes for model_type in cls.model_types}
