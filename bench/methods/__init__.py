"""What a defense and an attack are, what an attack may know, and the registry that finds them by name.

Classes come in: from `defenses/` and `attacks/`, from installed plug-ins, or from a single file.
Out go configured methods; whoever adds one edits nothing here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
