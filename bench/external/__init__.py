"""Transcripts of systems that are not here: recorded around a model, read, and attacked.

A training loop comes in, or a folder of messages, with what its owner grants and knows.
Out go a transcript folder, and the scores or guesses of every attack that applies.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
