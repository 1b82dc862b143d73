"""The trust boundary: a session of fine-tuning, and the wire that counts and records what crosses it.

A backbone, the customer's examples and settings come in, and a defense that trains with them.
Out goes a `Transcript`, in memory or as a folder: what was not sent here was not seen.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
