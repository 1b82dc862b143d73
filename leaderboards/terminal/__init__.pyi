from .boards import board_tables as board_tables
from .boards import matrix_tables as matrix_tables
from .boards import paper_tables as paper_tables
from .changes import changes_tables as changes_tables
from .ending import ending as ending
from .findings import findings_text as findings_text
from .results import best_tables as best_tables
from .results import summary_tables as summary_tables
