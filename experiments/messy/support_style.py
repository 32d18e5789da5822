"""Write questions and SQL the way four colleagues do: greetings, typos, case, semicolons.

Knows texts and authors. Must not know statements, values or files.
"""

import random
import re
from collections.abc import Sequence

from experiments.messy.support_values import BEN, CHIDI, DORA, INES

HABITS = {
    "please": ("plese", "pleas", "pls"),
    "customer": ("custmer", "costumer", "customr"),
    "customers": ("custmers", "costumers", "customes"),
    "order": ("oder", "ordre", "orde"),
    "orders": ("oders", "orderes"),
    "invoice": ("invioce", "invoce"),
    "invoices": ("invioces", "invoces"),
    "ticket": ("tiket", "tickt"),
    "tickets": ("tikets", "tickest"),
    "status": ("staus", "statsu"),
    "tracking": ("traking", "trackng"),
    "number": ("nubmer", "numer"),
    "account": ("acount", "accout"),
    "priority": ("prioirty", "prority"),
    "refund": ("refudn", "refnd"),
}
"""Misspellings that come up again and again; other words lose or swap letters."""

REWORDINGS = {
    INES: (("customers", "clients"), ("customers", "custs"), ("since", "from")),
    BEN: (
        ("Could you please", "Can you please"),
        ("Could you please", "Would you please"),
        ("Could you please", "I would be grateful if you could"),
        ("show me", "give me"),
        ("Please", "Kindly"),
    ),
    CHIDI: (
        ("whats", "what is"),
        ("wheres", "where is"),
        ("pls", "please"),
        ("need", "i need"),
        ("how many", "hwo many"),
        ("customers", "clients"),
    ),
    DORA: (("List", "Show"), ("Get", "Pull"), ("Check", "Chk"), ("ord", "order"), ("tix", "tkt")),
}
"""What an author writes at times in place of a usual wording."""

_WORD = re.compile(r"[A-Za-z]{4,}")
_NUMBERED = re.compile(r"(?i)\b(number|no\.) (?:no\. |nr |#)")
_JOINT = re.compile(r" (?=(?:FROM|JOIN|WHERE|GROUP BY|ORDER BY)\b)")


def polish(text: str, author: str, *, keep: Sequence[str], chance: random.Random) -> str:
    """Give a question the author's manners; the texts in `keep` are never misspelt."""
    for usual, other in REWORDINGS[author]:
        if chance.random() < 0.25:
            text = re.sub(rf"\b{usual}(?!\w)", other, text, count=1)
    text = _NUMBERED.sub(r"\1 ", text)
    if author == BEN:
        text = text.replace("?", ".") if "grateful" in text else text
        greeting = chance.choice(("Hi, ", "Hello, ", "Good morning. ", "Hi all, "))
        thanks = chance.choice((" Thank you!", " Many thanks.", " Thanks in advance!"))
        if chance.random() < 0.15:
            text = greeting + (text if ". " in greeting else _uncapitalised(text, keep))
        text = text if text[-1] in ".?" else f"{text}."
        return text + thanks if chance.random() < 0.18 else text
    if author == CHIDI:
        typos = chance.choices((0, 1, 2), (45, 40, 15))[0]
        ending = chance.choice(("", "", "", "", "", " pls", " thx", "?", "??"))
        text = misspell(text.rstrip("?."), typos, keep=keep, chance=chance)
        return text + ending
    if author == DORA:
        return text.rstrip("?") + chance.choice(("", "", "", "", "", "", ".", "!", " asap"))
    return text[0].upper() + text[1:] if chance.random() < 0.12 else text


def _uncapitalised(text: str, keep: Sequence[str]) -> str:
    is_name = text.startswith(("I ", *keep))
    return text if is_name else text[0].lower() + text[1:]


def misspell(text: str, count: int, *, keep: Sequence[str], chance: random.Random) -> str:
    """Return `text` with typos in up to `count` words, none of them inside a text of `keep`."""
    for _ in range(count):
        kept = [(m.start(), m.end()) for part in keep for m in re.finditer(re.escape(part), text)]
        words = [
            word
            for word in _WORD.finditer(text)
            if not any(start < word.end() and word.start() < end for start, end in kept)
        ]
        if not words:
            break
        word = chance.choice(words)
        text = text[: word.start()] + _typo(word[0], chance) + text[word.end() :]
    return text


def _typo(word: str, chance: random.Random) -> str:
    if (habit := HABITS.get(word.lower())) and chance.random() < 0.7:
        return chance.choice(habit)
    at = chance.randrange(1, len(word) - 1)
    match chance.randrange(3):
        case 0:  # a letter is missing
            return word[:at] + word[at + 1 :]
        case 1:  # two letters change places
            return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        case _:  # a key is hit twice
            return word[:at] + word[at] + word[at:]


def vary(text: str, *, keep: Sequence[str], chance: random.Random) -> str:
    """Return a near duplicate: other case, other punctuation, a typo or a stray space."""
    match chance.randrange(6):
        case 0:
            return text.lower()
        case 1:
            return text.rstrip("?!. ") + chance.choice(("", ".", "?", " ?", " please"))
        case 2 | 3:
            return misspell(text, 1, keep=keep, chance=chance)
        case 4:
            return text.replace(" ", "  ", 1) if chance.random() < 0.5 else f" {text} "
        case _:
            return re.sub(r"(?i)\bplease ", "", text) if "lease " in text else text + "?"


def style_sql(sql: str, author: str, chance: random.Random) -> str:
    """Return the statement as the author writes it, with the same meaning."""
    if author == CHIDI:
        quoted = re.split(r"('(?:[^']|'')*')", sql)
        return "".join(part if i % 2 else part.lower() for i, part in enumerate(quoted))
    if author == BEN and "JOIN" in sql and chance.random() < 0.6:
        sql = _JOINT.sub("\n", sql)
    return f"{sql};" if author in (BEN, DORA) else sql
