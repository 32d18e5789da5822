"""The shop's schema, its values, and how each colleague writes a value in a question.

A value is the text that stands in the SQL, without quotes. `DRAWS` draws a value of a slot,
`spell` writes it the way an author would. Knows no statements and no questions.
"""

import datetime
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT, company TEXT, phone TEXT,
  city TEXT, country TEXT, locked INTEGER, newsletter INTEGER, created_at TEXT);
CREATE TABLE agents (id INTEGER PRIMARY KEY, name TEXT, email TEXT, team TEXT);
CREATE TABLE products (id INTEGER PRIMARY KEY, sku TEXT, name TEXT, category TEXT, price REAL,
  stock INTEGER);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, status TEXT, total REAL,
  ordered_at TEXT);
CREATE TABLE order_items (order_id INTEGER, product_id INTEGER, quantity INTEGER, unit_price REAL);
CREATE TABLE invoices (id INTEGER PRIMARY KEY, number TEXT, order_id INTEGER, customer_id INTEGER,
  amount REAL, issued_on TEXT, due_on TEXT, paid_on TEXT);
CREATE TABLE tickets (id INTEGER PRIMARY KEY, customer_id INTEGER, order_id INTEGER,
  agent_id INTEGER, subject TEXT, status TEXT, priority INTEGER, opened_at TEXT, closed_at TEXT);
CREATE TABLE shipments (id INTEGER PRIMARY KEY, order_id INTEGER, carrier TEXT, tracking TEXT,
  status TEXT, shipped_at TEXT, delivered_at TEXT);
CREATE TABLE refunds (id INTEGER PRIMARY KEY, order_id INTEGER, amount REAL, refunded_on TEXT);
"""

INES, BEN, CHIDI, DORA = AUTHORS = ("ines", "ben.cole", "chidi", "dora")
"""Terse keywords; polite sentences; typos and lower case; imperatives with abbreviations."""


@dataclass(frozen=True)
class Customer:
    name: str
    email: str
    city: str


CUSTOMERS = tuple(
    Customer(*line.split(", "))
    for line in """
Carol Jensen, carol@newco.org, Aarhus
Dana White, dana.white@brightworks.io, Leeds
Tomasz Kowalski, t.kowalski@meblex.pl, Gdansk
Marta Lopez, marta.lopez@gmail.com, Valencia
Dunder Mifflin, orders@dundermifflin.com, Scranton
Jonas Weber, jonas.weber@web.de, Hamburg
Amelie Roux, a.roux@atelier-roux.fr, Lyon
Sean O'Neill, sean.oneill@corkprint.ie, Cork
Blue Harbor, accounts@blueharbor.co.uk, Bristol
Li Na, li.na@outlook.com, Rotterdam
Peter Novak, pnovak@seznam.cz, Brno
Giulia Conti, giulia@contiarredi.it, Bologna
Henrik Lund, henrik.lund@nordlys.no, Bergen
Acme Retail, purchasing@acme-retail.com, Dublin
Sofia Almeida, sofia.almeida@sapo.pt, Porto
Ravi Menon, ravi.menon@gmail.com, Leeds
Katrin Vogel, kvogel@vogel-design.at, Graz
Northwind Traders, ap@northwind.example, Antwerp
Emma de Vries, emma.devries@kpnmail.nl, Utrecht
Oskar Lindqvist, oskar@lindqvist.se, Malmo
Yara Haddad, yara.haddad@gmail.com, Marseille
Piotr Zielinski, piotr.z@onet.pl, Krakow
Nina Petrova, nina.petrova@mail.bg, Vienna
Oak and Iron, hello@oakandiron.co.uk, Bristol
Lucas Martin, lucas.martin@orange.fr, Nantes
Bettina Krause, b.krause@gmx.de, Leipzig
Globex Corporation, ap@globex.com, Hamburg
Finn Gallagher, finn@gallagherbros.ie, Galway
Ines Ferrer, iferrer@casaferrer.es, Sevilla
Mikko Laine, mikko.laine@elisa.fi, Tampere
Harbour House, stay@harbourhouse.ie, Cork
Zofia Nowak, zofia.nowak@wp.pl, Poznan
Stefan Huber, stefan@huber-holz.at, Linz
Anna-Lena Braun, al.braun@posteo.de, Berlin
Studio Verde, info@studioverde.it, Torino
Claire D'Arcy, claire.darcy@gmail.com, Ghent
Bright Kids Nursery, office@brightkids.co.uk, York
Marek Svoboda, marek.svoboda@centrum.cz, Prague
""".strip().splitlines()
)

COUNTRIES = {
    "DE": "Germany",
    "PL": "Poland",
    "FR": "France",
    "GB": "the UK",
    "ES": "Spain",
    "IE": "Ireland",
    "NL": "the Netherlands",
    "AT": "Austria",
    "IT": "Italy",
    "CZ": "Czechia",
    "SE": "Sweden",
    "PT": "Portugal",
    "DK": "Denmark",
    "BE": "Belgium",
    "NO": "Norway",
    "FI": "Finland",
    "CH": "Switzerland",
}
TICKET_STATUSES = {"OPN": "open", "WFC": "waiting", "HLD": "on hold", "RES": "resolved"}
ORDER_STATUSES = {
    "PD": "paid",
    "SHP": "shipped",
    "DLV": "delivered",
    "RET": "returned",
    "PKD": "packed",
    "NEW": "new",
}
PRIORITIES = {"1": "urgent", "2": "high", "3": "normal", "4": "low"}
WORDS = {
    "country": COUNTRIES,
    "ticket_status": TICKET_STATUSES,
    "order_status": ORDER_STATUSES,
    "priority": PRIORITIES,
}
"""Slots whose value in the SQL is a code: the word of each code."""

AGENTS = ("Priya Nair", "Tom Becker", "Lucia Moreno", "Sam Okafor", "Hanna Virtanen")
PRODUCTS = {
    "LMP-0042": "Oak Desk Lamp",
    "LMP-0117": "Arc Floor Lamp",
    "CHR-0203": "Rattan Chair",
    "CHR-0210": "Nordic Armchair",
    "TBL-0008": "Folding Table",
    "TBL-0031": "Walnut Side Table",
    "RUG-0300": "Wool Rug Large",
    "SHF-0075": "Corner Shelf",
    "MIR-0019": "Round Mirror",
    "CSH-0450": "Linen Cushion",
}


def _often(values: tuple[str, ...], chance: random.Random) -> str:
    """Draw a value; the first ones come up most often."""
    return values[int(len(values) * chance.random() ** 1.6)]


def _customer(chance: random.Random) -> Customer:
    return CUSTOMERS[int(len(CUSTOMERS) * chance.random() ** 1.5)]


def move_email(email: str, chance: random.Random) -> str:
    """Return another address that the customer with this one may have."""
    name = next(customer.name for customer in CUSTOMERS if customer.email == email)
    first, *_, last = name.lower().replace("'", "").split()
    domain = chance.choice(("gmail.com", "proton.me", "outlook.com", "icloud.com", "fastmail.com"))
    if chance.random() < 0.4:
        domain = email.partition("@")[2]
    local = chance.choice((f"{first}.{last}", f"{first}{last}", f"{first}_{last}", f"{first}2"))
    return f"{local}@{domain}" if f"{local}@{domain}" != email else f"{last}.{first}@{domain}"


def _earlier(chance: random.Random, day: datetime.date, days: int) -> str:
    date = day - datetime.timedelta(days=chance.randint(1, days))
    return date.replace(day=1).isoformat() if chance.random() < 0.35 else date.isoformat()


def _month(chance: random.Random, day: datetime.date) -> str:
    month = day.replace(day=1) - datetime.timedelta(days=chance.choice((1, 1, 1, 40, 75)))
    return month.strftime("%Y-%m")


def _amount(chance: random.Random) -> str:
    return chance.choice(("50", "100", "150", "200", "250", "500", "750", "1000", "1500", "2000"))


def _refund(chance: random.Random) -> str:
    cents = chance.choice(("", "", ".50", ".90", ".99", ".95"))
    return f"{chance.randint(9, 180)}{cents}"


Draw = Callable[[random.Random, datetime.date], str]
DRAWS: Mapping[str, Draw] = {
    "name": lambda chance, _: _customer(chance).name,
    "email": lambda chance, _: _customer(chance).email,
    "city": lambda chance, _: _customer(chance).city,
    "country": lambda chance, _: _often(tuple(COUNTRIES), chance),
    "ticket_status": lambda chance, _: _often(tuple(TICKET_STATUSES), chance),
    "order_status": lambda chance, _: _often(tuple(ORDER_STATUSES), chance),
    "priority": lambda chance, _: _often(tuple(PRIORITIES), chance),
    "agent": lambda chance, _: _often(AGENTS, chance),
    "sku": lambda chance, _: _often(tuple(PRODUCTS), chance),
    "product": lambda chance, _: _often(tuple(PRODUCTS.values()), chance),
    "order": lambda chance, day: str(_serial(chance, day, 10400, 23)),
    "ticket": lambda chance, day: str(_serial(chance, day, 5100, 9)),
    "invoice": lambda chance, day: _invoice(chance, day),
    "amount": lambda chance, _: _amount(chance),
    "refund": lambda chance, _: _refund(chance),
    "date": lambda chance, day: _earlier(chance, day, 60),
    "paid": lambda chance, day: (day - datetime.timedelta(chance.randint(0, 6))).isoformat(),
    "month": _month,
}

START = datetime.date(2024, 9, 2)


def _serial(chance: random.Random, day: datetime.date, first: int, per_day: int) -> int:
    """Draw a number that was given out in the month before `day`."""
    days = (day - START).days - chance.randint(0, 30)
    return first + max(days, 0) * per_day + chance.randint(0, 400)


def _invoice(chance: random.Random, day: datetime.date) -> str:
    """Draw the number of an invoice of the weeks before `day`; numbers start anew each year."""
    issued = day - datetime.timedelta(days=chance.randint(1, 50))
    return f"INV-{issued.year}-{issued.timetuple().tm_yday * 6 + chance.randint(0, 5):04d}"


def spell(slot: str, value: str, author: str, chance: random.Random) -> str:
    """Write the value of a slot the way the author writes it in a question."""
    text = _spell(slot, value, author, chance)
    return text.lower() if author == CHIDI and chance.random() < 0.93 else text


def _spell(slot: str, value: str, author: str, chance: random.Random) -> str:
    if slot in ("date", "paid"):
        return _spell_date(datetime.date.fromisoformat(value), author, chance)
    if slot == "month":
        day = datetime.date.fromisoformat(f"{value}-01")
        formats = {INES: "%m/%Y", BEN: "%B %Y", CHIDI: "%B %Y", DORA: "%b %Y"}
        return value if chance.random() < 0.2 else day.strftime(formats[author])
    if slot == "country" and author in (INES, DORA):
        short = chance.random() < 0.35
        return value if short else COUNTRIES[value].removeprefix("the ")
    if slot in WORDS:
        return WORDS[slot][value]
    if slot in ("amount", "refund"):
        return _spell_amount(value, author, chance)
    if slot in ("order", "ticket") and chance.random() < 0.2:
        return {BEN: f"no. {value}", CHIDI: f"nr {value}"}.get(author, f"#{value}")
    return value


def _spell_date(day: datetime.date, author: str, chance: random.Random) -> str:
    if chance.random() < 0.45:
        return day.isoformat()
    if author == BEN:
        return f"{day.day} {day:%B %Y}"
    if author == CHIDI:
        return f"{day.day}.{day.month}.{day.year}"
    return f"{day:%d/%m/%Y}" if author == INES else f"{day.day} {day:%b %Y}"


def _spell_amount(value: str, author: str, chance: random.Random) -> str:
    if author == INES or chance.random() < 0.3:
        return value
    if author == BEN:
        return f"€{float(value):,.2f}" if "." in value else f"€{int(value):,}"
    if author == DORA:
        return f"{int(value) / 1000:g}k" if value in ("1000", "1500", "2000") else f"{value} EUR"
    return f"{value} {chance.choice(('eur', 'euro', 'euros'))}"
