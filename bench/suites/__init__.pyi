from .methods import methods_named as methods_named
from .row import SuiteRow as SuiteRow
from .row import in_words as in_words
from .suite import Printed as Printed
from .suite import Suite as Suite
from .suite import load_suite as load_suite
from .suite import suite_names as suite_names
from .writing import written as written
