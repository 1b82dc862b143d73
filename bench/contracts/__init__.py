"""The nouns that every part is written against: channels, threat models, transcripts, guesses, cells, records.

Nothing comes in: this room imports no other one, and no torch, so that listing things stays quick.
Out go frozen data types, the seeds of a cell (one for each axis) and the errors that a user can mend.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
