"""`redraft score`: the same scorers on the outputs of any system."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redraft.cli.console import Format, emit, scores_table, stdout
from redraft.cli.options import FormatOption
from redraft.data.pairs import is_pairs, read_pairs
from redraft.data.rows import NEWLINE_MARK, Unreadable, read_json_lines, read_text_lines
from redraft.errors import PairsError

if TYPE_CHECKING:
    from redraft.evaluation.scores import Scores

OUTPUT_KEYS = ("output", "prediction", "y")


def command(
    predictions: Annotated[
        Path,
        typer.Argument(
            help="Outputs: text lines with § for newlines, or .jsonl rows with `output`.",
            show_default=False,
        ),
    ],
    references: Annotated[
        Path,
        typer.Argument(
            help="True outputs: text lines, .jsonl rows with `y`, or pairs.", show_default=False
        ),
    ],
    train: Annotated[
        Path | None,
        typer.Option(help="Training outputs or pairs: adds exact match on what is not in them."),
    ] = None,
    form: FormatOption = Format.JSON,
) -> None:
    """Score the outputs of any system against the true ones, line by line.

    Prints one JSON object: bleu_yin, bleu_paper, bleu_corpus, exact and more, in per cent, with
    95 % intervals. An empty line or null is a missing output and scores 0. Rows with `ranks` (the
    0-based rank of each true token) get the completion metrics too.

    Example: `redraft score predictions.jsonl test.jsonl --train train.jsonl`
    """
    from redraft.evaluation.scores import score

    expected = [text or "" for text in _read_outputs(references)]
    train_outputs = {text or "" for text in _read_outputs(train)} if train else None
    scores = score(expected, _read_outputs(predictions), train_outputs=train_outputs)
    completions = _completions(predictions)
    if form is Format.TABLE:
        stdout().print(scores_table({predictions.name: scores}, title=str(references)))
    else:
        extra = completions.to_json() if completions else {}
        row = scores.to_json()
        emit({**extra, **row, "interval": {**extra.get("interval", {}), **row["interval"]}})


def _read_outputs(path: Path) -> list[str | None]:
    """The outputs in a file, None where one is missing."""
    if _is_json(path):
        return [_output(value, f"{path}:{line}") for line, value in read_json_lines(path)]
    if is_pairs(path):
        return [example.y for example in read_pairs(path)]
    return [_output(text, f"{path}:{line}") for line, text in read_text_lines(path)]


def _is_json(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))


def _output(value: Any, where: str) -> str | None:
    """The output in a row: a text, or the first of the known keys."""
    if isinstance(value, Unreadable):
        raise PairsError(f"{where}: {value.reason}")
    if isinstance(value, dict):
        keys = [key for key in OUTPUT_KEYS if key in value]
        if not keys:
            raise PairsError(f"{where}: expected one of the keys {', '.join(OUTPUT_KEYS)}")
        value = value[keys[0]]
    if not isinstance(value, str | None):
        raise PairsError(f"{where}: an output must be text or null, got {type(value).__name__}")
    return value.replace(NEWLINE_MARK, "\n") if value else None


def _completions(path: Path) -> "Scores | None":
    """The completion metrics, if the rows have ranks."""
    import numpy as np

    from redraft.evaluation.scores import score_completions

    if not _is_json(path):
        return None
    rows = [value for _, value in read_json_lines(path)]
    ranks = [row["ranks"] for row in rows if isinstance(row, dict) and "ranks" in row]
    if not ranks:
        return None
    if len(ranks) != len(rows):
        raise PairsError(f"{path}: {len(ranks)} of {len(rows)} rows have ranks; give all or none")
    try:
        return score_completions([np.array(each, np.int64) for each in ranks])
    except (ValueError, TypeError) as error:
        raise PairsError(f"{path}: ranks must be lists of whole numbers ({error})") from error
