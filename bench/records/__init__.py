"""Records on disk: written whole or not at all, with their origin, and compared with each other.

A `Record` comes in, or a folder of them.
Out go checked records, and whether two runs of one cell agree.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
