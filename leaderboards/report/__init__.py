"""The report for somebody who decides: what is read, what protects, at which cost, how sure that is.

Records, or what attacks made of a transcript, come in.
Out goes one HTML file of two to four pages, which needs nothing besides itself and prints as it looks.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
