"""`redraft predict`: predict the outputs of one input or of a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redraft.cli import _lm
from redraft.cli import _options as options
from redraft.cli._bulk import ROWS, BulkCommand, RayOption, RowsOption, run_job
from redraft.cli._console import Format, emit, print_note, progress, stdout, working
from redraft.cli._options import FormatOption, ModelArgument, StoreOption, argument, ranged
from redraft.config.ranges import BEAM, CANDIDATES, SEED, TTT_STEPS, Range
from redraft.data.inputs import input_of, parse_input
from redraft.errors import ConfigError, PairsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redraft.editing.base import Editor
    from redraft.predictor import Prediction
    from redraft.types import Input

cls = BulkCommand


def command(
    model: ModelArgument,
    text: Annotated[str | None, argument("Text, or a JSON object of fields.", "[INPUT]")] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            help="File of inputs: text lines, JSON lines with x, or a table with columns of the "
            "model's fields. May be repeated. With -o: JSON lines or Parquet, as files, folders, "
            "glob patterns, or addresses such as s3://…."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FOLDER",
            help="Output folder or address; the predictions are written in shards. [stdout]",
        ),
    ] = None,
    rows: RowsOption = ROWS,
    ray: RayOption = None,
    k: Annotated[int, ranged(CANDIDATES, "Number of candidates per input.", "-k")] = 1,
    explain: Annotated[
        bool,
        typer.Option(
            help="Show for each candidate its prototype, the edits, the origin of every token, "
            "its log-probability and its confidence."
        ),
    ] = False,
    beam: Annotated[
        int | None, ranged(BEAM, "Beam size; 1 is greedy decoding, the fastest. [5]")
    ] = None,
    ttt_steps: Annotated[
        int | None,
        ranged(
            TTT_STEPS,
            "Steps of test-time training on the nearest examples before each prediction, such as "
            "4. Slow; helps most with examples added after training. [as fitted: 0]",
        ),
    ] = None,
    syntax: Annotated[
        str | None,
        typer.Option(help="Constrain outputs to a syntax: any, python or json. [as fitted]"),
    ] = None,
    sample: Annotated[
        int | None,
        ranged(
            SEED,
            "Sample candidates from the model's distribution with this random seed, instead of "
            "beam search.",
            metavar="SEED",
        ),
    ] = None,
    min_confidence: Annotated[
        float | None, ranged(Range(0, 1), "Abstain below this confidence, such as 0.8.")
    ] = None,
    precision: Annotated[
        float | None,
        ranged(
            Range(0, 1),
            "Abstain below the confidence that reached this precision on held-out pairs.",
        ),
    ] = None,
    where: options.WhereOption = None,
    store: StoreOption = None,
    form: FormatOption = Format.JSON,
    lm: _lm.LmOption = None,
    lm_remote: _lm.LmRemote = False,
    lm_time_limit: _lm.LmTimeLimit = _lm.TIME_LIMIT,
    lm_requests: _lm.LmRequests = None,
) -> None:
    """Predict the output of one input, or of every input of a file.

    Prints one JSON line per input, with the candidates ranked best first. The confidence is
    calibrated on pairs held out of training: it estimates how often such an output is exactly
    right. With `--min-confidence` or `--precision` the model abstains if its confidence is too
    low: `output` is null, `abstained` is true, and the candidates are still listed.

    A model fitted with a language model asks it only if `--lm` names its address again; if it
    fails, one line on stderr says why, and the other proposers answer.

    With `-o` the predictions are written in shards of `--rows` rows, in input order. Shards are
    written atomically: after an interruption the same command resumes, on one machine or many.

    Examples: `redraft predict model/ "sum the first two elements of tmp" --explain --format table`,
    `redraft predict model/ --file inputs.jsonl --precision 0.9 > predictions.jsonl`,
    `redraft predict model/ "sum tmp" -k 5 --sample 1`,
    `redraft predict model/ --file inputs/ -o predictions/ --ray head:6379`,
    `redraft predict model/ "sum tmp" --lm http://localhost:11434/v1`
    """
    from redraft.bulk.addresses import absolute
    from redraft.bulk.predict import BATCH, PredictJob
    from redraft.bulk.shards import cut_files
    from redraft.model import RetrieveAndEdit
    from redraft.predictor import PredictOptions, Predictor

    if (text is None) == (file is None):
        raise PairsError("give either one INPUT or --file FILE")
    _refuse_contradictions(
        {"--sample": sample, "--beam": beam},
        {"--sample": sample, "--where": where},
        {"--sample": sample, "--out": out},
        {"--lm": lm, "--out": out},
        {"--min-confidence": min_confidence, "--precision": precision},
        # test-time training shifts the scores that confidence was calibrated on
        {"--ttt-steps": ttt_steps, "--precision": precision},
        {"--ttt-steps": ttt_steps, "--min-confidence": min_confidence},
    )
    decoding = {"beam_size": beam, "ttt_steps": ttt_steps, "syntax": syntax}
    predict_options = PredictOptions(
        k, explain, decoding, min_confidence, precision, options.filters(where)
    )
    if out is not None:
        if not file or form is not Format.JSON:
            raise PairsError(f"--out {out}: shards are JSON lines of the inputs in --file FILE")
        job = PredictJob(absolute(str(model)), asdict(predict_options), store)
        with _naming_options():
            run_job(job, lambda: cut_files(file, rows, without=out), out, ray=ray)
        return
    if ray is not None:
        raise PairsError("--ray: needs a folder for the shards; add -o FOLDER")
    with working("loading the model"), _naming_options():
        asked = _lm.LmOptions(lm, lm_remote, lm_time_limit, lm_requests) if lm else None
        loaded = _lm.connected(RetrieveAndEdit.load(model, store=store), asked)
        predictor = Predictor(loaded, predict_options)
    if precision is not None:
        _note_precision(loaded.editor, precision, predictor.threshold or 0.0)
    if file:
        inputs = [x for name in file for x in _read_inputs(Path(name), predictor.fields)]
    else:
        inputs = [parse_input(text or "", predictor.fields)]
    # the samples depend on the batch, so there is only one
    size = BATCH if sample is None else len(inputs)
    batches = [inputs[start : start + size] for start in range(0, len(inputs), size)]
    for batch in progress(batches, "predicting", total=len(batches)):
        if sample is None:
            predictions = predictor.predict(batch)
        else:
            predictions = predictor.sample(batch, seed=sample)
        for prediction in predictions:
            if form is Format.JSON:
                emit(prediction.to_json(explain=explain))
            else:
                _print(prediction, explain=explain)


def _refuse_contradictions(*pairs: dict[str, object]) -> None:
    for pair in pairs:
        if all(value is not None for value in pair.values()):
            raise ConfigError(f"{' and '.join(pair)} exclude each other; leave out one of them")


def _note_precision(editor: "Editor", precision: float, threshold: float) -> None:
    """Print the threshold of a precision, and a warning if it rests on few held-out pairs."""
    from redraft.editing.base import CalibratedEditor
    from redraft.metrics.calibration import answers_needed

    print_note(f"abstaining below a confidence of {100 * threshold:.0f} %")
    needed = answers_needed(precision)
    if isinstance(editor, CalibratedEditor) and editor.confidence is not None:
        count = sum(confidence >= threshold for confidence, _ in editor.confidence.held_out)
        if count < needed:
            print_note(
                f"warning: a precision of {100 * precision:.0f} % rests on {count:,} held-out "
                f"pairs, and {needed:,} would be needed to be sure of it; fit on more pairs"
            )


@contextmanager
def _naming_options() -> Iterator[None]:
    """Name the option that the model cannot follow as it is written on the command line."""
    from redraft.predictor import OptionError

    try:
        yield
    except OptionError as error:
        raise ConfigError(f"--{error.field.replace('_', '-')}: {error}") from error


def _print(prediction: "Prediction", *, explain: bool) -> None:
    """Print the candidates as panels."""
    from redraft.cli._panels import (
        abstained_line,
        candidate_panel,
        explained_panel,
        no_answer_panel,
    )

    console = stdout()
    marks = not console.is_terminal
    if prediction.abstains and prediction.ranked:
        console.print(abstained_line(prediction.confidence, prediction.threshold or 0.0))
    if not prediction.ranked:
        console.print(no_answer_panel(prediction.x))
    several = len(prediction.ranked) > 1
    for rank, candidate in enumerate(prediction.ranked, start=1):
        if explain:
            shown_rank = rank if several else None
            panel = explained_panel(prediction.x, candidate, marks=marks, rank=shown_rank)
        else:
            label = "candidate" if prediction.abstains else "answer"
            panel = candidate_panel(prediction.x, candidate, marks=marks, label=label)
        console.print(panel)


def _read_inputs(path: Path, fields: "Sequence[str]") -> "Iterator[Input]":
    """Yield the inputs of a file: JSON lines with a key x, a table, or plain text lines."""
    for where, value in options.read_values(path, fields):
        try:
            yield input_of(value, fields)
        except PairsError as error:
            raise PairsError(f"{where}: {error}") from error
