"""`redraft demo`: the whole product on the Python standard library of this machine."""

import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redraft.cli.console import progress, scores_table, stdout

if TYPE_CHECKING:
    from redraft.data.example import Example
    from redraft.evaluation.evaluation import Evaluation

SEED = 2018
HELD_OUT = 300
QUANTILES = {"among the best tenth": 0.95, "better than most": 0.75, "the median": 0.5}
"""Which answers are shown: not the best ones."""


def command(
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for pairs, model, report.")
    ] = Path("demo"),
) -> None:
    """Mine this machine's standard library, fit models, and show answers with their sources.

    Example: `redraft demo -o demo/`
    """
    from redraft.cli.evaluate import evaluate, write_evaluation
    from redraft.data.pairs import write_pairs
    from redraft.data.split import split
    from redraft.experiment import describe_model
    from redraft.retrieve_and_edit import RetrieveAndEdit

    examples = _mine_standard_library()
    out.mkdir(parents=True, exist_ok=True)
    write_pairs(examples, out / "pairs.jsonl")
    shares = {"train": 0.9, "held out": 0.1}
    settings = {
        "same modules": split(examples, shares, seed=SEED),
        "other modules": split(examples, shares, seed=SEED, by="package"),
    }
    evaluations: dict[str, Evaluation] = {}
    for setting, parts in settings.items():
        for retriever in ("lexical", "bm25"):
            model = RetrieveAndEdit.fit(parts["train"], retriever=retriever, editor="verbatim")
            name = f"{retriever}, {setting}"
            evaluations[name] = evaluate(model, parts["held out"][:HELD_OUT])
            if name == "bm25, same modules":
                model.save(out / "model")
                saved = model
    shown = evaluations["bm25, same modules"]
    facts = {name: str(value) for name, value in describe_model(out / "model").items()}
    title = "Redraft on the standard library"
    write_evaluation(shown, out, title=title, facts=facts, retriever=saved.retriever)
    _show(shown)
    title = f"{len(examples):,} functions of the standard library, held-out ones predicted"
    stdout().print(scores_table({n: e.scores for n, e in evaluations.items()}, title=title))
    stdout().print(
        f"\nReport  {out}/report.html\nModel   {out}/model\nPairs   {out}/pairs.jsonl\n"
        f"""Try     redraft predict {out}/model '{{"docstring": "Parse a date"}}' --format table""",
        soft_wrap=True,
    )


def _mine_standard_library() -> "list[Example]":
    from redraft.data.python_functions import find_sources, mine
    from redraft.data.rows import BadRow

    folder = Path(sysconfig.get_paths()["stdlib"])
    sources = find_sources([folder], without=("test", "tests", "idlelib", "lib2to3"))
    examples: list[Example] = []
    for source in progress(sources, "mining the standard library", total=len(sources)):
        found = mine(source)
        if not isinstance(found, BadRow):
            examples += found
    return examples


def _show(evaluation: "Evaluation") -> None:
    """Three held-out functions, chosen by the rank of their scores."""
    from redraft.cli.display import candidate_panel

    scores: Sequence[float] = evaluation.scores.per_example["bleu_yin"]
    ranked = sorted(range(len(scores)), key=lambda at: (scores[at], at))
    for label, quantile in QUANTILES.items():
        at = ranked[int(quantile * (len(ranked) - 1))]
        example, answer = evaluation.examples[at], evaluation.answers[at]
        panel = candidate_panel(example.x, answer, truth=example.y)
        panel.title = f"a held-out function · BLEU {100 * scores[at]:.0f}, {label}"
        panel.title_align = "left"
        stdout().print(panel)
