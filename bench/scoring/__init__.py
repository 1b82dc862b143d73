"""Scoring of guesses against the truth. Attacks are never called from this package.

Input: guesses and the truth, or the raw guesses of a record.
Output: estimates with n, interval and chance level, and flags for results that need caution.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
