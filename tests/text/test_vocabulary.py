"""Tokens to ids and back, in memory and on disk."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.errors import ModelError
from redraft.text.vocabulary import SPECIAL, UNK_ID, UNKNOWN, Vocabulary, most_frequent

AWKWARD = [
    "\n",
    "\r",
    "\r\n",
    "\t",
    "\u2028",
    "\u2029",
    "\x85",
    "\x0c",
    "\x00",
    '"',
    "\\",
    "\\n",
    " ",
]
surrogates = st.characters(categories=["Cs"])
tokens = (st.sampled_from(AWKWARD) | st.text(min_size=1) | surrogates).filter(
    lambda token: token not in SPECIAL
)
corpora = st.lists(st.lists(tokens))


@given(corpora)
def test_decoding_inverts_encoding(corpus: list[list[str]]) -> None:
    vocabulary = Vocabulary.build(corpus)
    for sequence in corpus:
        assert [vocabulary.tokens[i] for i in vocabulary.encode(sequence)] == sequence
        assert all(token in vocabulary for token in sequence)


def test_an_oov_token_gets_the_unknown_id() -> None:
    vocabulary = Vocabulary.build([["a"]])
    assert "b" not in vocabulary
    assert vocabulary.encode(["a", "b"]) == [len(SPECIAL), UNK_ID]
    assert vocabulary.tokens[UNK_ID] == UNKNOWN


def test_the_special_tokens_are_the_first_four() -> None:
    vocabulary = Vocabulary.build([["a"]])
    assert vocabulary.tokens == (*SPECIAL, "a")
    assert vocabulary.counts == (0, 0, 0, 0, 1)


def test_frequent_tokens_come_first_and_ties_by_spelling() -> None:
    vocabulary = Vocabulary.build([["b", "c", "a"], ["c"]])
    assert vocabulary.tokens[len(SPECIAL) :] == ("c", "a", "b")
    assert vocabulary.counts[len(SPECIAL) :] == (2, 1, 1)


@given(corpora, st.randoms(use_true_random=False))
def test_the_order_of_the_corpus_does_not_matter(corpus: list[list[str]], random: object) -> None:
    shuffled = list(corpus)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert Vocabulary.build(shuffled) == Vocabulary.build(corpus)


def test_rare_tokens_are_left_out() -> None:
    assert most_frequent({"b": 1, "a": 2}, min_count=2) == {"a": 2}


def test_the_most_frequent_tokens_are_kept_and_ties_sort_by_spelling() -> None:
    assert list(most_frequent({"c": 1, "b": 1, "a": 2}, 2).items()) == [("a", 2), ("b", 1)]


@pytest.mark.parametrize("corpus", [[], [[]]])
def test_the_vocabulary_of_an_empty_corpus_has_only_the_special_tokens(
    corpus: list[list[str]],
) -> None:
    vocabulary = Vocabulary.build(corpus)
    assert vocabulary.tokens == SPECIAL
    assert vocabulary.encode(["a"]) == [UNK_ID]


@given(corpus=corpora)
def test_a_saved_vocabulary_loads_as_it_was(
    corpus: list[list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "vocabulary.tsv"
    vocabulary = Vocabulary.build(corpus)
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary


def test_the_file_has_one_readable_token_per_line(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.tsv"
    Vocabulary.build([["\n", "é", "é"]]).save(path)
    assert path.read_text(encoding="utf-8").split("\n")[4:] == ['"é"\t2', '"\\n"\t1', ""]


@pytest.mark.parametrize("damage", ["no tab", '"a"\tmany', "a\t1", "", '"a'])
def test_a_damaged_file_is_named_with_its_line(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "vocabulary.tsv"
    Vocabulary.build([["a"]]).save(path)
    path.write_text(path.read_text() + damage + "\n")
    with pytest.raises(ModelError) as caught:
        Vocabulary.load(path)
    assert str(caught.value) == f"{path}:6: not a vocabulary entry; fit again"


@pytest.mark.parametrize("length", [0, 10, -1])
def test_a_file_cut_short_is_an_error(tmp_path: Path, length: int) -> None:
    path = tmp_path / "vocabulary.tsv"
    Vocabulary.build([["a"]]).save(path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ModelError) as caught:
        Vocabulary.load(path)
    assert str(caught.value) == f"{path}: not a whole vocabulary; fit again"


def test_a_file_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.tsv"
    path.write_bytes(b"\xff\xfe\x00\n")
    with pytest.raises(ModelError) as caught:
        Vocabulary.load(path)
    assert str(caught.value) == f"{path}:1: not a vocabulary entry; fit again"
