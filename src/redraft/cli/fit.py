"""`redraft fit`: pairs to a model."""

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from redraft.cli import _lm
from redraft.cli import _options as options
from redraft.cli._console import emit
from redraft.cli._options import PairsArgument, SkipBad, StoreOption, XColumns, YColumn, ranged
from redraft.config.ranges import SEED, shorten
from redraft.config.toml import DEFAULT_EDITOR, DEFAULT_RETRIEVER
from redraft.errors import ConfigError


def command(
    pairs: PairsArgument,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the model.")],
    retriever: Annotated[
        str,
        typer.Option(
            help="bm25, bow or none; reranked: BM25's nearest, the easiest to edit first, learned "
            "from edits of held-out pairs; encoder: BM25 and --encoder, fused by rank; auto: the "
            "one of them whose edits are best; task or input, which train a network; the name of "
            "an installed one, or package.module:Class."
        ),
    ] = DEFAULT_RETRIEVER,
    encoder: Annotated[
        Path | None,
        typer.Option(
            help="Sentence encoder for --retriever encoder or auto: a folder of "
            "sentence-transformers with BERT's weights or a model.onnx, or an ONNX file. "
            "Needs redraft[encoders]."
        ),
    ] = None,
    editor: Annotated[
        str,
        typer.Option(
            help="choosing: all editors propose, a chooser picks; substitution, which needs no "
            "training; neural, the network alone; lm, the language model of --lm alone; verbatim, "
            "the prototype unchanged; the name of an installed one, or package.module:Class."
        ),
    ] = DEFAULT_EDITOR,
    train: Annotated[
        bool,
        typer.Option(
            "--train/--no-train",
            help="Train a network as well, after the first model is saved; it is used only if it "
            "helps on held-out pairs. Needs redraft[neural].",
        ),
    ] = True,
    budget: Annotated[
        str, typer.Option(help="Take no longer than this, such as 90s, 10m or 1h.")
    ] = "",
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML with settings for [retriever.training], [editor.network] and so on."
        ),
    ] = None,
    seed: Annotated[int, ranged(SEED, "The same seed gives the same weights.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    x_columns: XColumns = "",
    y_column: YColumn = "y",
    skip_bad: SkipBad = None,
    store: StoreOption = None,
    lm: _lm.LmOption = None,
    lm_model: _lm.LmModel = None,
    lm_remote: _lm.LmRemote = False,
    lm_chat: _lm.LmChat = False,
    lm_shots: _lm.LmShots = 5,
    lm_context: _lm.LmContext = 2048,
    lm_template: _lm.LmTemplate = None,
    lm_time_limit: _lm.LmTimeLimit = _lm.TIME_LIMIT,
    lm_requests: _lm.LmRequests = None,
) -> None:
    """Fit a model on pairs and save it to a folder.

    A first model that needs no training is saved after seconds: it retrieves similar examples,
    substitutes what differs, and chooses with a calibrated confidence. Then a network is trained,
    and replaces that model if it answers held-out pairs better. `--no-train` stops before it.

    Sizes and steps depend on the number of pairs; a TOML file changes them. A tenth of the pairs (a
    fifth of a few hundred) is held out of training to choose the checkpoint and to judge the
    network, and retrieved from afterwards.

    Above 100,000 pairs the examples stay on disk, and each epoch draws a sample of them.

    The folder holds plain data files and may be copied anywhere. A folder that holds a model is
    replaced in one step. A training that Ctrl-C or a kill interrupted resumes when the same command
    is run again; until it is complete, its state is in OUT.training.

    On several processes or machines: `torchrun --nproc-per-node 2 --max-restarts 3 -m redraft fit`
    and the same arguments. Each process takes a share of every batch, and the weights are those of
    one process except for rounding and dropout; if a worker is lost, all resume from the last save.

    With `--store` the examples and their vectors go to PostgreSQL, into a schema of this model
    alone, and the folder holds the weights. Give the same `--store` to the other commands.

    With `--lm` a language model proposes as well, with similar examples in its prompt, and is
    used if its answers to at most 60 held-out pairs help. The address is not saved: give it to the
    other commands too, and without it they answer without the language model.

    Examples: `redraft fit pairs.jsonl -o model/ --no-train`,
    `redraft fit pairs.jsonl -o model/ --budget 10m`,
    `redraft fit pairs.jsonl -o model/ --retriever auto --editor substitution`,
    `redraft fit pairs.jsonl -o model/ --lm http://localhost:11434/v1 --lm-model llama3.2`
    """
    from redraft.cli._progress import progress_reporter
    from redraft.config.toml import read_toml
    from redraft.model import RetrieveAndEdit
    from redraft.persistence import describe_model
    from redraft.postgres.store import check
    from redraft.storage.artifact_writer import ensure_writable
    from redraft.storage.disk import gather
    from redraft.storage.locking import exclusive
    from redraft.training.fit import FitOptions, time_left
    from redraft.training.process_group import connected
    from redraft.training.run_folder import discard_run

    started = time.monotonic()
    ensure_writable(out)
    if store is not None:
        check(store)  # before anything is trained
    _check_lm(lm, editor)
    client = None
    if lm is not None:  # an address where nothing answers is an error before anything is read
        client = _lm.LmOptions(lm, lm_remote, lm_time_limit, lm_requests).client()
        lm_model = client.find_model(lm_model)
    prompt = _lm.PromptOptions(lm_model, lm_chat, lm_shots, lm_context, lm_template)
    limit = options.seconds(budget)
    settings = options.part_settings(read_toml(config), config) if config else {}
    run = out.with_name(out.name + ".training")
    with ExitStack() as stack:
        workers = stack.enter_context(connected(os.environ, device))
        speak = stack.enter_context(progress_reporter(workers))
        if workers.is_main:  # nobody may add to a model that is about to be replaced
            stack.enter_context(exclusive(out))
        with speak.working(f"reading {pairs.name}"):
            columns = options.columns(x_columns, y_column)
            examples = gather(options.read_examples(pairs, columns, skip_bad=skip_bad), run)

        def save_first(first: "RetrieveAndEdit") -> None:
            first.save(out, store=store)
            speak.print_note(f"{out}: ready to use; training goes on (Ctrl-C keeps this model)")

        asked = _lm.lm_editor(client, prompt, examples) if client is not None else None
        chosen = asked if editor == "lm" and asked is not None else editor
        with speak.watched("training") as on_step:
            fit = FitOptions(
                settings,
                settings_file=config,
                seed=seed,
                device=device,
                folder=run,
                on_step=on_step,
                budget=time_left(limit, time.monotonic() - started),
                log=speak.print_note,
                workers=workers,
                train=train,
                on_ready=save_first,
                lm=asked if chosen is editor else None,
                encoder=encoder,
            )
            model = RetrieveAndEdit.fit(examples, retriever=retriever, editor=chosen, options=fit)
        if workers.is_main:
            with speak.working("saving"):
                model.save(out, store=store)
                del model, examples  # large ones are in files of the run's folder
                discard_run(run)
            emit(describe_model(out, store=store))


def _check_lm(lm: str | None, editor: str) -> None:
    """Raise a ConfigError for a language model that no editor asks, or the reverse."""
    if lm is not None and editor not in ("choosing", "lm"):
        raise ConfigError(f"--lm: needs --editor choosing or lm, not {shorten(editor)}")
    if lm is None and editor == "lm":
        raise ConfigError("--editor lm: needs the address of a language model; add --lm ADDRESS")
