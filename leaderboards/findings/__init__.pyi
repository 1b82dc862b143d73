from .every import RULES as RULES
from .every import findings as findings
from .finding import Finding as Finding
from .quoting import chosen as chosen
from .quoting import document as document
from .quoting import listing as listing
from .quoting import quoted as quoted
