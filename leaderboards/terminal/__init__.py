"""Results, the matrix and the leaderboards on the terminal.

Frames, comparisons and boards come in.
Out go tables and lines that rich prints.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
