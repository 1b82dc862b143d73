"""Words of four topics, and words that tell nothing, of which texts of somebody's own data are made."""

from __future__ import annotations

TOPICS = {
    "delivery": "parcel courier arrived late doorstep van tracking",
    "billing": "invoice charged twice refund card statement",
    "account": "password login locked reset email username",
    "product": "screen battery broken scratched button cable",
}
FILLER = [
    "please",
    "help",
    "me",
    "today",
    "with",
    "this",
    "again",
    "since",
    "last",
    "week",
    "thank",
    "you",
]
