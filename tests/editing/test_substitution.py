"""The training-free editor: differing spans of the inputs are carried over into the output."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.editing.slot_filling import Query, SlottedExample, opposites
from redraft.editing.substitution import (
    Edit,
    SubstitutionEditor,
    provenance_of,
    substitute,
)
from redraft.editing.value_table import ValueTable
from redraft.errors import ModelError
from redraft.storage.artifact import Artifact
from redraft.types import Example, Prototype


def edit_of(query: Query, source: SlottedExample, table: ValueTable) -> Edit:
    return substitute(query, source, table, opposite=opposites(query, source, table))


def edited(x: str, *pairs: tuple[str, str]) -> str:
    """The output for `x` edited from the first pair, by the values of all pairs."""
    examples = [Example({"text": source}, y) for source, y in pairs]
    editor = SubstitutionEditor.fit(examples, None)
    [[candidate]] = editor.edit([{"text": x}], [[Prototype(examples[0], 0.5)]])
    return candidate.output


@pytest.mark.parametrize(
    ("x", "pair", "y"),
    [
        ("orders of Acme", ("orders of Dunder Mifflin", "c = 'Dunder Mifflin'"), "c = 'Acme'"),
        ("orders of Dunder Mifflin", ("orders of Acme", "c = 'Acme'"), "c = 'Dunder Mifflin'"),
        (
            "unlock bob.x@acme.io",
            ("unlock carol@newco.org", "m='carol@newco.org'"),
            "m='bob.x@acme.io'",
        ),
        ("since 12 May 2023", ("since 3 July 2024", "d >= '2024-07-03'"), "d >= '2023-05-12'"),
        ("total of 2,345", ("total of 1,000", "id = 1000"), "id = 2345"),
        ("the five best", ("the twenty best", "limit 20"), "limit 5"),
        ("get the order", ("get the user", "def get_user(): ..."), "def get_order(): ..."),
        ("card for an order", ("card for a user", "class UserCard: ..."), "class OrderCard: ..."),
        (
            "all companies",
            ("all users", "for user in users: f(user)"),
            "for company in companies: f(company)",
        ),
        ("sum of a b", ("sum of cards", "sum(cards)"), "sum(a_b)"),
        (
            "from Rome to Oslo",
            ("from Paris to Berlin", "f('Paris', 'Berlin', 'Paris')"),
            "f('Rome', 'Oslo', 'Rome')",
        ),
        (
            "go to Oslo from Rome",
            ("go from Paris to Berlin", "f('Paris', 'Berlin')"),
            "f('Rome', 'Oslo')",
        ),
        ("how many cities in TEXAS", ("how many cities in ohio", "s = 'ohio'"), "s = 'TEXAS'"),
    ],
)
def test_a_span_that_differs_is_carried_over(x: str, pair: tuple[str, str], y: str) -> None:
    assert edited(x, pair) == y


def test_values_that_are_derived_from_the_input_are_looked_up() -> None:
    pairs = [
        ("customers in Poland", "n where country = 'PL'"),
        ("orders from Poland", "o where country = 'PL'"),
        ("customers in Brazil", "n where country = 'BR'"),
        ("orders of Brazil", "o where country = 'BR'"),
    ]
    assert edited("customers in Brazil", *pairs) == "n where country = 'BR'"
    assert edited("how many customers in Brazil", *pairs) == "n where country = 'BR'"


def test_fields_are_aligned_field_by_field() -> None:
    example = Example({"name": "Sea Giant", "cost": "10"}, "Card('Sea Giant', 10)")
    editor = SubstitutionEditor.fit([example], None)
    x = {"name": "Frost Elemental", "cost": "6"}
    [[candidate]] = editor.edit([x], [[Prototype(example, 0.5)]])
    assert candidate.output == "Card('Frost Elemental', 6)"


def test_a_value_without_a_counterpart_stays_and_is_stale() -> None:
    table = ValueTable.learn(
        [Example({"text": "orders of Acme since 2020"}, "c = 'Acme', y = 2020")]
    )
    source = SlottedExample.of(
        Example({"text": "orders of Acme since 2020"}, "c = 'Acme', y = 2020"), table
    )
    edit = edit_of(Query.of({"text": "orders of Acme"}, table), source, table)
    assert edit.output == "c = 'Acme', y = 2020"
    assert edit.stale == ("2020",)
    assert edit.slots == 2


names = st.text("abcdefgh", min_size=3, max_size=8)


@given(names, names, names)
def test_the_same_input_keeps_the_stored_output(verb: str, old: str, value: str) -> None:
    example = Example({"text": f"{verb} the {old} {value}"}, f'{verb}("{value}", {old})')
    table = ValueTable.learn([example])
    edit = edit_of(Query.of(example.x, table), SlottedExample.of(example, table), table)
    assert edit.output == example.y
    assert edit.replacements == ()


@given(st.lists(st.tuples(names, names), min_size=1, max_size=4), names)
def test_provenance_spells_the_output(pairs: list[tuple[str, str]], name: str) -> None:
    examples = [Example({"text": f"{a} of {b} 7"}, f"f('{b}',\n  {a}, 7)") for a, b in pairs]
    table = ValueTable.learn(examples)
    edit = edit_of(
        Query.of({"text": f"sum of {name} 12"}, table), SlottedExample.of(examples[0], table), table
    )
    provenance = provenance_of(edit, examples[0].y)
    assert "".join(token.text for token in provenance) == edit.output
    assert {token.origin for token in provenance} <= {"prototype", "input", "mapped"}


def test_copied_and_derived_values_have_different_origins() -> None:
    pairs = [("users in Poland", "c = 'PL'"), ("men in Poland", "c = 'PL'")]
    pairs += [("users in Brazil", "c = 'BR'"), ("men in Brazil", "c = 'BR'")]
    examples = [Example({"text": x}, f"{y}, w = '{x.split()[0]}'") for x, y in pairs]
    editor = SubstitutionEditor.fit(examples, None)
    [[candidate]] = editor.edit([{"text": "kids in Brazil"}], [[Prototype(examples[0], 0.5)]])
    assert candidate.output == "c = 'BR', w = 'kids'"
    origins = {token.text: token.origin for token in candidate.provenance}
    assert origins["BR"] == "mapped"
    assert origins["kids"] == "input"


def test_a_saved_editor_edits_alike(tmp_path: Path) -> None:
    examples = [
        Example({"text": f"orders of {n}"}, f"c = '{n}'") for n in ("Acme", "Bolt", "Zürich")
    ]
    editor = SubstitutionEditor.fit(examples, None)
    editor.save(tmp_path)
    files = {path.name: path for path in tmp_path.iterdir()}
    loaded = SubstitutionEditor.load(Artifact(tmp_path, files))
    assert loaded.table == editor.table


@pytest.mark.parametrize(
    "damage",
    [
        {"values": [["x", {}]], "in_outputs": {"a": -1}},
        {"values": [[[1], {"c": {"t": 1}}]]},
        {"values": 3},
        {"plain": {"a": 1.5}},
        {"copied": ["a"]},
    ],
)
def test_a_damaged_table_is_refused(tmp_path: Path, damage: dict[str, object]) -> None:
    path = tmp_path / "values.json"
    ValueTable.learn([Example({"text": "a b"}, "a")]).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    with pytest.raises(ModelError, match=r"values\.json: damaged"):
        ValueTable.load(path)


@pytest.mark.parametrize("x", ["a " * 5_000, "(" * 5_000, "1 " * 5_000, "a b c " * 2_000])
def test_a_long_repetitive_input_is_edited_in_bounded_time(x: str) -> None:
    examples = [Example({"text": x}, x.strip()), Example({"text": x[::-1]}, "y = '" + x + "'")]
    editor = SubstitutionEditor.fit(examples, None)
    started = time.monotonic()
    editor.edit([{"text": x + "z"}], [[Prototype(example, 0.5) for example in examples]], 2)
    assert time.monotonic() - started < 5
