"""`redraft demo`: mine, train and evaluate on the Python code of this machine."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redraft.cli import _options as options
from redraft.cli._console import print_note, progress, scores_table, stdout
from redraft.cli._progress import watched

if TYPE_CHECKING:
    from redraft.metrics.evaluation import Evaluation
    from redraft.model import RetrieveAndEdit
    from redraft.types import Example

SEED = 2018
MOST_FILES = 200
"""Larger packages are skipped: mining them takes too long for a demo."""

QUANTILES = {"among the best tenth": 0.95, "better than most": 0.75, "the median": 0.5}
"""Answers to show, by quantile of their score, so that they are representative."""


def command(
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for the pairs, the model and the report.")
    ] = Path("demo"),
    budget: Annotated[
        str, typer.Option(help="Maximum training time, such as 30s or 10m.")
    ] = "100s",
    questions: Annotated[
        int, typer.Option(min=1, max=100_000, help="Number of held-out functions to evaluate.")
    ] = 60,
) -> None:
    """Mine this machine's Python code, train a model, and show predictions with their sources.

    Whole modules are held out of training. They are evaluated twice: with only the training
    functions in the index, and with the module's other functions added, as in your own project.

    Example: `redraft demo -o demo/`
    """
    from redraft.cli.evaluate import write_evaluation
    from redraft.config.toml import DEFAULT_EDITOR
    from redraft.data.pairs import write_pairs
    from redraft.data.split import split
    from redraft.model import RetrieveAndEdit
    from redraft.persistence import describe_model
    from redraft.registry import find_part
    from redraft.storage.output_folder import claim, ensure_ours
    from redraft.training.fit import FitOptions

    seconds = options.seconds(budget)
    ensure_ours(out, "demo")
    find_part("editor", DEFAULT_EDITOR)  # a missing package is an error before anything is mined
    examples = _mine_installed()
    claim(out, "demo")
    write_pairs(examples, out / "pairs.jsonl")
    parts = split(examples, {"train": 0.9, "held out": 0.1}, seed=SEED, by="package")
    with watched("training") as on_step:
        fitting = FitOptions(seed=SEED, budget=seconds, on_step=on_step, log=print_note)
        trained = RetrieveAndEdit.fit(parts["train"], options=fitting)
    held_out = random.Random(SEED).sample(parts["held out"], min(questions, len(parts["held out"])))
    model = RetrieveAndEdit(trained.retriever.add(parts["held out"]), trained.editor)
    model.save(out / "model")
    across, within = (_evaluate(system, held_out) for system in (trained, model))
    shown = within["retrieve+edit"]
    facts = {name: str(value) for name, value in describe_model(out / "model").items()}
    title = "Redraft on the Python code of this machine"
    write_evaluation(shown, out, title=title, facts=facts, retriever=model.retriever)
    _show(shown)
    _show_completion(model, held_out)
    title = f"{len(held_out)} held-out functions of {len(examples):,}, index: "
    for index, evaluations in (("training modules", across), ("their own modules added", within)):
        scores = {name: evaluation.scores for name, evaluation in evaluations.items()}
        stdout().print(scores_table(scores, title=title + index))
    before, after = (_next_token_accuracy(system, held_out) for system in (trained, model))
    stdout().print(
        f"Next-token accuracy while typing them: {before:.0%};\n"
        f"with their own modules in the index: {after:.0%}. Nothing was trained in between."
    )
    report = out / "report.html"
    files = [f"Report  {report}"] if report.exists() else []
    files += [f"Model   {out}/model", f"Pairs   {out}/pairs.jsonl"]
    stdout().print(
        "\n" + "\n".join(files) + "\n"
        f"Try     redraft serve {out}/model      with a web page\n"
        f"        redraft complete {out}/model YOUR_FILE.py:LINE:COL --format table\n"
        f"        redraft index YOUR_CODE/ -o mine/ --from {out}/model",
        soft_wrap=True,
    )


def _mine_installed() -> "list[Example]":
    from redraft.mining.installed import installed_functions

    return installed_functions(
        lambda sources: progress(sources, "mining", total=len(sources)), most_files=MOST_FILES
    )


def _evaluate(model: "RetrieveAndEdit", held_out: "Sequence[Example]") -> "dict[str, Evaluation]":
    """Evaluate the retriever alone and the model; no example is its own prototype."""
    from redraft.cli.evaluate import evaluate
    from redraft.editing.base import VerbatimEditor
    from redraft.model import RetrieveAndEdit

    alone = RetrieveAndEdit(model.retriever, VerbatimEditor())
    systems = {f"{model.retriever.name} alone": alone, "retrieve+edit": model}
    return {name: evaluate(system, held_out, leave_out=True) for name, system in systems.items()}


def _next_token_accuracy(model: "RetrieveAndEdit", held_out: "Sequence[Example]") -> float:
    """Return the share of true body tokens that the model ranks first."""
    from redraft.metrics.next_token import first_choice_share

    inputs = [example.x for example in held_out]
    prototypes = model.retriever.retrieve(inputs, 1, exclude=held_out)
    return first_choice_share(model.editor, held_out, prototypes)  # type: ignore[arg-type]


def _show(evaluation: "Evaluation") -> None:
    """Print three held-out functions, chosen by the quantiles of their scores."""
    from redraft.cli._panels import candidate_panel

    scores: Sequence[float] = evaluation.scores.per_example["bleu_yin"]
    ranked = sorted(range(len(scores)), key=lambda row: (scores[row], row))
    for label, quantile in QUANTILES.items():
        row = ranked[int(quantile * (len(ranked) - 1))]
        example, answer = evaluation.examples[row], evaluation.answers[row]
        panel = candidate_panel(example.x, answer, truth=example.y)
        panel.title = f"a held-out function · BLEU {100 * scores[row]:.0f}, {label}"
        panel.title_align = "left"
        stdout().print(panel)


def _show_completion(model: "RetrieveAndEdit", held_out: "Sequence[Example]") -> None:
    """Print the first half of a held-out function and the suggestions for its next line."""
    from redraft.cli._panels import suggestions_panel
    from redraft.completion.engine import CompletionEngine
    from redraft.mining.python_functions import as_source

    long_bodies = (example for example in held_out if example.y.count("\n") >= 3)
    example = next(long_bodies, held_out[0])
    lines = example.y.split("\n")
    typed = "\n".join(lines[: len(lines) // 2]) + "\n"
    buffer = as_source(example.x, typed)
    suggestions = CompletionEngine(model).complete(buffer, len(buffer), k=4)
    stdout().print(suggestions_panel(buffer, suggestions))
