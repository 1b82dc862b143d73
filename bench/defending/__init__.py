"""What several defenses share: mechanisms of noise, private training, redaction, detectors of secrets.

A session and a defense's parameters come in.
Out go noisy vectors, models trained with DP-SGD, and texts without what a detector found.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
