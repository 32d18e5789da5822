"""Parse Hearthstone cards in the card2code format, the lines of SPLIT_hs.in."""

import re

PROPERTIES = ("ATK", "DEF", "COST", "DUR", "TYPE", "PLAYER_CLS", "RACE", "RARITY")


def class_name(card_name: str) -> str:
    """Return the name of the class that implements a card: AssassinsBlade."""
    words = re.split(r"[^A-Za-z0-9]+", card_name.replace("'", ""))
    return "".join(word[:1].upper() + word[1:] for word in words)


def parse_card(line: str) -> dict[str, str]:
    """Return the fields of a card: name (class name and name), properties and description."""
    name, marker, rest = line.partition(" NAME_END ")
    if not marker:
        raise ValueError("expected a card (NAME NAME_END ...), found no NAME_END")
    properties = []
    for key in PROPERTIES:
        value, marker, rest = rest.partition(f" {key}_END")
        if not marker:
            raise ValueError(f"expected a card, found no {key}_END")
        properties.append(f"{key.lower()}_{value.strip().replace(' ', '_')}")
    return {
        "name": f"{class_name(name)} {name}",
        "properties": " ".join(properties),
        "description": rest.strip(),
    }
