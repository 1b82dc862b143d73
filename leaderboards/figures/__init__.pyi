from .drawing import KINDS as KINDS
from .drawing import Request as Request
from .drawing import draw as draw
from .drawing import draw_axes as draw_axes
from .series import Place as Place
from .series import measured_words as measured_words
