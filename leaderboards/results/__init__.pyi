from .attacked import Attacked as Attacked
from .places import LOCAL as LOCAL
from .places import folder_of as folder_of
from .places import name_of as name_of
from .results import Results as Results
from .sources import load as load
from .sources import published as published
