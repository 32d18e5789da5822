"""A small shop: questions about cities and countries, and a model of the choosing editor."""

from functools import cache

from redraft import Example, RetrieveAndEdit

CITIES = "Rome Oslo Paris Lima Cairo Quito Sofia Minsk Dakar Tunis Turin Porto".split()  # noqa: SIM905
KINDS = {
    "how many customers in {}": "SELECT COUNT(*) FROM customers WHERE city = '{}'",
    "list the orders from {}": "SELECT id FROM orders WHERE city = '{}'",
    "total revenue of {}": "SELECT SUM(total) FROM orders WHERE city = '{}'",
    "open tickets in {}": "SELECT id FROM tickets WHERE city = '{}' AND status = 'OPEN'",
}
CODES = {
    "Brazil": "BR",
    "Poland": "PL",
    "Norway": "NW",
    "Peru": "PE",
    "Egypt": "EG",
    "Italy": "IT",
    "Kenya": "KE",
    "Japan": "JP",
}
COUNTRY_KINDS = {
    "which products sell in {}": "SELECT product FROM sales WHERE country = '{}'",
    "who supplies us from {}": "SELECT name FROM suppliers WHERE country = '{}'",
    "what are the taxes of {}": "SELECT rate FROM taxes WHERE country = '{}'",
}

UNKNOWN = "zzz qqq xylophone"
"""An input that is like no example."""

MAPPED = "what are the taxes of Poland"
"""An input whose country becomes a code, as in other examples."""

WITHOUT_VALUE = "what are the taxes"
"""An input that names no country: any in the output comes from nowhere."""


def shop() -> list[Example]:
    """Return one example for each kind of question and place, except `MAPPED`."""
    cities = [(x.format(city), y.format(city)) for city in CITIES for x, y in KINDS.items()]
    countries = [
        (x.format(country), y.format(code))
        for country, code in CODES.items()
        for x, y in COUNTRY_KINDS.items()
    ]
    return [Example({"text": x}, y) for x, y in cities + countries if x != MAPPED]


@cache
def shopkeeper() -> RetrieveAndEdit:
    """Return a model of the shop."""
    return RetrieveAndEdit.fit(shop(), editor="choosing")
