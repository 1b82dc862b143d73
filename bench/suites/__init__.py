"""Suites: YAML files that define runs, including the built-in ones.

A name, a path, a dict or the words of a command come in.
Out goes a `Suite`, or all of its mistakes at once, each with its line or its keys.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
