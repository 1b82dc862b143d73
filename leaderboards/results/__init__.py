"""Records in the hands of who asks: read, joined, summed up, drawn, and chosen by.

Records come in, from a run, from folders, or from what the installation ships; or an attacked transcript.
Out go `Results` (and `Attacked`), on which the public API and the commands stand.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
