from .check import Report as Report
from .check import check_method as check_method
from .scaffold import write_skeleton as write_skeleton
