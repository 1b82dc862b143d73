from .halving import Tuning as Tuning
from .halving import tune as tune
from .tuned_suite import check_place as check_place
from .tuned_suite import kept as kept
