"""Transcripts of external systems: recording them around a model, reading them, and attacking them.

Input: a training loop, or a transcript folder with the knowledge that its owner grants to attackers.
Output: a transcript folder. Or: scores, or guesses, of every attack that applies.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
