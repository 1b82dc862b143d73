"""The rules that a method keeps, examined on one small cell, and skeletons of new methods.

A defense or an attack comes in: a class, a name, or a file.
Out goes a report with every rule, and what to do about the broken ones.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
