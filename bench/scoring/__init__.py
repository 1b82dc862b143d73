"""Guess against truth: the only place where the two meet, and no attack is called from here.

Guesses and the truth come in, or the raw guesses of a record.
Out go estimates with n, an interval and a chance level, and flags on what looks too good.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
