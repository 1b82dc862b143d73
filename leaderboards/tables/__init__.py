"""Numbers beside each other: the frame, settings, comparisons, matrices, boards, the papers' figures.

Records come in, from any number of suites.
Out go data frames and tables in which only what is alike is compared.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
