"""Base classes of defenses and attacks, the knowledge of attacks, and the registry that finds methods by name.

The registry reads classes from `defenses/` and `attacks/`, from installed plug-ins, or from a single file. A
new method needs no change here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
