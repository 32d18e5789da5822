"""A small shop: questions of four kinds about cities, and a model of the choosing editor."""

from functools import cache

from redraft import Example, RetrieveAndEdit

CITIES = "Rome Oslo Paris Lima Cairo Quito Sofia Minsk Dakar Tunis Turin Porto".split()  # noqa: SIM905
KINDS = {
    "how many customers in {}": "SELECT COUNT(*) FROM customers WHERE city = '{}'",
    "list the orders from {}": "SELECT id FROM orders WHERE city = '{}'",
    "total revenue of {}": "SELECT SUM(total) FROM orders WHERE city = '{}'",
    "open tickets in {}": "SELECT id FROM tickets WHERE city = '{}' AND status = 'OPEN'",
}
UNKNOWN = "zzz qqq xylophone"
"""An input that is like no example."""


def shop() -> list[Example]:
    """Return one example for each kind of question and city."""
    return [
        Example({"text": x.format(city)}, y.format(city))
        for city in CITIES
        for x, y in KINDS.items()
    ]


@cache
def shopkeeper() -> RetrieveAndEdit:
    """Return a model of the shop."""
    return RetrieveAndEdit.fit(shop(), editor="choosing")
