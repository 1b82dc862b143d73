"""Figures on paper: trade-offs, sweeps, what each defense hides, what training leaks, what models remember.

Collections of records come in.
Out go descriptions of plots, and PNG, SVG and PDF files of them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
