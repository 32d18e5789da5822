"""Cards in the public format, made up."""

import pytest

from redraft.data.hearthstone import PROPERTIES, class_name, parse_card

CARD = (
    "Grim Miller NAME_END 3 ATK_END 2 DEF_END 2 COST_END -1 DUR_END Minion TYPE_END "
    "Neutral PLAYER_CLS_END NIL RACE_END Common RARITY_END <b>Taunt</b>. Deal 1 damage."
)


def test_a_card_has_a_name_properties_and_a_description() -> None:
    assert parse_card(CARD) == {
        "name": "GrimMiller Grim Miller",
        "properties": "atk_3 def_2 cost_2 dur_-1 type_Minion player_cls_Neutral race_NIL "
        "rarity_Common",
        "description": "<b>Taunt</b>. Deal 1 damage.",
    }


def test_a_card_may_have_no_description() -> None:
    assert parse_card(CARD.partition(" <b>")[0])["description"] == ""


def test_a_property_of_two_words_stays_one_word() -> None:
    properties = parse_card(CARD.replace("Neutral", "Grim Hunter"))["properties"]
    assert "player_cls_Grim_Hunter" in properties.split()
    assert len(properties.split()) == len(PROPERTIES)


@pytest.mark.parametrize(
    ("card", "name"),
    [
        ("Miller's Blade", "MillersBlade"),
        ("Ka'Zum the Wide", "KaZumTheWide"),
        ("Half-Baked Loaf", "HalfBakedLoaf"),
        ("Word of Flour: Sieve", "WordOfFlourSieve"),
        ("Mr. Crumb, Esq.", "MrCrumbEsq"),
        ("Loaf 2-B", "Loaf2B"),
        ("DOUGH Maker", "DOUGHMaker"),
    ],
)
def test_a_class_is_named_after_its_card(card: str, name: str) -> None:
    assert class_name(card) == name


def test_a_line_that_is_no_card_says_so() -> None:
    with pytest.raises(ValueError, match=r"^expected a card .*, found no NAME_END$"):
        parse_card("a plain line")


@pytest.mark.parametrize("key", PROPERTIES)
def test_a_missing_property_is_named(key: str) -> None:
    with pytest.raises(ValueError, match=f"^expected a card, found no {key}_END$"):
        parse_card(CARD.replace(f" {key}_END", ""))
