"""Hearthstone cards in the public card2code format: a folder of SPLIT_hs.in and SPLIT_hs.out."""

import re
from pathlib import Path

PROPERTIES = ("ATK", "DEF", "COST", "DUR", "TYPE", "PLAYER_CLS", "RACE", "RARITY")


def class_name(card_name: str) -> str:
    """The name of the class that implements a card: "Assassin's Blade" to AssassinsBlade."""
    words = re.split(r"[^A-Za-z0-9]+", card_name.replace("'", ""))
    return "".join(word[:1].upper() + word[1:] for word in words)


def parse_card(line: str) -> dict[str, str]:
    """A card's three fields: its class name and name, its eight named properties, its text."""
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


def splits(folder: Path) -> dict[str, Path]:
    """The splits that are present in the folder, each with its file of inputs."""
    found = {path.name.removesuffix("_hs.in"): path for path in folder.glob("*_hs.in")}
    return {name: found[name] for name in ("train", "dev", "test") if name in found}
