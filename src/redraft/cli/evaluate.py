"""`redraft evaluate`: a model against pairs with known outputs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redraft.cli import options
from redraft.cli.console import Format, emit, progress, remark, scores_table, stdout, working
from redraft.cli.options import (
    FormatOption,
    ModelArgument,
    PairsArgument,
    StoreOption,
    XColumns,
    YColumn,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redraft.data.example import Example
    from redraft.evaluation.evaluation import Evaluation
    from redraft.retrieval.retriever import Retriever
    from redraft.retrieve_and_edit import RetrieveAndEdit

_BATCH = 32


def command(
    model: ModelArgument,
    pairs: PairsArgument,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for rows.jsonl, scores.json, report.html.")
    ] = Path("evaluation"),
    x_columns: XColumns = "",
    y_column: YColumn = "y",
    store: StoreOption = None,
    form: FormatOption = Format.JSON,
) -> None:
    """Score a model on pairs: every metric with its 95 % interval, a row an example, a report.

    Example: `redraft evaluate model/ test.jsonl -o evaluation/ --format table`
    """
    from redraft.data.pairs import read_pairs
    from redraft.experiment import describe_model
    from redraft.retrieve_and_edit import RetrieveAndEdit

    with working("loading the model"):
        loaded = RetrieveAndEdit.load(model, store=store)
        facts = {name: str(value) for name, value in describe_model(model, store=store).items()}
    examples = read_pairs(pairs, options.columns(x_columns, y_column))
    evaluation = evaluate(loaded, examples)
    with working("writing the report"):
        title = f"{model.name} on {pairs.name}"
        write_evaluation(evaluation, out, title=title, facts=facts, retriever=loaded.retriever)
    if form is Format.JSON:
        emit(evaluation.scores.to_json())
    else:
        system = f"{loaded.retriever.name} + {loaded.editor.name}"
        stdout().print(scores_table({system: evaluation.scores}, title=str(pairs)))
    remark(f"rows, scores and report: {out}/")


def evaluate(
    model: "RetrieveAndEdit", examples: "Sequence[Example]", *, leave_out: bool = False
) -> "Evaluation":
    """The model's answers to the examples, scored, with progress on stderr.

    With `leave_out` none is answered from itself or from an example of the same output.
    """
    from redraft.evaluation.evaluation import Evaluation

    predictions = []
    batches = range(0, len(examples), _BATCH)
    for start in progress(batches, "predicting", total=len(batches)):
        batch = examples[start : start + _BATCH]
        exclude = batch if leave_out else None
        predictions += model.predict([example.x for example in batch], exclude=exclude)
    asked = {example.y for example in examples}
    train_outputs = asked.intersection(example.y for example in model.retriever.examples)
    with working("scoring"):
        return Evaluation.of(examples, predictions, train_outputs=train_outputs)


def write_evaluation(
    evaluation: "Evaluation",
    out: Path,
    *,
    title: str,
    facts: dict[str, str],
    retriever: "Retriever | None" = None,
) -> None:
    """Rows, scores and report as files of the folder."""
    from redraft.evaluation.report import write_report

    out.mkdir(parents=True, exist_ok=True)
    path = out / "report.html"
    write_report(evaluation, path, title=title, facts=facts, retriever=retriever)
    rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in evaluation.rows())
    (out / "rows.jsonl").write_text(rows, encoding="utf-8")
    scores = json.dumps(evaluation.scores.to_json(), indent=2) + "\n"
    (out / "scores.json").write_text(scores, encoding="utf-8")
