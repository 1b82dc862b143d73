from .build import publish as publish
from .markup import environment as environment
