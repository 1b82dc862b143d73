from .build import publish as publish
