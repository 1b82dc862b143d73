"""The trust boundary: the session in which a defense fine-tunes, and the wire that counts and records its messages.

Input: a backbone, the customer's examples, settings, and a defense that trains with them. Output: a `Transcript`, in
memory or as a folder; nothing else crosses the boundary.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
