"""`redraft config`: the settings that `fit` would use, as a TOML file with comments."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from redraft.cli import _options as options
from redraft.cli._options import XColumns, YColumn, argument


def command(
    pairs: Annotated[Path | None, argument("Pairs to choose the settings for.")] = None,
    preset: Annotated[
        str, typer.Option(help="few, many, projects or paper, in place of the one for the pairs.")
    ] = "",
    x_columns: XColumns = "",
    y_column: YColumn = "y",
) -> None:
    """Print every setting that `fit` would use for these pairs, with a comment on each.

    Save the file, change it, and give it to `fit --config`. It may leave out any setting.

    Examples: `redraft config pairs.jsonl > settings.toml`, `redraft config --preset paper`
    """
    from redraft.config import presets
    from redraft.config.reference import commented_toml
    from redraft.training import editor_config, retriever_config

    if preset:
        presets.preset(preset, 1)  # a wrong name is an error before the pairs are read
    if pairs is None:
        preset = preset or "few"
        examples = presets.TYPICAL[preset]
        basis = f"for {examples:,} training examples"
    else:
        chosen, examples = _choose(pairs, x_columns, y_column)
        preset = preset or chosen
        basis = f"for the {examples:,} training examples of {pairs.name}"
    settings = {
        "retriever": retriever_config.preset_config(preset, examples),
        "editor": editor_config.preset_config(preset, examples),
    }
    title = f"redraft fit --config: preset {preset}, {basis}"
    typer.echo(commented_toml(settings, title=title), nl=False)


def _choose(pairs: Path, x_columns: str, y_column: str) -> tuple[str, int]:
    """Return the preset that `fit` takes for the pairs, and how many it trains on."""
    from redraft.config.presets import choose
    from redraft.data.pairs import read_numbered
    from redraft.errors import PairsError
    from redraft.storage.disk import gather
    from redraft.training.editor_config import count_projects
    from redraft.training.epoch_sampling import vocabulary_sample
    from redraft.training.fit import FitOptions, Split

    numbered = read_numbered(pairs, options.columns(x_columns, y_column))
    with TemporaryDirectory(prefix="redraft-") as folder:  # many pairs do not fit into memory
        examples = gather((example for _, example in numbered), Path(folder))
        if not examples:
            raise PairsError(f"{pairs}: no pairs; give at least one")
        train = Split.of(examples, FitOptions()).train
        return choose(len(train), projects=count_projects(vocabulary_sample(train))), len(train)
