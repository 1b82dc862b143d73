"""The static site: a page for each board, method, suite and record.

Folders of records come in.
Out goes a folder of pages, figures and downloads, published whole or not at all.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
