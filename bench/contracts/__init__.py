"""Data types that all other rooms share: channels, threat models, transcripts, guesses, cells, records.

This room imports no other room and no torch, so that listing methods is quick. It provides frozen data types, the
seeds of a cell (one for each axis) and the errors that a user can correct.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
