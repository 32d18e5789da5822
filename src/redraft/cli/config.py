"""`redraft config`: the settings that `fit` would use, as a TOML file with comments."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from redraft.cli import _options as options
from redraft.cli._options import XColumns, YColumn

if TYPE_CHECKING:
    from redraft.config.reference import Parts


def command(
    pairs: Annotated[
        Path | None, typer.Argument(help="Pairs to choose the settings for.", show_default=False)
    ] = None,
    preset: Annotated[
        str, typer.Option(help="few, many, projects or paper, in place of the one for the pairs.")
    ] = "",
    x_columns: XColumns = "",
    y_column: YColumn = "y",
    markdown: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Print every setting that `fit` would use for these pairs, with a comment on each.

    Save the file, change it, and give it to `fit --config`. It may leave out any setting.

    Examples: `redraft config pairs.jsonl > settings.toml`, `redraft config --preset paper`
    """
    from redraft.config.presets import TYPICAL
    from redraft.config.presets import preset as find_preset
    from redraft.config.reference import commented_toml, settings_page

    if markdown:
        typer.echo(settings_page(_defaults()), nl=False)
        return
    if preset:
        find_preset(preset, 1)  # a wrong name is an error before the pairs are read
    if pairs is None:
        preset = preset or "few"
        examples, basis = TYPICAL[preset], f"for {TYPICAL[preset]:,} training examples"
    else:
        chosen, examples = _choose(pairs, x_columns, y_column)
        preset = preset or chosen
        basis = f"for the {examples:,} training examples of {pairs.name}"
    title = f"redraft fit --config: preset {preset}, {basis}"
    typer.echo(commented_toml(_settings(preset, examples), title=title), nl=False)


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


def _settings(preset: str, examples: int) -> "Parts":
    from redraft.config import presets
    from redraft.config.toml import build

    tables = presets.preset(preset, examples)
    return {
        part: build(type(default), tables[part], where=f"preset {preset}")
        for part, default in _defaults().items()
    }


def _defaults() -> "Parts":
    from redraft.training.editor_config import EditorConfig
    from redraft.training.retriever_config import RetrieverConfig

    return {"retriever": RetrieverConfig(), "editor": EditorConfig()}


if __name__ == "__main__":
    typer.run(command)
