"""Conformance checks for methods, on one small cell, and skeletons of new methods.

Input: a defense or an attack, as a class, a name, or a file.
Output: a report on every rule, with advice for broken ones.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
