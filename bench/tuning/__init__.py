"""Tuning: training settings for each row of a suite, chosen on held-out training examples.

Input: a suite.
Output: the suite with the chosen settings, and the records of all trials, which are ordinary cells.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
