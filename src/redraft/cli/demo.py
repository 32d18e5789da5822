"""`redraft demo`: the whole product on the Python code of this machine."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redraft.cli import options
from redraft.cli.console import progress, remark, scores_table, stdout
from redraft.cli.training import watched

if TYPE_CHECKING:
    from redraft.data.example import Example
    from redraft.evaluation.evaluation import Evaluation
    from redraft.retrieve_and_edit import RetrieveAndEdit

SEED = 2018
MOST_FILES = 200
"""Packages with more files take longer to read than a demo should."""

QUANTILES = {"among the best tenth": 0.95, "better than most": 0.75, "the median": 0.5}
"""Which answers are shown: not the best ones."""


def command(
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for pairs, model, report.")
    ] = Path("demo"),
    budget: Annotated[
        str, typer.Option(help="Train no longer than this, such as 30s or 10m.")
    ] = "100s",
    questions: Annotated[int, typer.Option(min=1, help="How many held-out functions to ask.")] = 60,
) -> None:
    """Mine this machine's Python code, train a model, and show answers with their sources.

    Whole modules are held out of training. They are asked about twice: with an index of the
    training functions alone, and with the module's other functions added, as in your own project.

    Example: `redraft demo -o demo/`
    """
    from redraft.cli.evaluate import write_evaluation
    from redraft.data.pairs import write_pairs
    from redraft.data.split import split
    from redraft.experiment import describe_model
    from redraft.fitting import FitOptions
    from redraft.retrieve_and_edit import RetrieveAndEdit

    seconds = options.seconds(budget)
    examples = _mine_installed()
    out.mkdir(parents=True, exist_ok=True)
    write_pairs(examples, out / "pairs.jsonl")
    parts = split(examples, {"train": 0.9, "held out": 0.1}, seed=SEED, by="package")
    with watched("training") as observer:
        fitting = FitOptions(seed=SEED, budget=seconds, observer=observer, tell=remark)
        trained = RetrieveAndEdit.fit(parts["train"], options=fitting)
    asked = random.Random(SEED).sample(parts["held out"], min(questions, len(parts["held out"])))
    model = RetrieveAndEdit(trained.retriever.add(parts["held out"]), trained.editor)
    model.save(out / "model")
    across, within = (_evaluate(each, asked) for each in (trained, model))
    shown = within["retrieve+edit"]
    facts = {name: str(value) for name, value in describe_model(out / "model").items()}
    title = "Redraft on the Python code of this machine"
    write_evaluation(shown, out, title=title, facts=facts, retriever=model.retriever)
    _show(shown)
    _show_completion(model, asked)
    title = f"{len(asked)} functions of modules held out of {len(examples):,}, "
    for index, each in (("answered from the others", across), ("their own modules added", within)):
        scores = {name: evaluation.scores for name, evaluation in each.items()}
        stdout().print(scores_table(scores, title=title + index))
    before, after = (_share_of_tokens(each, asked) for each in (trained, model))
    stdout().print(
        f"Typing them, the next token is the first suggestion {before:.0%} of the time;\n"
        f"with their own modules in the index {after:.0%}. Nothing was trained in between."
    )
    stdout().print(
        f"\nReport  {out}/report.html\nModel   {out}/model\nPairs   {out}/pairs.jsonl\n"
        f"Try     redraft serve {out}/model      a page in your browser\n"
        f"        redraft complete {out}/model YOUR_FILE.py:LINE:COL --format table\n"
        f"        redraft index YOUR_CODE/ -o mine/ --from {out}/model",
        soft_wrap=True,
    )


def _mine_installed() -> "list[Example]":
    from redraft.studies.corpora import installed_functions

    return installed_functions(
        lambda sources: progress(sources, "mining", total=len(sources)), most_files=MOST_FILES
    )


def _evaluate(model: "RetrieveAndEdit", asked: "Sequence[Example]") -> "dict[str, Evaluation]":
    """The retriever alone, and the model, on functions that are never answered by themselves."""
    from redraft.cli.evaluate import evaluate
    from redraft.editing.editor import VerbatimEditor
    from redraft.retrieve_and_edit import RetrieveAndEdit

    alone = RetrieveAndEdit(model.retriever, VerbatimEditor())
    systems = {f"{model.retriever.name} alone": alone, "retrieve+edit": model}
    return {name: evaluate(each, asked, leave_out=True) for name, each in systems.items()}


def _share_of_tokens(model: "RetrieveAndEdit", asked: "Sequence[Example]") -> float:
    """How often the next token of the true body is what the model would have suggested first."""
    from redraft.evaluation.next_tokens import first_choice_share

    found = model.retriever.retrieve([each.x for each in asked], 1, exclude=asked)
    return first_choice_share(model.editor, asked, found)  # type: ignore[arg-type]


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


def _show_completion(model: "RetrieveAndEdit", asked: "Sequence[Example]") -> None:
    """A held-out function half typed, and how it could go on."""
    from redraft.autocomplete.engine import CompletionEngine
    from redraft.cli.display import suggestions_panel
    from redraft.data.python_functions import as_source

    example = next((each for each in asked if each.y.count("\n") >= 3), asked[0])
    lines = example.y.split("\n")
    typed = "\n".join(lines[: len(lines) // 2]) + "\n"
    buffer = as_source(example.x, typed)
    suggestions = CompletionEngine(model).complete(buffer, len(buffer), k=4)
    stdout().print(suggestions_panel(buffer, suggestions))
