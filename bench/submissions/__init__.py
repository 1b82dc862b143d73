"""Records that others send: packed, checked as what strangers write, and run once more.

A file or folder comes in that may hold anything.
Out go accepted records, or the reasons why not.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
