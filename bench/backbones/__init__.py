"""Real pretrained models, cut after any block into a customer's bottom and a vendor's top.

Input: the name of an embedded model, a folder with safetensors, or a hub id. Each architecture family is one file.
Output: an immutable `Backbone`, its trainable copies (`Network`, `LanguageModel`), and tokens.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
