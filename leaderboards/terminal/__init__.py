"""What commands print: results, leaderboards, changes, and how a run ends.

Results tables and frames come in.
Out go descriptions of tables, and sentences, which `printable` makes ready for rich.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
