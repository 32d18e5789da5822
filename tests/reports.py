"""What tests of the report share: a page read back, small evaluations, an untrained retriever."""

from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import torch

from redraft.metrics.evaluation import Evaluation
from redraft.models.autoencoder import FieldsEncoder
from redraft.models.config import AutoencoderConfig
from redraft.report.page import write_report
from redraft.retrieval.base import Retriever
from redraft.retrieval.dense import TaskRetriever
from redraft.retrieval.encoder import DenseEncoder
from redraft.text.token_encoder import TokenEncoder, TokenEncoderConfig
from redraft.types import Candidate, Example, Prototype

HOSTILE = "<script>alert(1)</script> </script><!-- <b onclick='x()'>&amp; \"quoted\" $title"


class Page(HTMLParser):
    """The elements of a page, the text that a reader sees, and the scripts."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self._within = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._within = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, _tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "script":
            self.scripts[-1] += data
        elif self._within != "style":
            self.text += data

    def count(self, tag: str, **attributes: str) -> int:
        return sum(
            found == tag and all(given.get(key) == value for key, value in attributes.items())
            for found, given in self.elements
        )


def answered(output: str, *, distance: float = 0.25, source: str = "f(a)") -> list[Candidate]:
    prototype = Prototype(Example({"text": "call f"}, source), distance)
    return [Candidate(output, -1.0, prototype)]


def evaluation_of(size: int) -> Evaluation:
    """Examples that are answered ever better."""
    examples = [Example({"text": f"input number {at}"}, "g(a, b, c, d, e)") for at in range(size)]
    outputs = ["g(" + ", ".join("abcde"[: 1 + at % 5]) + ")" for at in range(size)]
    predictions = [answered(output, distance=1 / (1 + at)) for at, output in enumerate(outputs)]
    return Evaluation.of(examples, predictions, train_outputs=["f(a)"])


def rated(confidences: Sequence[float | None], is_right: Sequence[bool]) -> Evaluation:
    """Answers with these confidences, right or wrong as told."""
    examples = [Example({"text": f"input number {at}"}, "f(x)") for at in range(len(is_right))]
    predictions = [
        [replace(answered("f(x)" if right else "f(y)")[0], confidence=confidence)]
        for confidence, right in zip(confidences, is_right, strict=True)
    ]
    return Evaluation.of(examples, predictions)


def written(evaluation: Evaluation, folder: Path, *, retriever: Retriever | None = None) -> Page:
    path = folder / "report.html"
    facts = {"Retriever": "lexical"}
    write_report(evaluation, path, title="A report", facts=facts, retriever=retriever)
    return Page(path)


def retrieved(retriever: Retriever, examples: Sequence[Example]) -> Evaluation:
    """The prototypes of a retriever as answers."""
    found = retriever.retrieve([example.x for example in examples])
    predictions = [[Candidate(each.example.y, 0.0, each) for each in ranked] for ranked in found]
    return Evaluation.of(examples, predictions)


def sections_of(page: Page) -> set[str | None]:
    return {given["id"] for tag, given in page.elements if tag == "section"}


TINY = AutoencoderConfig(
    word_width=12, width=8, embedding_dim=16, encoder_layers=1, concentration=42
)


def task_retriever(examples: Sequence[Example]) -> TaskRetriever:
    """A learned retriever whose encoder nobody trained."""
    torch.manual_seed(0)
    texts = [example.x["text"] for example in examples]
    encoding = TokenEncoder.learn(texts, TokenEncoderConfig(min_count=1))
    network = FieldsEncoder(len(encoding.vocabulary), 1, TINY).eval()
    torch.nn.init.normal_(network.combine.weight, std=0.5)
    return TaskRetriever.build(examples, DenseEncoder(network, encoding, ["text"]))
