"""`redraft demo`: the product on a support team's questions, and on the code of this machine."""

import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redraft.cli import _options as options
from redraft.cli._console import print_note, stdout, working
from redraft.cli._progress import watched

if TYPE_CHECKING:
    from rich.table import Table

    from redraft.metrics.evaluation import Evaluation
    from redraft.model import RetrieveAndEdit
    from redraft.types import Example

SEED = 2018
SUPPORT = Path(__file__).parent.parent / "data" / "support"
"""Pairs and held-out questions of a support team, made by `python -m experiments.messy`."""

ASKED = (
    "Could you please send me the tracking number for order no. 20139?",
    "refund 154.95 euros on order 19983",
    "all paid orders since 2025-10-29 pls",
)
UNKNOWN = "what's the weather in Berlin?"
LEAST_CONFIDENCE = 0.5
ADDED = ("who is on call this weekend?", "SELECT name FROM agents WHERE shift = 'WEEKEND'")

TRAINED = "Redraft, trained"
UNUSED = "A network, trained for {:.0f} s, did not help\non held-out pairs, and is not used."

SOURCE_FILES = 150
"""Files of the standard library that are mined."""

CURSORS = (
    ("_pydecimal.py", "__rmod__", 0),
    ("_pydecimal.py", "max_mag", 1),
    ("_pydecimal.py", "divide_int", 2),
    ("asyncio/streams.py", "open_unix_connection", 0),
)
"""Functions to complete, by file and name, and how many lines of each are typed."""


def command(
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for the pairs, the model and the report.")
    ] = Path("demo"),
    budget: Annotated[
        str,
        typer.Option(help="Training time of the network in the table, such as 30s; 0s for none."),
    ] = "30s",
    questions: Annotated[
        int, typer.Option(min=1, max=100_000, help="Number of held-out questions to evaluate.")
    ] = 100,
) -> None:
    """Show answers with their sources: questions of a support team, and code of this machine.

    300 questions with their SQL, as four colleagues wrote them, are fitted in seconds. The demo
    asks new questions, one that nothing in the index answers, and one whose answer was added a
    moment ago; then it compares ways to answer held-out questions. Finally it
    completes functions of the standard library of this machine.

    Example: `redraft demo -o demo/`
    """
    from redraft.cli.evaluate import write_evaluation
    from redraft.data.pairs import read_pairs, write_pairs
    from redraft.model import RetrieveAndEdit
    from redraft.persistence import describe_model
    from redraft.storage.output_folder import claim
    from redraft.training.fit import FitOptions

    seconds = options.seconds(budget, none="0s")
    claim(out, "demo")
    examples = read_pairs(SUPPORT / "pairs.jsonl")
    held_out = read_pairs(SUPPORT / "questions.jsonl")[:questions]
    write_pairs(examples, out / "pairs.jsonl")
    console = stdout()
    started = time.monotonic()
    with working("fitting"):
        model = RetrieveAndEdit.fit(examples, options=FitOptions(seed=SEED, log=print_note))
        model.save(out / "model")
    console.print(
        f"[bold]1. Questions → SQL[/bold]\n{len(examples)} questions of a support team with their "
        f"SQL, fitted without training in {time.monotonic() - started:.1f} s\n"
    )
    _ask(model)
    shown, table = _compare(model, held_out, seconds)
    title, facts = "Redraft on a support team's questions", describe_model(out / "model")
    write_evaluation(shown, out, model.retriever, title=title, facts=facts)
    console.print(table)
    _complete_code()
    report = out / "report.html"
    files = [f"Report  {report}"] if report.exists() else []
    command = Path(".venv/bin/redraft") if Path(".venv/bin/redraft").exists() else "redraft"
    console.print(
        "\n" + "\n".join([*files, f"Model   {out}/model", f"Pairs   {out}/pairs.jsonl"]) + "\n"
        f"Try     {command} predict {out}/model 'status of order 777' --explain --format table\n"
        f"        {command} serve {out}/model\n"
        f"        {command} fit {out}/pairs.jsonl -o mine --no-train\n"
        "The last one also takes your own pairs, as JSON Lines or as an exported table.",
        soft_wrap=True,
    )


def _ask(model: "RetrieveAndEdit") -> None:
    """Print answers to new questions, an unknown one, and one that was just added."""
    from redraft.cli._panels import abstained_line, explained_panel
    from redraft.types import as_input

    console = stdout()
    for text in ASKED:
        x = as_input(text)
        answer = model.predict_one(x)
        console.print(explained_panel(x, answer, marks=not console.is_terminal))
    answer = model.predict_one(UNKNOWN)
    console.print(f"\nAsked: {UNKNOWN}")
    if (answer.confidence or 0.0) < LEAST_CONFIDENCE:
        console.print(abstained_line(answer.confidence or 0.0, LEAST_CONFIDENCE))
    again = "Who is on call this weekend"
    answer = model.add([ADDED]).predict_one(again)
    console.print(
        f"\nAdded: {ADDED[0]}\n       {ADDED[1]}\n"
        f"Asked: {again}\n       [bold]{answer.output}[/bold]\n"
        f"confidence {100 * (answer.confidence or 0):.0f} %, and nothing was trained.\n"
    )


def _compare(
    model: "RetrieveAndEdit", held_out: "Sequence[Example]", seconds: float
) -> "tuple[Evaluation, Table]":
    """Return the evaluation of the model on held-out questions, and a table of all systems."""
    from rich.table import Table

    from redraft.cli.evaluate import evaluate
    from redraft.metrics.exact_match import is_same_output

    table = Table(title=f"{len(held_out)} held-out questions", title_justify="left")
    table.caption_justify = "left"
    table.add_column("system")
    table.add_column("right", justify="right")
    table.add_column("BLEU", justify="right")
    for name, system in _systems(model, seconds):
        if name.startswith(TRAINED) and not _has_network(system):
            table.caption = UNUSED.format(seconds)
            continue
        evaluation = evaluate(system, held_out)
        if system is model:
            shown = evaluation
        right = sum(
            answer is not None and is_same_output(answer.output, example.y)
            for answer, example in zip(evaluation.answers, held_out, strict=True)
        )
        bleu = evaluation.scores.metrics["bleu_yin"]
        table.add_row(name, f"{right} of {len(held_out)}", f"{bleu:.1f}")
    return shown, table


def _systems(model: "RetrieveAndEdit", seconds: float) -> "Iterator[tuple[str, RetrieveAndEdit]]":
    """Yield the systems to compare, the model among them; networks only if torch is there."""
    from redraft.editing.base import VerbatimEditor
    from redraft.editing.substitution import SubstitutionEditor
    from redraft.model import RetrieveAndEdit
    from redraft.training.fit import FitOptions

    examples = model.retriever.examples
    trains = seconds and find_spec("torch") is not None
    yield "nearest stored answer", RetrieveAndEdit(model.retriever, VerbatimEditor())
    substitution = SubstitutionEditor.fit(examples, model.retriever)
    yield "nearest, values substituted", RetrieveAndEdit(model.retriever, substitution)
    if trains:
        with watched("training a Seq2Seq") as on_step:
            fit = FitOptions(seed=SEED, budget=seconds, on_step=on_step, dev=())
            trained = RetrieveAndEdit.fit(examples, retriever="none", editor="neural", options=fit)
        yield f"Seq2Seq, trained for {seconds:.0f} s", trained
    yield "Redraft: retrieve, edit, choose", model
    if trains:
        with watched("training Redraft") as on_step:
            fit = FitOptions(seed=SEED, budget=seconds, on_step=on_step, train=True)
            trained = RetrieveAndEdit.fit(examples, options=fit)
        yield f"{TRAINED} for {seconds:.0f} s", trained


def _has_network(model: "RetrieveAndEdit") -> bool:
    """Return True if the default editor of a model has a network that helped on held-out pairs."""
    from redraft.editing.choosing import ChoosingEditor

    return isinstance(model.editor, ChoosingEditor) and model.editor.neural is not None


def _complete_code() -> None:
    """Print completions in functions that are cut out of the standard library."""
    from redraft.cli._panels import completed_function
    from redraft.completion.engine import CompletionEngine
    from redraft.completion.languages.base import kind_of
    from redraft.completion.project import Project, empty_model, index_project
    from redraft.mining.python_functions import as_source, standard_library

    with working("indexing the standard library"):
        project = Project({}, []).updated(standard_library()[:SOURCE_FILES])
        asked = [
            (function, lines)
            for file, name, lines in CURSORS
            for function in project.files.get(file, [])
            if function.x["name"] == name
        ]
        cut = [function for function, _ in asked]
        files = {
            name: [function for function in functions if function not in cut]
            for name, functions in project.files.items()
        }
        model, _ = index_project(empty_model(), Project(files, []))
        engine = CompletionEngine(model)
        engine.prepare()
    count = sum(kind_of(example.x) == "function" for example in model.retriever.examples)
    console = stdout()
    console.print(
        f"\n[bold]2. Your own code[/bold]\n{count:,} functions of the standard library, indexed "
        f"without training.\n{len(cut)} were cut out and are typed again. The suggestions at the "
        "cursor:"
    )
    for function, lines in asked:
        typed = "".join(f"{line}\n" for line in function.y.split("\n")[:lines])
        buffer = as_source(function.x, typed)
        file = str(function.meta["file"])
        for suggestion in engine.complete(buffer, len(buffer), 1, file=file):
            console.print(completed_function(function, typed, suggestion), soft_wrap=True)
