"""Code shared by several attacks: inverters, relaxations, label matrices, exact ranks of secrets.

Input: a transcript and the attacker's knowledge, never the truth.
Output: features and predictions from which attacks make guesses.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
