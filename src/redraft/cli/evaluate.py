"""`redraft evaluate`: score a model on pairs with known outputs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redraft.cli import _lm
from redraft.cli import _options as options
from redraft.cli._console import (
    Format,
    emit,
    print_note,
    print_scores,
    progress,
    shown_fact,
    working,
)
from redraft.cli._options import FormatOption, ModelArgument, PairsArgument, StoreOption
from redraft.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from redraft.metrics.evaluation import Evaluation
    from redraft.metrics.exact_match import Language
    from redraft.model import RetrieveAndEdit
    from redraft.retrieval.base import Retriever
    from redraft.types import Example

_BATCH = 32


def command(
    model: ModelArgument,
    pairs: PairsArgument,
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", help="Output folder for rows.jsonl, scores.json and report.html."
        ),
    ] = Path("evaluation"),
    x_columns: options.XColumns = "",
    y_column: options.YColumn = "y",
    skip_bad: options.SkipBad = None,
    equal: options.EqualOption = options.Equality.AUTO,
    store: StoreOption = None,
    form: FormatOption = Format.JSON,
    lm: _lm.LmOption = None,
    lm_remote: _lm.LmRemote = False,
    lm_time_limit: _lm.LmTimeLimit = _lm.TIME_LIMIT,
    lm_requests: _lm.LmRequests = None,
) -> None:
    """Score a model on pairs: how many are right, similarity, rows, an HTML report.

    `retrieval` in the scores is the score of the nearest stored output without an edit. The
    report needs redraft[report]; without it, rows and scores are written.

    Examples: `redraft evaluate model/ test.jsonl -o evaluation/ --format table`,
    `redraft evaluate model/ test.jsonl --equal text`,
    `redraft evaluate model/ test.jsonl --lm http://localhost:11434/v1`
    """
    from redraft.data.inputs import fields_of
    from redraft.model import RetrieveAndEdit
    from redraft.persistence import describe_model
    from redraft.storage.output_folder import claim, ensure_ours

    ensure_ours(out, "evaluation")
    with working("loading the model"):
        asked = _lm.LmOptions(lm, lm_remote, lm_time_limit, lm_requests) if lm else None
        loaded = _lm.connected(RetrieveAndEdit.load(model, store=store), asked)
        facts = describe_model(model, store=store)
    columns, fields = options.columns(x_columns, y_column), fields_of(loaded.retriever.examples)
    examples = list(options.read_examples(pairs, columns, skip_bad=skip_bad, fields=fields))
    evaluation = evaluate(loaded, examples, language=equal.language)
    with working("writing the report"):
        claim(out, "evaluation")
        title = f"{model.name} on {pairs.name}"
        files = write_evaluation(evaluation, out, loaded.retriever, title=title, facts=facts)
    if form is Format.JSON:
        emit(evaluation.to_json())
    else:
        system = f"{loaded.retriever.name} + {loaded.editor.name}"
        print_scores(system, evaluation.scores, title=str(pairs), retrieval=evaluation.retrieval)
    _warn_of_stored(examples, loaded.retriever.examples)
    print_note(f"{files}: {out}/")


def _warn_of_stored(examples: "Sequence[Example]", stored: "Iterable[Example]") -> None:
    """Print a warning if the model holds some of the examples, whose answers it need not edit."""
    identities = {example.identity for example in examples}
    held = identities.intersection(example.identity for example in stored)
    count = sum(example.identity in held for example in examples)
    if count:
        print_note(
            f"warning: {count:,} of {len(examples):,} pairs are stored in the model, which repeats "
            "them; for new inputs, evaluate on pairs that it does not hold (`redraft split`)"
        )


def evaluate(
    model: "RetrieveAndEdit",
    examples: "Sequence[Example]",
    *,
    language: "Language | None" = None,
) -> "Evaluation":
    """Predict the examples with progress on stderr, and return the scored evaluation."""
    from redraft.metrics.evaluation import Evaluation
    from redraft.metrics.retrieval_quality import first_prototypes

    predictions = []
    batches = range(0, len(examples), _BATCH)
    for start in progress(batches, "predicting", total=len(batches)):
        predictions += model.predict([example.x for example in examples[start : start + _BATCH]])
    references = {example.y for example in examples}
    train_outputs = references.intersection(example.y for example in model.retriever.examples)
    with working("scoring"):
        prototypes = first_prototypes(model.retriever, examples)
        nearest = [prototype.example.y if prototype else None for prototype in prototypes]
        return Evaluation.of(
            examples,
            predictions,
            train_outputs=train_outputs,
            language=language,
            nearest=nearest if any(prototypes) else None,
        )


def write_evaluation(
    evaluation: "Evaluation",
    out: Path,
    retriever: "Retriever",
    *,
    title: str,
    facts: "Mapping[str, Any]",
) -> str:
    """Write rows, scores and report into the folder `out`; return their names.

    `facts` describe the model. Without plotly there is no report, and a note says how to install
    it.
    """
    from redraft.report.page import write_report

    rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in evaluation.rows())
    (out / "rows.jsonl").write_text(rows, encoding="utf-8")
    scores = json.dumps(evaluation.to_json(), indent=2) + "\n"
    (out / "scores.json").write_text(scores, encoding="utf-8")
    path = out / "report.html"
    shown = {
        "size" if name == "bytes" else name: shown_fact(name, value)
        for name, value in facts.items()
        if name != "selection"
    }
    try:
        write_report(evaluation, path, title=title, facts=shown, retriever=retriever)
    except MissingExtraError as error:
        path.unlink(missing_ok=True)  # of an earlier evaluation
        print_note(f"no report: {error}")
        return "rows and scores"
    return "rows, scores and report"
