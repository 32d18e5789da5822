"""`redraft predict`: answers for one input or a file of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redraft.cli import options
from redraft.cli.bulk import ROWS, BulkCommand, RayOption, RowsOption, run_job
from redraft.cli.console import Format, emit, progress, remark, stdout, working
from redraft.cli.options import FormatOption, ModelArgument, StoreOption, WhereOption
from redraft.data.inputs import input_of, parse_input
from redraft.data.rows import Unreadable, read_json_lines, read_text_lines
from redraft.errors import ConfigError, PairsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redraft.bulk.predicting import Answer
    from redraft.data.example import Input

cls = BulkCommand


def command(
    model: ModelArgument,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="[INPUT]", help="Text, or a JSON object of fields.", show_default=False
        ),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            help="A file of inputs: text lines, or JSON lines with x. May be repeated. With -o "
            "JSON lines or Parquet: files, folders of them, patterns, or addresses such as s3://…."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FOLDER",
            help="Folder or address for the answers, in shards. [stdout]",
        ),
    ] = None,
    rows: RowsOption = ROWS,
    ray: RayOption = None,
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

    With `-o` the answers are written in shards of `--rows` rows, in the order of the input, each
    in full or not at all: killed anywhere, the same command goes on, on one machine or on many.

    Examples: `redraft predict model/ "sum the first two elements of tmp" --explain --format table`,
    `redraft predict model/ --file inputs.jsonl --precision 0.9 > predictions.jsonl`,
    `redraft predict model/ "sum tmp" -k 5 --sample 1`,
    `redraft predict model/ --file inputs/ -o predictions/ --ray head:6379`
    """
    from redraft.bulk.addresses import absolute
    from redraft.bulk.predicting import BATCH, Asked, Predicting, Predictor
    from redraft.bulk.shards import cut_files
    from redraft.retrieve_and_edit import RetrieveAndEdit

    if (text is None) == (file is None):
        raise PairsError("give either one INPUT or --file FILE")
    _refuse_contradictions(
        {"--sample": sample, "--beam": beam},
        {"--sample": sample, "--where": where},
        {"--sample": sample, "--out": out},
        {"--min-confidence": min_confidence, "--precision": precision},
        # what was studied is foreseen more surely than when confidence was learned
        {"--studied": studied, "--precision": precision},
        {"--studied": studied, "--min-confidence": min_confidence},
    )
    if remembered == 0 and studied is None:
        studied = 0
    decoding = {
        "beam_size": beam,
        "prototypes": prototypes,
        "remembered": remembered,
        "studied": studied,
        "syntax": syntax,
    }
    asked = Asked(k, explain, decoding, min_confidence, precision, options.filters(where))
    if out is not None:
        if not file or form is not Format.JSON:
            raise PairsError(f"--out {out}: shards are JSON lines of the inputs in --file FILE")
        work = Predicting.of(absolute(str(model)), asked, store=store)
        run_job(work, lambda: cut_files(file, rows, without=out), out, ray=ray)
        return
    if ray is not None:
        raise PairsError("--ray: needs a folder for the shards; add -o FOLDER")
    with working("loading the model"):
        predictor = Predictor(RetrieveAndEdit.load(model, store=store), asked)
    if precision is not None:
        remark(f"answering from a confidence of {predictor.threshold:.0%} on")
    if file:
        inputs = [x for each in file for x in _read_inputs(Path(each), predictor.fields)]
    else:
        inputs = [parse_input(text or "", predictor.fields)]
    # draws depend on all inputs that are drawn for together
    size = BATCH if sample is None else len(inputs)
    batches = [inputs[start : start + size] for start in range(0, len(inputs), size)]
    for batch in progress(batches, "predicting", total=len(batches)):
        if sample is None:
            answers = predictor.predict(batch)
        else:
            answers = predictor.sample(batch, seed=sample)
        for answer in answers:
            if form is Format.JSON:
                emit(answer.to_json(explain=explain))
            else:
                _print(answer, explain=explain)


def _refuse_contradictions(*pairs: dict[str, object]) -> None:
    for pair in pairs:
        if all(value is not None for value in pair.values()):
            raise ConfigError(f"{' and '.join(pair)} exclude each other; leave out one of them")


def _print(answer: "Answer", *, explain: bool) -> None:
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


def _read_inputs(path: Path, fields: "Sequence[str]") -> "list[Input]":
    """The inputs of a file: JSON lines with a key x, or plain lines."""
    if path.name.removesuffix(".gz").endswith(("jsonl", "ndjson")):
        rows = read_json_lines(path)
    else:
        rows = ((line, {"x": text}) for line, text in read_text_lines(path))
    inputs = []
    for line, value in rows:
        x = value.get("x") if isinstance(value, dict) else value
        if isinstance(x, Unreadable):
            raise PairsError(f"{path}:{line}: {x.reason}")
        try:
            inputs.append(input_of(value, fields))
        except PairsError as error:
            raise PairsError(f"{path}:{line}: {error}") from error
    return inputs
