"""`redraft predict`: answers for one input or a file of them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redraft.cli import options
from redraft.cli.console import Format, emit, progress, remark, stdout, working
from redraft.cli.options import FormatOption, ModelArgument, StoreOption, WhereOption
from redraft.config import override
from redraft.data.rows import Unreadable, read_json_lines, read_text_lines
from redraft.errors import ConfigError, PairsError

if TYPE_CHECKING:
    from redraft.data.example import Example, Input
    from redraft.editing.candidate import Candidate
    from redraft.editing.editor import Editor
    from redraft.editing.neural_editor import NeuralEditor

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
    explain: Annotated[
        bool,
        typer.Option(
            help="Show what each candidate was made from: its prototype, what was changed, "
            "the origin of every token, and how sure the model is."
        ),
    ] = False,
    beam: Annotated[
        int | None,
        typer.Option(min=1, help="How many outputs are tried at a time; 1 is fastest. [5]"),
    ] = None,
    prototypes: Annotated[
        int | None,
        typer.Option(min=1, help="How many prototypes an answer is mixed from. [as fitted: 1]"),
    ] = None,
    remembered: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How many of the nearest examples are looked up for what was written in a like "
            "state; 0 is fastest. [as fitted]",
        ),
    ] = None,
    studied: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Steps of training on the remembered examples before each answer, such as 4, by "
            "a copy: slow, and worth most for examples that were added after training. [0]",
        ),
    ] = None,
    syntax: Annotated[
        str | None,
        typer.Option(help="What every output must be: any, python or json. [as fitted]"),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="SEED",
            help="Draw candidates at random, as likely as the model thinks them. The same seed "
            "draws the same.",
        ),
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Answer only from this confidence on, such as 0.8."),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Answer only where such a share of held-out answers was right."
        ),
    ] = None,
    where: WhereOption = None,
    store: StoreOption = None,
    form: FormatOption = Format.JSON,
) -> None:
    """Answer one input, or every input of a file.

    Prints a JSON line for each input, its candidates best first. Confidence is how often an
    answer like this one was exactly right on pairs that were held out of training. With
    `--min-confidence` or `--precision` the model abstains where it is not sure enough: `output` is
    null, `abstained` is true, and the candidates are listed all the same.

    Examples: `redraft predict model/ "sum the first two elements of tmp" --explain --format table`,
    `redraft predict model/ --file inputs.jsonl --precision 0.9 > predictions.jsonl`,
    `redraft predict model/ "sum tmp" -k 5 --sample 1`
    """
    from redraft.retrieve_and_edit import RetrieveAndEdit

    if (text is None) == (file is None):
        raise PairsError("give either one INPUT or --file FILE")
    filters = options.filters(where)
    _refuse_contradictions(
        {"--sample": sample, "--beam": beam},
        {"--sample": sample, "--where": where},
        {"--min-confidence": min_confidence, "--precision": precision},
        # what was studied is foreseen more surely than when confidence was learned
        {"--studied": studied, "--precision": precision},
        {"--studied": studied, "--min-confidence": min_confidence},
    )
    if remembered == 0 and studied is None:
        studied = 0
    with working("loading the model"):
        loaded = RetrieveAndEdit.load(model, store=store)
    decoding = {
        "beam_size": beam,
        "prototypes": prototypes,
        "remembered": remembered,
        "studied": studied,
        "syntax": syntax,
    }
    tuned = RetrieveAndEdit(loaded.retriever, _tune(loaded.editor, decoding))
    threshold = _threshold(loaded.editor, min_confidence, precision)
    examples = loaded.retriever.examples
    inputs = _read_inputs(file, examples) if file else [options.parse_input(text or "", examples)]
    show = _emit if form is Format.JSON else _print
    # draws depend on all inputs that are drawn for together
    size = _BATCH if sample is None else len(inputs)
    batches = [inputs[start : start + size] for start in range(0, len(inputs), size)]
    for batch in progress(batches, "predicting", total=len(batches)):
        if sample is None:
            answers = tuned.predict(batch, k, where=filters)
        else:
            answers = tuned.sample(batch, k, seed=sample)
        for x, ranked in zip(batch, answers, strict=True):
            show(_Answer(x, ranked, threshold), explain=explain)


@dataclass(frozen=True)
class _Answer:
    """The candidates for an input, and from which confidence on they are an answer."""

    x: "Input"
    ranked: "Sequence[Candidate]"
    threshold: float | None

    @property
    def confidence(self) -> float:
        return (self.ranked[0].confidence or 0.0) if self.ranked else 0.0

    @property
    def is_abstained(self) -> bool:
        return self.threshold is not None and self.confidence < self.threshold


def _refuse_contradictions(*pairs: dict[str, object]) -> None:
    for pair in pairs:
        if all(value is not None for value in pair.values()):
            raise ConfigError(f"{' and '.join(pair)} exclude each other; leave out one of them")


def _neural(editor: "Editor", option: str) -> "NeuralEditor":
    """The editor, if it is one that an option like this can be meant for."""
    from redraft.editing.neural_editor import NeuralEditor

    if not isinstance(editor, NeuralEditor):
        raise ConfigError(
            f"{option} needs the neural editor, and this model has the {editor.name} one; "
            "fit it again with --editor neural"
        )
    return editor


def _tune(editor: "Editor", decoding: dict[str, int | str | None]) -> "Editor":
    """The editor that searches as the options tell."""
    told = {name: value for name, value in decoding.items() if value is not None}
    if not told:
        return editor
    option = f"--{next(iter(told)).removesuffix('_size')}"
    neural = _neural(editor, option)
    return neural.with_decoding(override(neural.decoding, told, where=option))


def _threshold(
    editor: "Editor", min_confidence: float | None, precision: float | None
) -> float | None:
    """From which confidence on an answer is given, if that was asked for."""
    if min_confidence is None and precision is None:
        return None
    option = "--precision" if min_confidence is None else "--min-confidence"
    confidence = _neural(editor, option).confidence
    if confidence is None:
        raise ConfigError(
            f"{option} needs a model that learned how often it is right; "
            "fit it again on 20 pairs or more"
        )
    if precision is None:
        return min_confidence
    found = confidence.threshold(precision)
    if found is None:
        raise ConfigError(
            f"--precision {precision:g}: no confidence was right as often on the "
            f"{len(confidence.held_out):,} held-out pairs; ask for less, or fit on more pairs"
        )
    remark(f"answering from a confidence of {found:.0%} on")
    return found


def _emit(answer: _Answer, *, explain: bool) -> None:
    """One line of output: the input, its best output, and every candidate."""
    best = answer.ranked[0].output if answer.ranked and not answer.is_abstained else None
    verdict = {} if answer.threshold is None else {"abstained": answer.is_abstained}
    candidates = [_row(candidate, explain=explain) for candidate in answer.ranked]
    emit({"x": dict(answer.x), "output": best, **verdict, "candidates": candidates})


def _row(candidate: "Candidate", *, explain: bool) -> dict[str, Any]:
    row = candidate.to_json()
    if not explain:
        del row["prototype"]
        return row
    unknown = {"log_prob": None, "confidence": None}
    provenance = [token.to_json() for token in candidate.provenance]
    return {**unknown, **row, "diff": candidate.diff().to_json(), "provenance": provenance}


def _print(answer: _Answer, *, explain: bool) -> None:
    """The candidates as panels."""
    from redraft.cli.display import abstained_line, candidate_panel, explained_panel

    console = stdout()
    if answer.is_abstained and answer.ranked:
        console.print(abstained_line(answer.confidence, answer.threshold or 0.0))
    if not answer.ranked:
        console.print(candidate_panel(answer.x, None))
    for rank, candidate in enumerate(answer.ranked, start=1):
        if explain:
            marks = not console.is_terminal
            console.print(explained_panel(answer.x, candidate, rank=rank, marks=marks))
        else:
            console.print(candidate_panel(answer.x, candidate))


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
