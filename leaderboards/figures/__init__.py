"""Figures on paper: curves, sweeps, matrices, bars, what training leaks, what models remember.

Records and tables come in.
Out go PNG, SVG and PDF files with error bars and chance levels.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
