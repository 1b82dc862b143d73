from .reporting import report as report
