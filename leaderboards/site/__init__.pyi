from .build import publish as publish
from .cells import Cell as Cell
from .cells import Column as Column
from .cells import Table as Table
from .markup import environment as environment
