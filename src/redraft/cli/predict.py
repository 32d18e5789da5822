"""`redraft predict`: answers for one input or a file of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redraft.cli import options
from redraft.cli.console import Format, emit, progress, stdout, working
from redraft.cli.options import FormatOption, ModelArgument, WhereOption
from redraft.data.rows import Unreadable, read_json_lines, read_text_lines
from redraft.errors import PairsError

if TYPE_CHECKING:
    from redraft.data.example import Example, Input
    from redraft.editing.candidate import Candidate

_BATCH = 64


def command(
    model: ModelArgument,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="[INPUT]", help="Text, or a JSON object of fields.", show_default=False
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="A file of inputs: text lines, or JSON lines with x.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many candidates for each input.")] = 1,
    explain: Annotated[bool, typer.Option(help="Show the prototype and what was changed.")] = False,
    where: WhereOption = None,
    form: FormatOption = Format.JSON,
) -> None:
    """Answer one input, or every input of a file.

    Prints a JSON line for each input, its candidates best first.

    Examples: `redraft predict model/ "sum the first two elements of tmp" --explain`,
    `redraft predict model/ --file inputs.jsonl > predictions.jsonl`
    """
    from redraft.retrieve_and_edit import RetrieveAndEdit

    if (text is None) == (file is None):
        raise PairsError("give either one INPUT or --file FILE")
    filters = options.filters(where)
    with working("loading the model"):
        loaded = RetrieveAndEdit.load(model)
    examples = loaded.retriever.examples
    inputs = _read_inputs(file, examples) if file else [options.parse_input(text or "", examples)]
    batches = [inputs[start : start + _BATCH] for start in range(0, len(inputs), _BATCH)]
    for batch in progress(batches, "predicting", total=len(batches)):
        for x, ranked in zip(batch, loaded.predict(batch, k, where=filters), strict=True):
            if form is Format.JSON:
                emit(_row(x, ranked, explain=explain))
            else:
                from redraft.cli.display import candidate_panel

                answers: Sequence[Candidate | None] = ranked or [None]
                for candidate in answers:
                    stdout().print(candidate_panel(x, candidate))


def _row(x: "Input", ranked: "Sequence[Candidate]", *, explain: bool) -> dict[str, Any]:
    """One line of output: the input, its best output, and every candidate."""
    candidates = []
    for candidate in ranked:
        row = candidate.to_json()
        if explain:
            row["diff"] = candidate.diff().to_json()
        else:
            del row["prototype"]
        candidates.append(row)
    best = ranked[0].output if ranked else None
    return {"x": dict(x), "output": best, "candidates": candidates}


def _read_inputs(path: Path, examples: "Sequence[Example]") -> "list[Input]":
    """The inputs of a file: JSON lines with a key x, or plain lines."""
    if path.name.removesuffix(".gz").endswith(("jsonl", "ndjson")):
        rows = read_json_lines(path)
    else:
        rows = ((line, {"x": text}) for line, text in read_text_lines(path))
    inputs = []
    for line, value in rows:
        x = value.get("x") if isinstance(value, dict) else value
        if isinstance(x, Unreadable) or not isinstance(x, str | dict):
            reason = x.reason if isinstance(x, Unreadable) else "expected an object with the key x"
            raise PairsError(f"{path}:{line}: {reason}")
        inputs.append(options.parse_input(x if isinstance(x, str) else json.dumps(x), examples))
    return inputs
