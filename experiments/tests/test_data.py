"""Data for researchers: written from a folder, or named with its public repository."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.data import DOWNLOADS, main
from redraft.data.pairs import read_pairs

CARD = (
    "Fire NAME_END -1 ATK_END -1 DEF_END 4 COST_END -1 DUR_END Spell TYPE_END Mage PLAYER_CLS_END "
    "NIL RACE_END FREE RARITY_END Deal 6 damage."
)
TEMPLATES: list[dict[str, Any]] = [
    {
        "query-split": "test",
        "sentences": [
            {
                "question-split": "train",
                "text": "cities in state_name0 above number0",
                "variables": {"state_name0": "texas"},
            },
            {
                "question-split": "dev",
                "text": "big cities of state_name0",
                "variables": {"state_name0": "utah", "number0": "9"},
            },
        ],
        "sql": ['SELECT c FROM t WHERE s = "state_name0" AND n > number0 ;', "SELECT 1 ;"],
        "variables": [
            {"name": "state_name0", "example": "ohio"},
            {"name": "number0", "example": "150"},
        ],
    }
]


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as stop:
        main([*map(str, arguments)])
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(DOWNLOADS))
def test_what_cannot_be_fetched_is_named_with_its_repository(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, name)
    assert f"clone the public repository {DOWNLOADS[name].repository}" in said
    assert f"python -m experiments.data {name} --from " in said


def test_cards_are_copied_and_a_missing_split_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "card2code" / "third_party"
    folder.mkdir(parents=True)
    for name in ("train", "dev"):
        (folder / f"{name}_hs.in").write_text(CARD + "\n")
        (folder / f"{name}_hs.out").write_text("class Fire:§    pass\n")
    main(["hearthstone", "--from", str(tmp_path / "card2code"), "-o", str(tmp_path / "out")])
    shown = capsys.readouterr()
    assert "train_hs.in: 1 cards" in shown.out
    assert "test_hs.in is not in" in shown.err
    assert read_pairs(tmp_path / "out" / "dev_hs.in")[0].y == "class Fire:\n    pass"


def test_queries_are_filled_and_split_by_question_and_by_query(tmp_path: Path) -> None:
    (tmp_path / "geography.json").write_text(json.dumps(TEMPLATES))
    main(["geography", "--from", str(tmp_path), "-o", str(tmp_path / "out")])
    [example] = read_pairs(tmp_path / "out" / "geography-question" / "train.jsonl")
    assert example.x == {"text": "cities in texas above 150"}
    assert example.y == 'SELECT c FROM t WHERE s = "texas" AND n > 150 ;'
    assert example.meta == {"query": 0}
    assert len(read_pairs(tmp_path / "out" / "geography-query" / "test.jsonl")) == 2


def test_no_command_of_nl2bash_is_in_two_parts(tmp_path: Path) -> None:
    lines = [f"list files {n}" for n in range(60)]
    (tmp_path / "all.nl").write_text("\n".join(lines))
    (tmp_path / "all.cm").write_text("\n".join(f"ls {n % 30}" for n in range(60)))
    main(["nl2bash", "--from", str(tmp_path), "-o", str(tmp_path / "out")])
    commands = [
        {example.y for example in read_pairs(tmp_path / "out" / "nl2bash" / f"{part}.jsonl")}
        for part in ("train", "dev", "test")
    ]
    assert sum(map(len, commands)) == len(set.union(*commands)) == 30


def test_made_data_is_written(tmp_path: Path) -> None:
    main(["messy", "-o", str(tmp_path / "messy")])
    assert len(read_pairs(tmp_path / "messy" / "train.jsonl")) == 300


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hearthstone", "--from", "nowhere", "-o", "x"], "has no train_hs.in; name the folder"),
        (["messy"], "-o is missing: the folder to write to"),
    ],
)
def test_a_wrong_call_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, *arguments)


def test_another_json_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "atis.json").write_text('[{"a": 1}]')
    said = refused(capsys, "atis", "--from", tmp_path, "-o", tmp_path / "out")
    assert "atis.json: not a file of text2sql-data (KeyError('variables'))" in said
