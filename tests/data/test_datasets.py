"""Datasets of the Hugging Face library as pairs, with the library itself (the extra `cluster`)."""

from pathlib import Path
from typing import Any

import pytest

from redraft import Columns, RetrieveAndEdit
from redraft.errors import PairsError

datasets = pytest.importorskip("datasets")

CITIES = ("Rome", "Oslo", "Lima", "Bonn", "Cork")
COLUMNS = Columns(inputs=("question",), output="sql")


@pytest.fixture(scope="module")
def dataset() -> Any:
    return datasets.Dataset.from_dict(
        {
            "question": [f"list the users of {city}" for city in CITIES],
            "sql": [f"SELECT * FROM users WHERE city = '{city}'" for city in CITIES],
            "id": list(range(len(CITIES))),
        }
    )


def test_a_dataset_is_fitted_and_its_other_columns_are_meta(dataset: Any) -> None:
    model = RetrieveAndEdit.fit(dataset, columns=COLUMNS)
    answer = model.predict_one("list the users of Turin")
    assert answer.output == "SELECT * FROM users WHERE city = 'Turin'"
    assert answer.prototype is not None
    assert answer.prototype.example.x.keys() == {"question"}
    assert answer.prototype.example.meta["id"] in range(len(CITIES))


def test_a_dataset_from_a_file_and_a_part_of_one_are_fitted(dataset: Any, tmp_path: Path) -> None:
    dataset.save_to_disk(tmp_path / "pairs")
    part = datasets.Dataset.load_from_disk(tmp_path / "pairs").filter(lambda row: row["id"] < 3)
    model = RetrieveAndEdit.fit(part, columns=COLUMNS)
    assert [example.meta["id"] for example in model.retriever.examples] == [0, 1, 2]


def test_a_stream_is_fitted(dataset: Any) -> None:
    model = RetrieveAndEdit.fit(dataset.to_iterable_dataset(), columns=COLUMNS)
    assert len(model.retriever.examples) == len(CITIES)
    unnamed = datasets.IterableDataset.from_generator(lambda: iter(list(dataset)))
    assert unnamed.column_names is None
    again = RetrieveAndEdit.fit(unnamed, columns=COLUMNS)
    assert again.retriever.examples == model.retriever.examples


def test_a_wrong_column_and_a_dictionary_of_splits_are_named(dataset: Any) -> None:
    with pytest.raises(PairsError, match=r"no column 'x', .*inputs=\('question',\), output='sql'"):
        RetrieveAndEdit.fit(dataset)
    with pytest.raises(PairsError, match="got several: train, test; give one"):
        RetrieveAndEdit.fit(datasets.DatasetDict(train=dataset, test=dataset), columns=COLUMNS)
