"""Small models of every kind that can be saved, none of them trained."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from redraft import Example, RetrieveAndEdit
from redraft.editing.base import Editor, VerbatimEditor
from redraft.editing.chooser import Chooser, Question
from redraft.editing.choosing import ChoosingEditor
from redraft.editing.combining import COMBINED_FEATURES, LM_FEATURES
from redraft.editing.confidence import Confidence
from redraft.editing.decoding import DecodingConfig
from redraft.editing.lm_editor import LmEditor
from redraft.editing.neural import NeuralEditor
from redraft.editing.sketch import sketch_examples
from redraft.editing.sketch_editor import SketchEditor
from redraft.index import faiss as index
from redraft.index.base import Vectors
from redraft.index.faiss import FaissIndex
from redraft.index.ivfpq import CompressedIndex
from redraft.index.vector_file import VectorFile
from redraft.models.autoencoder import FieldsEncoder
from redraft.models.config import AutoencoderConfig, EditNetworkConfig
from redraft.models.ngram_cache import NgramCache
from redraft.retrieval.auto import AutoRetriever, Selection
from redraft.retrieval.base import Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.retrieval.dense import TaskRetriever
from redraft.retrieval.encoder import DenseEncoder
from redraft.retrieval.fused import EncoderRetriever
from redraft.retrieval.published_encoder import read_encoder
from redraft.retrieval.reranked import RerankedRetriever
from redraft.storage.disk import spool_examples
from redraft.text.edit_encoder import EditEncoder, EditEncoderConfig
from redraft.text.token_encoder import TokenEncoder, TokenEncoderConfig
from redraft.training.fit_auto import fit_reranked
from tests.greetings import NAMES, greeting
from tests.sentence_encoders import write_bert

INPUT = {"text": "greet Noether"}

CHOOSING = ("choosing", "combined", "sketches")
KINDS = (
    *("bm25", "lexical", "auto", "task", "neural", "lstm"),
    *("encoder", "cells", "graph", "compressed", "postings"),
    *CHOOSING,
)


def save(kind: str, folder: Path) -> None:
    """Write the model of this kind into a new folder."""
    torch.manual_seed(0)
    examples = [greeting(name) for name in NAMES[: 30 if kind in (*CHOOSING, "auto") else 12]]
    with tempfile.TemporaryDirectory() as scratch:
        RetrieveAndEdit(_retriever(kind, examples, Path(scratch)), _editor(kind, examples)).save(
            folder
        )


def _retriever(kind: str, examples: list[Example], scratch: Path) -> Retriever:
    if kind == "auto":
        selection = Selection(RerankedRetriever.name, 30, ())
        return AutoRetriever(fit_reranked(examples), selection)
    if kind == "encoder":
        return EncoderRetriever.build(examples, read_encoder(write_bert(scratch)))
    if kind == "lexical":
        return BowRetriever.build(examples)
    if kind in ("compressed", "postings"):
        filed = spool_examples([examples * 25], scratch / "held")
        if kind == "postings":
            return Bm25Retriever.build(filed)
        encoder = _encoder(examples)
        vectors = encoder.encode([each.x for each in filed])
        return TaskRetriever(
            filed,
            encoder,
            CompressedIndex.of_file(VectorFile.write(scratch, [vectors], count=len(vectors))),
        )
    if kind in ("cells", "graph"):
        encoder = _encoder(examples)
        vectors = encoder.encode([each.x for each in examples * 4])
        return TaskRetriever(examples * 4, encoder, _approximate(kind, vectors))
    if kind in ("task", "neural"):
        return TaskRetriever.build(examples, _encoder(examples))
    return Bm25Retriever.build(examples)


def _approximate(kind: str, vectors: Vectors) -> FaissIndex:
    before = index.HNSW_FROM
    index.HNSW_FROM = 0 if kind == "graph" else before
    try:
        return FaissIndex.build(np.ascontiguousarray(vectors))
    finally:
        index.HNSW_FROM = before


def _encoder(examples: Sequence[Example]) -> DenseEncoder:
    texts = [each.x["text"] for each in examples]
    encoding = TokenEncoder.learn(texts, TokenEncoderConfig(min_count=1, pieces=40))
    config = AutoencoderConfig(word_width=8, width=4, embedding_dim=16, encoder_layers=1)
    network = FieldsEncoder(len(encoding.vocabulary), 1, config)
    return DenseEncoder(network.eval(), encoding, ["text"])


def _editor(kind: str, examples: Sequence[Example]) -> Editor:
    if kind in CHOOSING:
        chosen = RetrieveAndEdit.fit(examples).editor
        assert isinstance(chosen, ChoosingEditor)
        if kind == "choosing":
            return chosen
        neural: NeuralEditor | SketchEditor = _neural("transformer", examples)
        if kind == "sketches":
            table = chosen.templates.table
            sketched, model = sketch_examples(examples, table)
            neural = SketchEditor(_neural("transformer", sketched), model, table)
        combined = _random_chooser(COMBINED_FEATURES)
        return ChoosingEditor(
            chosen.templates,
            chosen.chooser,
            reranker=chosen.reranker,
            neural=neural,
            combined=combined,
            lm=LmEditor(),
            lm_chooser=_random_chooser(LM_FEATURES),
        )
    if kind not in ("neural", "lstm"):
        return VerbatimEditor()
    return _neural(kind, examples)


def _random_chooser(features: tuple[str, ...]) -> Chooser:
    rng = np.random.default_rng(0)
    questions = [
        Question(rng.normal(size=(3, len(features))), rng.normal(size=3), np.arange(3) == i % 3)
        for i in range(30)
    ]
    return Chooser.fit(questions, features=features, firsts={"neural": [0] * 30})


def _neural(kind: str, examples: Sequence[Example]) -> NeuralEditor:
    encoding = EditEncoder.learn(examples, EditEncoderConfig())
    network = EditNetworkConfig(
        architecture="lstm" if kind == "lstm" else "transformer",
        word_width=8,
        width=8,
        decoder_layers=1,
    )
    decoding = DecodingConfig(beam_size=2, max_length=8, ngram_cache_neighbours=2)
    editor = NeuralEditor.build(encoding, network, decoding)
    editor.network.eval()
    features = np.random.default_rng(0).normal(size=(9, 4))
    confident = editor.with_confidence(Confidence.fit(features, np.arange(9) % 2 == 0))
    return confident.with_cache(NgramCache()) if kind == "neural" else confident
