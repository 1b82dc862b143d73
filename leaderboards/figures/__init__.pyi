from .drawing import KINDS as KINDS
from .drawing import Request as Request
from .drawing import draw as draw
from .drawing import plots as plots
from .kinds.goals import goals as goals
from .kinds.memory import memory as memory
from .kinds.tradeoff import tradeoff as tradeoff
from .kinds.training import training as training
