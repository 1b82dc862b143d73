"""Settings of training, chosen for each row of a suite on training examples that are held out for it.

A suite comes in.
Out go the suite with what was chosen, and the records of all trials, which are cells like any other.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
