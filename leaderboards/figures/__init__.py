"""Figures: trade-offs, sweeps, leakage of all goals, leakage during training, and memorisation.

Input: a collection of records.
Output: descriptions of plots, and PNG, SVG and PDF files of them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
