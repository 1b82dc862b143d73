"""Secret detector for fixed forms, by regular expressions; it does not find names and places."""

from __future__ import annotations

import re

from leakboard.bench.tasks import Span

MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
TIME = r"\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]\.?m\b\.?)?"
AMOUNT = r"\d[\d,]*(?:\.\d+)?"
SITE = r"(?:com|org|net|edu|gov|mil|info|biz|io|co|eu|uk|us|ca|au|de|fr|es|it|nl|ch|at|se|pl|jp|cn|in|br)"

# If two patterns match at the same character, the first one is used.
PATTERNS = {
    "email": r"(?<![\w.+%-])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+",
    "url": rf"(?:https?|ftp)://\S*[\w/]|www\.\S*[\w/]|(?<!\w)(?:[a-z0-9-]{{1,63}}\.){{1,5}}{SITE}(?![\w-])(?:/\S*[\w/])?",
    "ip": r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\w)"
    r"|(?<![\w:])(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}(?![\w:])"
    r"|(?<![\w:])(?:[0-9a-f]{1,4}:){1,6}:(?:[0-9a-f]{1,4}:){0,5}[0-9a-f]{1,4}(?![\w:])",
    "money": rf"[$€£¥]\s?{AMOUNT}(?:\s?(?:k|m|bn|million|billion|thousand)\b)?"
    rf"|(?<!\w){AMOUNT}\s?(?:dollars?|euros?|pounds|cents?|usd|eur|gbp|[€£])(?!\w)",
    "date": rf"(?<!\w)\d{{4}}[-/.]\d\d?[-/.]\d\d?(?:[ T]{TIME})?(?!\w)"
    r"|(?<!\w)\d\d?[-/.]\d\d?[-/.](?:\d{4}|\d\d)(?![-/.]?\w)"
    rf"|\b{MONTH}\.?\s\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s\d{{4}}\b)?"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{MONTH}\b\.?(?:,?\s\d{{4}}\b)?"
    rf"|\b{MONTH}\s\d{{4}}\b|\b{WEEKDAY}\b|\b{TIME}"
    r"|(?<![\w.,-])(?:19|20)\d\d(?![-.,]?\d|\w)",
    "card": r"(?<![\w-])\d{4}(?:[ -]\d{4}){2,3}(?:[ -]\d{1,4})?(?![\w-])|(?<![\w-])\d{12,19}(?![\w-])",
    "phone": r"(?:"
    r"(?<![\w+])(?:(?:\+|00)\d{1,3}[\s.-]?)?\(\d{1,4}\)[\s.-]?\d{1,4}(?:[\s./-]?\d{2,4}){1,3}"
    r"|(?<![\w+])(?:\+|00)\d{1,3}(?:[\s./-]?\d{2,4}){2,5}"
    r"|(?<![\w+-])\d{2,4}(?:[\s./-]\d{2,4}){2,4}"
    r"|(?<![\w+-])\d{2,5}[ -]\d{3,7}"
    r")(?:\s?x\d{1,5})?(?![\w-])",
    # Orders, accounts, licences: at least four digits, with letters and separators among them.
    "number": r"(?<!\w)#\s?\d[\w-]*|(?<!\w)(?=(?:[a-z]{0,8}[-/_]?\d[-/_]?){4})[a-z0-9]+(?:[-/_][a-z0-9]+)*(?!\w)"
    r"|(?<!\w)[a-z]{2}\d\d(?:\s?[a-z0-9]{4}){2,7}(?:\s?[a-z0-9]{1,4})?(?!\w)",
}  # fmt: skip
ANY = re.compile("|".join(f"(?P<{kind}>{rule})" for kind, rule in PATTERNS.items()), re.IGNORECASE)


def find(text: str) -> tuple[Span, ...]:
    """Sorted, disjoint spans of a text that match a pattern."""
    return tuple(Span(m.start(), m.end(), str(m.lastgroup)) for m in ANY.finditer(text))
