"""The paper's Hearthstone table: Retrieve+Edit, Seq2Seq and the retrievers alone, and what each
part of the editor is worth.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.hearthstone.prototype_use import adding_rows, given_rows
from experiments.lib.bench import (
    COPIED,
    Bench,
    Rows,
    Settings,
    paper_rows,
    system_rows,
)
from experiments.lib.costs import COSTS
from experiments.lib.results import SIMILARITY, Measured
from experiments.lib.tables import Table
from redraft.config.toml import DEFAULT_RETRIEVER

SETTING = "hearthstone"
METRICS = {
    "bleu_yin": "BLEU yin",
    "bleu_paper": "BLEU paper",
    "exact": "exact %",
    "exact_unseen": "exact, unseen %",
    "parses": "parses %",
}
GAINS = ("bleu_yin", "bleu_paper", "exact")
"""What is shown of the gain by pairs that were added."""

PROTOTYPES = {
    SIMILARITY: "BLEU of the prototype",
    COPIED: "copied from it %",
    "bleu_yin": METRICS["bleu_yin"],
    "exact": METRICS["exact"],
}
"""What is shown of an editor's use of its prototypes."""

SIMILARITIES = (0, 55, 65, 75, 101)
"""Bounds between which cards are taken together, by the BLEU of their prototype: about quarters."""

SINGLE_PROCESS = ("lexical", "bm25", "input", "task")

SEARCHES: Mapping[str, Mapping[str, Any]] = {
    "any syntax": {"syntax": "any"},
    "3 prototypes mixed": {"prototypes": 3},
    "greedy": {"beam_size": 1},
}
"""Other ways to search the outputs of the same weights."""

OTHER_RETRIEVERS = ("lexical", "task")

PUBLISHED: tuple[Mapping[str, Any], ...] = (
    {"n": 66, "system": "statistical MT (Ling et al. 2016)", "bleu_paper": 43.2, "exact": 0.0},
    {"n": 66, "system": "Seq2Seq (Ling et al. 2016)", "bleu_paper": 60.4, "exact": 1.5},
    {"n": 66, "system": "retriever (Ling et al. 2016)", "bleu_paper": 62.5, "exact": 0.0},
    {
        "n": 66,
        "system": "Latent Predictor Network (Ling et al. 2016)",
        "bleu_paper": 65.6,
        "exact": 4.5,
    },
    {"n": 66, "system": "Retrieve+Edit (Hashimoto et al. 2018)", "bleu_paper": 70.0, "exact": 9.1},
    {"n": 66, "system": "Yin & Neubig 2017", "bleu_yin": 75.8, "exact": 16.2},
    {"n": 66, "system": "PATOIS (Shin et al. 2019)", "bleu_yin": 77.3, "exact": 18.2},
    {"n": 66, "system": "ReCode (Hayati et al. 2018)", "bleu_yin": 78.4, "exact": 19.6},
    {
        "n": 66,
        "system": "Abstract Syntax Networks (Rabinovich et al. 2017)",
        "bleu_yin": 79.2,
        "exact": 22.7,
    },
    {
        "n": 66,
        "system": "Grammar CNN (Sun et al. 2019), own scorer",
        "bleu_yin": 79.6,
        "exact": 27.3,
    },
    {"n": 66, "system": "TreeGen (Sun et al. 2020), own scorer", "bleu_yin": 80.8, "exact": 31.8},
    {"n": 66, "system": "GPT-2 family, pre-trained and fine-tuned, 2022–23, least", "exact": 19.7},
    {"n": 66, "system": "GPT-2 family, pre-trained and fine-tuned, 2022–23, most", "exact": 30.3},
)
"""Test split, as their authors gave them; without pre-training unless it is named."""

ABLATIONS: Mapping[str, Settings] = {
    "prototypes always present": {"prototypes": {"prototype_dropout": 0.0}},
    "no words dropped": {"network": {"word_dropout": 0.0}},
    "no copying": {"network": {"copying": "none"}},
    "x' read too": {"encoding": {"reads_prototype_input": True}},
    "LSTM": {"network": {"architecture": "lstm"}},
}
"""Each with the default otherwise."""


def retriever_rows(bench: Bench) -> Iterator[Measured]:
    """Every retriever, its first prototype's output as the answer."""
    for name in SINGLE_PROCESS:
        yield bench.alone(name)


def search_rows(bench: Bench) -> Iterator[Measured]:
    """Search the weights of Retrieve+Edit in other ways."""
    retriever = bench.retriever(DEFAULT_RETRIEVER)
    editor = bench.trained("retrieve+edit", DEFAULT_RETRIEVER)
    for what, changed in SEARCHES.items():
        other = editor.with_decoding(replace(editor.decoding, **changed))
        yield bench.measure("retrieve+edit", what, retriever, other)


def ablation_rows(bench: Bench) -> Iterator[Measured]:
    """Retrieve+Edit with one part changed at a time; with none changed it is among the systems."""
    for what, settings in ABLATIONS.items():
        yield bench.edited("retrieve+edit", what, DEFAULT_RETRIEVER, settings)[0]
    for name in OTHER_RETRIEVERS:
        yield bench.edited("retrieve+edit", f"{name} retrieval", name, {})[0]


MEASURES: Mapping[str, Sequence[Rows]] = {
    "systems": (system_rows,),
    "retrievers": (retriever_rows,),
    "paper": (paper_rows,),
    "searches": (search_rows,),
    "ablations": (ablation_rows,),
    "prototypes": (given_rows,),
    "adding": (adding_rows,),
}
"""What can be measured, by name."""

AHEAD = {name: METRICS[name] for name in ("bleu_yin", "exact", "parses")}

TABLES: Mapping[str, Table] = {
    SETTING: Table(METRICS, lambda row: row.is_plain, PUBLISHED),
    f"{SETTING}, ahead": Table(
        AHEAD, lambda row: row.is_difference and not (row.variant or row.subset)
    ),
    f"{SETTING}, variants": Table(
        METRICS, lambda row: bool(row.variant) and not (row.is_difference or row.is_share)
    ),
    f"{SETTING}, ahead by variant": Table(
        AHEAD, lambda row: row.is_difference and bool(row.variant or row.subset)
    ),
    f"{SETTING}, gained": Table({name: METRICS[name] for name in GAINS}, lambda row: row.is_share),
    f"{SETTING}, prototypes": Table(PROTOTYPES, lambda row: COPIED in row.metrics),
    f"{SETTING}, costs": Table(
        {**COSTS, "per_second": "answers a second"}, lambda row: "millions" in row.metrics
    ),
}
"""By their names in the pages: every system; what Retrieve+Edit is ahead by; its variants; the lead
over Seq2Seq by variant and by similarity of the prototype; the share of the gain of all pairs that
adding half of them brings; the use of prototypes; costs.
"""
