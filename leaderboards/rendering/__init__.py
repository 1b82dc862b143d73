"""Tables and plots described once, and drawn by two back ends each.

Descriptions come in: `Table` and `Plot`.
Out go tables for the terminal and as HTML, and plots as files (PNG, SVG, PDF) and as SVG inside a page.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
