"""The results table, and tables derived from it: curves, rankings, comparisons, changes, papers' tables and claims.

Input: records of any number of suites.
Output: tables and data frames in which only comparable settings are compared.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
