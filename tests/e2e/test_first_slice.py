"""Sources in, scored predictions out: the whole pipeline on a small real corpus."""

import json
import sysconfig
from pathlib import Path

from tests.conftest import Run

STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])


def test_the_standard_librarys_own_functions_are_mined_split_fitted_and_scored(
    tmp_path: Path, redraft: Run
) -> None:
    sources = [STANDARD_LIBRARY / name for name in ("json", "email", "logging", "statistics.py")]
    steps: list[tuple[object, ...]] = [
        ("mine", *sources, "--without", "tests", "-o", tmp_path / "pairs.jsonl"),
        ("split", tmp_path / "pairs.jsonl", "-o", tmp_path / "parts", "--seed", 1),
        (
            "fit",
            tmp_path / "parts" / "train.jsonl",
            "-o",
            tmp_path / "model",
            "--retriever",
            "bm25",
            "--editor",
            "verbatim",
        ),
        ("evaluate", tmp_path / "model", tmp_path / "parts" / "test.jsonl", "-o", tmp_path / "out"),
    ]
    for step in steps:
        done = redraft(*step)
        assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)
    assert scores["n"] >= 30
    # far above what an unrelated function of the same corpus scores (about 4)
    assert scores["bleu_yin"] > 12
    assert scores["parses"] == 100
    rows = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == scores["n"]
    assert all(row["output"] == row["prototype"]["y"] for row in rows)


def test_a_folder_of_cards_is_fitted_and_scored_by_every_scorer(
    tmp_path: Path, redraft: Run
) -> None:
    for split, names in {"train": ["Ooze", "Wolf", "Bear", "Yeti"], "dev": ["Boar", "Imp"]}.items():
        inputs = "".join(
            f"{name} NAME_END 3 ATK_END 2 DEF_END {at} COST_END -1 DUR_END Minion TYPE_END Neutral "
            "PLAYER_CLS_END NIL RACE_END Common RARITY_END <b>Taunt</b>\n"
            for at, name in enumerate(names)
        )
        outputs = "".join(
            f"class {name}(MinionCard):§    def __init__(self):§"
            f'        super().__init__("{name}", {at})§\n'
            for at, name in enumerate(names)
        )
        (tmp_path / f"{split}_hs.in").write_text(inputs)
        (tmp_path / f"{split}_hs.out").write_text(outputs)
    parts = ("--retriever", "lexical", "--editor", "verbatim")
    fitted = redraft("fit", tmp_path / "train_hs.in", "-o", tmp_path / "model", *parts)
    assert fitted.returncode == 0
    done = redraft("evaluate", tmp_path / "model", tmp_path / "dev_hs.in", "-o", tmp_path / "out")
    scores = json.loads(done.stdout)
    assert {"bleu_yin", "bleu_paper", "bleu_corpus", "exact", "exact_unseen"} <= set(
        scores["interval"]
    )
    assert 50 < scores["bleu_yin"] < 100
    assert scores["exact"] == 0
