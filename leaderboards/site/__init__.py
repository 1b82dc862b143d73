"""The static site: a front page that answers a question, pages of methods, findings and records.

Folders of records come in.
Out goes a folder of pages, which is replaced as a whole or not at all.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
