from .drawing import KINDS as KINDS
from .drawing import Request as Request
from .drawing import draw as draw
