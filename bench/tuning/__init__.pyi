from .halving import Tuning as Tuning
from .halving import tune as tune
from .keeping import check_place as check_place
from .keeping import kept as kept
