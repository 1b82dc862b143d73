"""Texts with labels, private attributes and secrets: generated, from folders, from the hub, or a user's own.

A name or a description of data comes in, checked and with its mistakes told by file and line.
Out goes a `Task`, whose hash says what it holds, and what was planted in it (`planted`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
