"""`redraft score`: score the outputs of any system."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redraft.cli._console import Format, emit, print_scores
from redraft.cli._options import (
    Equality,
    EqualOption,
    FormatOption,
    argument,
    is_json_lines,
    read_values,
)
from redraft.data.pairs import is_pairs, read_pairs
from redraft.data.rows import NEWLINE_MARK
from redraft.errors import PairsError

if TYPE_CHECKING:
    from redraft.metrics.scores import Scores

OUTPUT_KEYS = ("output", "prediction", "y")


def command(
    predictions: Annotated[
        Path,
        argument(
            "Predicted outputs: text lines with § for newlines, or .jsonl rows with `output`."
        ),
    ],
    references: Annotated[
        Path, argument("Reference outputs: text lines, .jsonl rows with `y`, or a file of pairs.")
    ],
    train: Annotated[
        Path | None,
        typer.Option(
            help="Training outputs or pairs: adds the exact match on references not among them."
        ),
    ] = None,
    equal: EqualOption = Equality.AUTO,
    form: FormatOption = Format.JSON,
) -> None:
    """Score the outputs of any system against references, line by line.

    Prints one JSON object: right, exact, bleu_yin, bleu_paper and more, in per cent, with
    95 % intervals. An empty line or null counts as a missing output and scores 0. Rows with
    `ranks` (the 0-based rank of each reference token) also get the completion metrics.

    Example: `redraft score predictions.jsonl test.jsonl --train train.jsonl`
    """
    from redraft.metrics.scores import score

    expected = [text or "" for text in _read_outputs(references)]
    train_outputs = {text or "" for text in _read_outputs(train)} if train else None
    outputs = _read_outputs(predictions)
    scores = score(expected, outputs, train_outputs=train_outputs, language=equal.language)
    completions = _completions(predictions)
    if form is Format.TABLE:
        print_scores(predictions.name, scores, title=str(references))
    else:
        extra = completions.to_json() if completions else {}
        row = scores.to_json()
        emit({**extra, **row, "interval": {**extra.get("interval", {}), **row["interval"]}})


def _read_outputs(path: Path) -> list[str | None]:
    """Read the outputs in a file; None marks a missing one."""
    if is_pairs(path) and not is_json_lines(path):
        return [example.y for example in read_pairs(path)]
    return [_output(value, where) for where, value in read_values(path)]


def _output(value: Any, where: str) -> str | None:
    """Return the output in a row: a text, or the value of the first key in OUTPUT_KEYS."""
    if isinstance(value, dict):
        keys = [key for key in OUTPUT_KEYS if key in value]
        if not keys:
            raise PairsError(f"{where}: expected one of the keys {', '.join(OUTPUT_KEYS)}")
        value = value[keys[0]]
    if not isinstance(value, str | None):
        raise PairsError(f"{where}: an output must be text or null, got {type(value).__name__}")
    return value.replace(NEWLINE_MARK, "\n") if value else None


def _completions(path: Path) -> "Scores | None":
    """Return the completion metrics, if the rows have ranks."""
    import numpy as np

    from redraft.metrics.scores import score_completions

    if not is_json_lines(path):
        return None
    rows = [value for _, value in read_values(path)]
    ranks = [row["ranks"] for row in rows if isinstance(row, dict) and "ranks" in row]
    if not ranks:
        return None
    if len(ranks) != len(rows):
        raise PairsError(f"{path}: {len(ranks)} of {len(rows)} rows have ranks; give all or none")
    try:
        return score_completions([np.array(row, np.int64) for row in ranks])
    except (ValueError, TypeError) as error:
        raise PairsError(f"{path}: ranks must be lists of whole numbers ({error})") from error
