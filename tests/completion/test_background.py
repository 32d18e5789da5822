"""The n-gram model of other packages."""

from pathlib import Path

import numpy as np
import pytest

from experiments.completion.background import count, pruned
from redraft.completion.background import (
    HISTORY,
    NEW,
    OLD,
    START,
    STEP,
    UNSEEN,
    BackgroundModel,
    Codes,
    CursorBackground,
    WordCodes,
    history_of,
)
from redraft.completion.word_classes import word_classes
from redraft.text.tokenizer import Tokenizer

VOCABULARY = np.arange(10, 30, dtype=np.uint64)


def stream(package: int) -> Codes:
    """Return 400 codes in which 11 always follows 10."""
    drawn = np.random.default_rng(package).choice(VOCABULARY[1:], 200)
    codes = np.repeat(drawn, 2)
    codes[::2] = np.where(np.arange(200) % 2, 10, codes[::2])
    codes[1::2] = np.where(np.arange(200) % 2, 11, codes[1::2])
    return codes


@pytest.fixture(scope="module")
def model() -> BackgroundModel:
    packages = np.repeat(np.arange(6, dtype=np.int32), 400)
    codes = np.concatenate([stream(i) for i in range(6)])
    entries = count(codes, packages, np.ones(len(codes), np.bool_))
    return BackgroundModel(pruned(entries, 14))


def after(context: list[int], last: int) -> Codes:
    return np.asarray([[START] * (HISTORY - len(context)) + [*context, last]], np.uint64)


def test_the_probabilities_of_a_context_sum_to_one(model: BackgroundModel) -> None:
    for context in ([], [10], [12, 13], [14, 15, 16, 17]):
        logs = [float(model.log_probs(after(context, code))[0, 0]) for code in VOCABULARY.tolist()]
        assert np.exp(logs).sum() == pytest.approx(1, abs=0.1)


def test_what_always_follows_is_probable(model: BackgroundModel) -> None:
    assert model.log_probs(after([10], 11))[0, 0] > np.log(0.9)
    assert model.log_probs(after([10], 12))[0, 0] < np.log(0.05)


def test_a_code_that_is_not_in_the_table_has_the_least_probability(model: BackgroundModel) -> None:
    assert model.log_probs(after([], 999))[0, 0] == UNSEEN


def test_a_saved_model_is_the_same(model: BackgroundModel, tmp_path: Path) -> None:
    model.save(tmp_path / "background.npz")
    loaded = BackgroundModel.load(tmp_path / "background.npz")
    codes = np.concatenate([after([10], 11), after([10], 12)])
    assert (loaded.log_probs(codes) == model.log_probs(codes)).all()


def test_most_entries_find_a_slot_and_keep_their_logarithm() -> None:
    codes = np.concatenate([stream(i) for i in range(6)])
    packages = np.repeat(np.arange(6, dtype=np.int32), 400)
    entries = count(codes, packages, np.ones(len(codes), np.bool_))
    table = pruned(entries, 14)
    found = np.concatenate([table.find(part.keys) for part in entries])
    logs = np.concatenate([part.logs for part in entries])
    stored = ~np.isnan(found)
    assert stored.mean() > 0.9
    assert np.abs(found - logs)[stored & (logs > -255 * STEP)].max() <= STEP


def test_names_that_the_table_lacks_stand_for_their_class(model: BackgroundModel) -> None:
    words = ["zorblax", "self", "(", "7"]
    codes = model.encode(words, word_classes(words))
    assert codes.words[0] == codes.shapes[0] == 0
    assert (codes.words[2:] > OLD - 100).all()


def test_a_row_that_begins_like_the_one_above_has_its_logarithms(model: BackgroundModel) -> None:
    codes = WordCodes(VOCABULARY, VOCABULARY)
    tokens = np.asarray([[0, 1, 2], [0, 1, 3], [4, 5, 6]], np.int32)
    is_new = np.asarray([[1, 1, 1], [0, 0, 1], [1, 1, 1]], np.bool_)
    cursor = CursorBackground.at(
        model, codes, "f", header=[], context=[5, 6], is_old=np.zeros(20, np.bool_)
    )
    words, shapes = cursor.log_probs(tokens, is_new)
    whole, _ = cursor.log_probs(tokens, np.ones_like(is_new))
    assert (words == whole).all()
    assert words.shape == shapes.shape == tokens.shape


def test_a_name_is_old_if_it_occurs_in_the_function_before(model: BackgroundModel) -> None:
    codes = WordCodes(np.zeros(4, np.uint64), np.zeros(4, np.uint64))
    is_old = np.zeros(4, np.bool_)
    cursor = CursorBackground.at(model, codes, "f", header=[3], context=[0, 1, 0, 3], is_old=is_old)
    assert cursor.before.words.tolist() == [NEW, NEW, OLD, OLD]


def test_the_history_of_a_body_names_the_first_word_of_the_function() -> None:
    assert (history_of("get_user") == history_of("get_order")).all()
    assert (history_of("get_user") != history_of("set_user")).any()
    assert len(history_of("")) == HISTORY


def test_code_is_more_probable_than_the_same_tokens_in_disorder() -> None:
    from redraft.completion.project_session import starter_background

    model = starter_background()
    assert model is not None
    sums = []
    for text in ("if value is None:\n    return None", "None return\n    :None is if value"):
        words = Tokenizer().tokenize(text)
        codes = model.encode(words, word_classes(words)).words
        padded = np.concatenate([history_of("get"), np.where(codes == 0, NEW, codes)])
        sums.append(float(model.log_probs(padded[None]).sum()))
    assert sums[0] > sums[1] + 10
