"""The report for somebody who decides: what the provider reads, what helps, and what to do next.

Records, or what attacks read in a transcript, come in.
Out goes one HTML file of about two pages, which needs nothing else and prints as it looks.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
