"""Tasks: texts with labels, private attributes and secrets, from generators, folders, the hub or users' files.

Input: the name or description of a task; errors in files are reported by file and line.
Output: a `Task` with a hash of its content, and optionally planted canaries (`plant_task`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
