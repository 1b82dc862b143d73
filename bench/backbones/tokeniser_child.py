"""A trial of a tokeniser from outside, run as a script in a process of its own: limits, checks, and texts to encode.

It imports nothing of this package. It prints nothing if the tokeniser holds, and else what is wrong with it.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

MOST_GROWTH = 1000
"""Largest factor by which the rewriting of a text may make it longer."""
MOST_ADDED = 64
"""Largest number of special tokens that may be added to a text."""
GROWTH = {"NFC": 3, "NFD": 4, "NFKC": 18, "NFKD": 18, "BertNormalizer": 4, "ByteLevel": 2}
"""Factors by which the longest characters grow; kinds that are not listed make no text longer."""
TEXTS = (
    "The battery died after two days, and nobody answered my e-mail of 12 May 2024!",
    "Übergröße, naïve café; Привет, мир. 你好，世界。 こんにちは 🙂 ﷺ ﬃ",
    "def f(x):\n\treturn  x**2   # https://example.org/a?b=c&d=1e-5",
    "",
)
LETTERS = [chr(code) for code in range(32, 127)] + list("\n\té你🙂ﷺ")


def main(place: str, extra: int, seconds: int) -> None:
    """Try the tokeniser of a file `tokenizer.json`, or of a folder.

    Args:
        extra: bytes that it may take beyond those that this process has when its libraries are loaded.
        seconds: processor time that it may take.
    """
    is_file = place.endswith(".json")
    if is_file:
        from tokenizers import Tokenizer
    else:
        from transformers import AutoTokenizer
    limit(extra, seconds)
    try:
        if is_file:
            patterns = checked(Path(place))
            tried(Tokenizer.from_file(place), patterns)
        else:
            found = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
            found.decode(found(probes([]))["input_ids"][0])
    except BaseException as error:  # an error of Rust is no Exception
        print(str(error) or type(error).__name__)


def limit(extra: int, seconds: int) -> None:
    """Limit memory and processor time, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    pages = int(Path("/proc/self/statm").read_text().split()[5]) if sys.platform == "linux" else 0
    own = pages * resource.getpagesize()
    for kind, most in (
        (resource.RLIMIT_DATA, own + extra),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def checked(path: Path) -> list[str]:
    """The patterns that a tokeniser replaces.

    Raises:
        ValueError: it may make texts far longer.
    """
    content = json.loads(path.read_text("utf-8"), object_pairs_hook=unique)
    for key in ("normalizer", "decoder"):
        if (factor := growth(content.get(key))) > MOST_GROWTH:
            raise ValueError(
                f"its {key} can make a text {factor:.3g} times longer; the limit is {MOST_GROWTH:,}"
            )
    return [part["pattern"]["String"] for part in parts(content) if "String" in str(part)]


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without a repeated key, of which two readers could take different ones."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def parts(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The replacements in a tokeniser."""
    waiting = [content.get("normalizer"), content.get("pre_tokenizer"), content.get("decoder")]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("pattern"), dict):
                yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def growth(part: Any) -> float:
    """Largest factor by which a normaliser or decoder can make a text longer."""
    if not isinstance(part, dict):
        return 1.0
    kind = part.get("type")
    if kind == "Sequence":
        return prod(growth(each) for each in part.get("normalizers") or part.get("decoders") or [])
    if kind == "Replace":
        replaced = part["pattern"].get("String")
        # A regular expression may match between any two characters.
        return max(
            1, len(part["content"]) / len(replaced) if replaced else 1 + len(part["content"])
        )
    if kind == "Prepend":
        return 1 + len(part["prepend"])
    if kind == "Precompiled":
        return longest_replacement(part["precompiled_charsmap"])
    return GROWTH.get(str(kind), 1)


def longest_replacement(charsmap: str) -> int:
    """Longest text that a table of SentencePiece puts in the place of characters."""
    raw = base64.b64decode(charsmap)
    words = raw[4 + int.from_bytes(raw[:4], "little") :].split(b"\0")
    return max(1, *(len(word) for word in words))


def tried(tokenizer: Any, patterns: list[str]) -> None:
    """Encode and decode texts.

    Raises:
        ValueError: many special tokens are added to each.
    """
    added = max(tokenizer.num_special_tokens_to_add(pair) for pair in (False, True))
    if added > MOST_ADDED:
        raise ValueError(f"it adds {added:,} tokens to a text; the limit is {MOST_ADDED}")
    for text in probes(patterns):
        with suppress(Exception):  # an honest one may lack a character; an error of Rust is none
            tokenizer.decode(tokenizer.encode(text).ids)
            tokenizer.encode(text, TEXTS[0])


def probes(patterns: list[str]) -> list[str]:
    """Ordinary texts, long runs of each character, and what is replaced."""
    return [*TEXTS, *(200 * letter for letter in LETTERS), *(20 * p[:100] for p in patterns[:100])]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
