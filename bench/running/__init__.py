"""From a suite to records: the plan, its cells, what attacks are granted, and the runner that resumes.

A `Suite` comes in, and a store that may hold some of its records already.
Out goes a record for every cell, also where a defense or an attack failed.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
