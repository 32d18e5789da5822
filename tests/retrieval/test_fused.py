"""Sentence encoders, and their ranks fused with those of BM25."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from redraft import Example, RetrieveAndEdit
from redraft.errors import ConfigError, ModelError
from redraft.retrieval.auto import AutoRetriever
from redraft.retrieval.fused import RANK_CONSTANT, EncoderRetriever, fuse
from redraft.retrieval.published_encoder import read_encoder
from redraft.retrieval.sentence_encoder import SentenceEncoder
from redraft.storage.artifact import open_artifact
from redraft.storage.artifact_writer import write_artifact
from redraft.training.fit import FitOptions
from tests.greetings import NAMES, greeting
from tests.sentence_encoders import CONFIG, WORDS, write_bert, write_onnx

INPUTS = [{"text": "how many people live in Rome"}, {"text": "greet Euler"}, {"text": ""}]
EXAMPLES = [greeting(name) for name in NAMES[:12]]
DISTINCT = [Example({"text": f"{word} {after}"}, after) for word, after in pairwise(WORDS)]
"""Examples of known words: no two have the same vector, whose order rounding would decide."""


@pytest.fixture(params=["bert", "onnx"])
def encoder(request: pytest.FixtureRequest, tmp_path: Path) -> SentenceEncoder:
    write = write_bert if request.param == "bert" else write_onnx
    return read_encoder(write(tmp_path / "encoder"))


def test_vectors_are_of_length_one_and_do_not_depend_on_the_batch(encoder: SentenceEncoder) -> None:
    vectors = encoder.encode(INPUTS)
    assert vectors.shape == (3, 8)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for x, vector in zip(INPUTS, vectors, strict=True):
        assert np.allclose(encoder.encode([x])[0], vector, atol=1e-5)
    assert encoder.encode([]).shape == (0, 8)


def test_half_a_character_is_read_as_a_question_mark(encoder: SentenceEncoder) -> None:
    broken, readable = encoder.encode([{"text": "greet \ud800"}, {"text": "greet ?"}])
    assert np.allclose(broken, readable, atol=1e-5)


def test_a_long_text_is_cut_to_the_positions_of_the_network(tmp_path: Path) -> None:
    encoder = read_encoder(write_bert(tmp_path))
    assert encoder.config.longest == CONFIG.positions
    long = encoder.encode([{"text": "how many " * 100}])
    assert np.allclose(long, encoder.encode([{"text": "how many " * 200}]))


def test_fields_are_read_as_one_text(encoder: SentenceEncoder) -> None:
    fields = encoder.encode([{"a": "how many people", "b": "live in rome"}])
    assert np.allclose(fields, encoder.encode([{"text": "how many people live in rome"}]))


def test_the_first_tokens_state_is_pooled_if_the_folder_says_so(tmp_path: Path) -> None:
    mean, first = (read_encoder(write_bert(tmp_path, pooling=each)) for each in ("mean", "cls"))
    assert (mean.config.pooling, first.config.pooling) == ("mean", "cls")
    assert not np.allclose(mean.encode(INPUTS), first.encode(INPUTS), atol=1e-2)


def test_an_onnx_file_may_stand_below_its_tokenizer(tmp_path: Path) -> None:
    folder = write_onnx(tmp_path)
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    below = read_encoder(folder / "onnx" / "model.onnx")
    assert np.allclose(below.encode(INPUTS), read_encoder(folder).encode(INPUTS))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model_type": "mpnet"}, "its model_type is 'mpnet'.*export it to ONNX first"),
        ({"hidden_act": "relu"}, "hidden_act is not gelu"),
        ({"hidden_size": 6}, "word_embeddings.weight is not of shape"),
        ({"num_attention_heads": 3}, "make it a multiple of the 3 heads"),
        ({"num_hidden_layers": "2"}, "layers must be of type int"),
        ({"vocab_size": 10**12}, "words is"),
    ],
)
def test_an_encoder_that_cannot_be_read_is_an_error_in_one_line(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=f"^--encoder.*{message}"):
        read_encoder(write_bert(tmp_path, changed=changed))


def test_a_folder_without_a_tokenizer_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", tmp_path / "model.onnx"):
        with pytest.raises(ConfigError, match=r"has no tokenizer\.json; name a folder"):
            read_encoder(path)


def test_a_graph_that_is_none_or_reads_something_else_is_an_error(tmp_path: Path) -> None:
    folder = write_onnx(tmp_path, inputs=("input_ids", "pixel_values"))
    with pytest.raises(ConfigError, match="its inputs must be input_ids"):
        read_encoder(folder)
    (folder / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(ConfigError, match=r"not an ONNX graph.*download the encoder again"):
        read_encoder(folder)


def test_a_graph_that_lacks_tokens_of_its_tokenizer_is_an_error(tmp_path: Path) -> None:
    encoder = read_encoder(write_onnx(tmp_path, words=6))
    with pytest.raises(ModelError, match="cannot read its tokens; export graph and tokenizer"):
        encoder.encode(INPUTS)


@given(
    st.lists(st.permutations(range(6)), min_size=2, max_size=2),
    st.integers(1, 8),
)
def test_fused_rows_are_ordered_by_the_sum_of_their_reciprocal_ranks(
    rankings: list[list[int]], k: int
) -> None:
    rows, distances = fuse([np.array(each) for each in rankings], k)
    sums = {
        row: sum(1 / (RANK_CONSTANT + each.index(row)) for each in rankings) for row in range(6)
    }
    assert len(rows) == min(k, 6) == len(set(rows.tolist()))
    expected = sorted(sums.values(), reverse=True)[:k]
    assert np.allclose([sums[int(row)] for row in rows], expected)
    assert np.allclose(distances, [1 - value * RANK_CONSTANT / 2 for value in expected], atol=1e-6)


def test_a_row_that_both_rank_first_is_at_distance_zero() -> None:
    rows, distances = fuse([np.array([4, 1, -1]), np.array([4, 2, -1])], 5)
    assert rows.tolist() == [4, 1, 2]
    assert distances[0] == 0 < distances[1] == distances[2] < 1


def test_examples_without_a_common_word_are_ranked_by_the_encoder_alone(
    encoder: SentenceEncoder,
) -> None:
    retriever = EncoderRetriever.build(EXAMPLES, encoder)
    asked = [{"text": "xyzzy"}]
    rows = retriever.search(asked, 5).rows
    assert rows.tolist() == retriever.vectors.search(asked, 5).rows.tolist()


def test_every_example_is_found_and_filters_hold(encoder: SentenceEncoder) -> None:
    retriever = EncoderRetriever.build(EXAMPLES, encoder)
    allowed = np.arange(len(EXAMPLES)) % 2 == 0
    found = retriever.search(INPUTS, 20, allowed=allowed)
    assert found.rows.shape == (3, 20)
    for rows in found.rows.tolist():
        assert sorted(row for row in rows if row >= 0) == list(range(0, len(EXAMPLES), 2))


def test_adding_and_removing_gives_the_retriever_of_the_same_examples(
    encoder: SentenceEncoder,
) -> None:
    built = EncoderRetriever.build(DISTINCT[2:], encoder)
    changed = EncoderRetriever.build(DISTINCT[:8], encoder).replace([0, 1], DISTINCT[8:])
    bare = built.with_examples([]).add(DISTINCT[2:])
    for other in (changed, bare):
        assert list(other.examples) == DISTINCT[2:]
        assert np.allclose(other.embeddings(range(10)), built.embeddings(range(10)), atol=1e-5)
        assert (
            other.search(INPUTS[:2], 5).rows.tolist() == built.search(INPUTS[:2], 5).rows.tolist()
        )


def test_a_saved_model_needs_the_encoders_folder_no_more(
    encoder: SentenceEncoder, tmp_path: Path
) -> None:
    retriever = EncoderRetriever.build(EXAMPLES, encoder)
    model = RetrieveAndEdit.fit(EXAMPLES, retriever=retriever, editor="verbatim")
    model.save(tmp_path / "model")
    for path in (tmp_path / "encoder").rglob("*"):
        if path.is_file():
            path.unlink()
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    assert isinstance(loaded.retriever, EncoderRetriever)
    inputs = [example.x for example in EXAMPLES]
    assert loaded.predict(inputs) == model.predict(inputs)


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("encoder.json", {"pooling": "max"}),
        ("encoder.json", {"longest": 17}),
        ("encoder.json", {"bert": {"layers": 10**9}}),
        ("tokenizer.json", {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 99}}}),
    ],
)
def test_a_damaged_encoder_is_an_error_that_names_its_file(
    tmp_path: Path, file: str, changed: dict[str, object]
) -> None:
    encoder = read_encoder(write_bert(tmp_path / "encoder"))
    with write_artifact(tmp_path / "model") as staging:
        encoder.save(staging)
        path = staging / file
        values = changed if file == "tokenizer.json" else json.loads(path.read_text()) | changed
        path.write_text(json.dumps(values))
    with pytest.raises((ModelError, ConfigError), match=file.partition(".")[0]):
        SentenceEncoder.load(open_artifact(tmp_path / "model"))


def test_weights_of_another_network_are_an_error_of_one_short_line(tmp_path: Path) -> None:
    encoder = read_encoder(write_bert(tmp_path / "encoder"))
    with write_artifact(tmp_path / "model") as staging:
        encoder.save(staging)
        save_file({"other": np.zeros(3, np.float32)}, staging / "weights.safetensors")
    with pytest.raises(ModelError, match=r"it must hold embeddings.*and nothing else") as caught:
        SentenceEncoder.load(open_artifact(tmp_path / "model"))
    assert len(str(caught.value)) < 1_000


def test_a_retriever_that_needs_an_encoder_asks_for_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a sentence encoder; add --encoder PATH"):
        RetrieveAndEdit.fit(EXAMPLES, retriever="encoder", editor="verbatim")
    options = FitOptions(encoder=tmp_path)
    with pytest.raises(ConfigError, match="--encoder: needs --retriever encoder or auto"):
        RetrieveAndEdit.fit(EXAMPLES, retriever="bm25", editor="verbatim", options=options)


def test_auto_compares_the_encoder_if_one_is_named(tmp_path: Path) -> None:
    pairs = [Example({"text": f"greet {name}"}, f"Hello {name}!") for name in NAMES[:30]]
    options = FitOptions(encoder=write_bert(tmp_path))
    model = RetrieveAndEdit.fit(pairs, retriever="auto", editor="verbatim", options=options)
    assert isinstance(model.retriever, AutoRetriever)
    names = [row.name for row in model.retriever.selection.measured]
    assert names == ["bm25", "bow", "encoder", "reranked"]
