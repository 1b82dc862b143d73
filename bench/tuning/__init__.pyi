from .grid import Tuning as Tuning
from .grid import tune as tune
from .tuned_suite import check_file as check_file
from .tuned_suite import write_tuned_suite as write_tuned_suite
