from .build import publish as publish
from .drawing import start as start
