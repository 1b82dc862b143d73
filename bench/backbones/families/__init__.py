"""Architecture families, one file each, found by the `model_types` of their classes.

To add one, write a file with a subclass of `Family` into this folder; nothing else has to be edited.
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
        LeakboardError: the architecture is not supported.
    """
    families = families_by_type()
    if model_type not in families:
        raise LeakboardError(
            f"model '{where}' has the architecture '{model_type}', which is not supported yet; "
            f"supported: {', '.join(sorted(families))}"
        )
    return families[model_type]()


def families_by_type() -> dict[str, type[Family]]:
    """Family of each model type; the first call loads transformers, which takes seconds."""
    modules = [import_module(info.name) for info in pkgutil.iter_modules(__path__, f"{__name__}.")]
    classes = [
        cls
        for module in modules
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Family) and cls.__module__ == module.__name__
    ]
    return {model_type: cls for cls in classes for model_type in cls.model_types}
