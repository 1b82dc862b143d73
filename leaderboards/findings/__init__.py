"""What the records show, as sentences: each from a rule, with its numbers and the records behind it.

Comparisons of records come in.
Out go findings, which tables, pages and documents quote.
"""

import lazy_loader
