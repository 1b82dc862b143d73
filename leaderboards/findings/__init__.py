"""What the records show, in sentences: each from a declared rule, with its number and the records behind it.

`rules.py` declares which rows stand against which, and in which words; `engine.py` evaluates the declarations.
Documents and pages quote what comes out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
