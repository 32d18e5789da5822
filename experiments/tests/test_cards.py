"""Folders of cards in the public card2code format."""

from pathlib import Path

from experiments.lib.cards import splits


def test_a_folder_may_hold_only_some_splits(tmp_path: Path) -> None:
    for name in ("test_hs.in", "train_hs.in", "train_hs.out", "other_hs.in", "dev.in"):
        (tmp_path / name).touch()
    found = splits(tmp_path)
    assert found == {"train": tmp_path / "train_hs.in", "test": tmp_path / "test_hs.in"}
    assert list(found) == ["train", "test"]


def test_a_folder_without_cards_has_no_splits(tmp_path: Path) -> None:
    assert splits(tmp_path) == {}
