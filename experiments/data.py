"""Get the data of the experiments: from the package index, or from a folder that you downloaded.

python -m experiments.data corpus -o data/python       functions of pinned packages, by pip
python -m experiments.data messy -o data/messy         a support team's pairs, made from a seed
python -m experiments.data hearthstone                 says what to download
python -m experiments.data hearthstone --from card2code/ -o data/hearthstone
python -m experiments.data geography --from text2sql-data/ -o data/pairs

Experiments take the folder that is written here as --data.
"""

import json
import shutil
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.lib.runner import one_line_errors
from redraft.cli._console import print_note
from redraft.data.pairs import read_pairs, write_pairs
from redraft.data.split import split
from redraft.errors import ConfigError, PairsError
from redraft.types import TEXT_FIELD, Example

SPLITS = ("train", "dev", "test")
PACKAGES = Path(__file__).parent / "autocomplete" / "packages.txt"

Write = Callable[[Path, Path], None]
"""Writes the data in a downloaded folder to another folder."""


@dataclass(frozen=True)
class Download:
    """Data that has to be downloaded by hand: its public repository, its file there, a writer."""

    repository: str
    file: str
    licence: str
    write: Write


def write_cards(source: Path, out: Path) -> None:
    """Copy the parallel files of Hearthstone, after reading each pair of them."""
    found = _find(source, "train_hs.in")
    out.mkdir(parents=True, exist_ok=True)
    for name in SPLITS:
        path = found.with_name(f"{name}_hs.in")
        if not path.exists():
            print_note(f"{path.name} is not in {found.parent}; left out")
            continue
        count = len(read_pairs(path))
        for part in (path, path.with_suffix(".out")):
            shutil.copyfile(part, out / part.name)
        print(f"{out / path.name}: {count} cards")


def write_queries(name: str) -> Write:
    """Return the writer of a set of text2sql-data, by question and by query."""

    def write(source: Path, out: Path) -> None:
        path = _find(source, f"{name}.json")
        try:
            templates = json.loads(path.read_text(encoding="utf-8"))
            rows = list(_filled(templates))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise PairsError(f"{path}: not a file of text2sql-data ({error!r})") from error
        for kind in ("question", "query"):
            for part in SPLITS:
                chosen = [example for splits, example in rows if splits[kind] == part]
                _write(chosen, out / f"{name}-{kind}" / f"{part}.jsonl")

    return write


def _filled(templates: Sequence[Any]) -> Iterator[tuple[Mapping[str, str], Example]]:
    """Yield each question with its first query, values filled in, and the splits it belongs to."""
    for number, template in enumerate(templates):
        defaults = {one["name"]: one["example"] for one in template["variables"]}
        for sentence in template["sentences"]:
            values = {**defaults, **sentence["variables"]}
            x, y = sentence["text"], template["sql"][0]
            # the longest name first: state_name1 is the beginning of state_name10
            for name in sorted(values, key=len, reverse=True):
                x, y = x.replace(name, values[name]), y.replace(name, values[name])
            splits = {"question": sentence["question-split"], "query": template["query-split"]}
            yield splits, Example({TEXT_FIELD: x}, y, {"query": number})


def write_commands(source: Path, out: Path) -> None:
    """Write the pairs of NL2Bash, split so that no command is in two parts."""
    path = _find(source, "all.nl")
    questions, commands = (
        file.read_text(encoding="utf-8").splitlines() for file in (path, path.with_suffix(".cm"))
    )
    if len(questions) != len(commands):
        raise PairsError(f"{path}: {len(questions)} lines, but {len(commands)} in all.cm")
    pairs = [
        Example({TEXT_FIELD: x.strip()}, y.strip(), {"command": y.strip()})
        for x, y in zip(questions, commands, strict=True)
        if x.strip() and y.strip()
    ]
    parts = split(pairs, {"train": 0.88, "dev": 0.06, "test": 0.06}, seed=0, by="command")
    for name, part in parts.items():
        _write([Example(one.x, one.y) for one in part], out / "nl2bash" / f"{name}.jsonl")


def _find(source: Path, name: str) -> Path:
    """Return the file `name` anywhere below `source`."""
    found = sorted(source.rglob(name)) if source.is_dir() else []
    if not found:
        raise ConfigError(f"--from {source}: has no {name}; name the folder of the repository")
    return found[0]


def _write(examples: Sequence[Example], path: Path) -> None:
    print(f"{path}: {write_pairs(examples, path)} pairs")


TEXT2SQL = "jkkummerfeld/text2sql-data"
DOWNLOADS = {
    "hearthstone": Download(
        "google-deepmind/card2code", "third_party/hearthstone/train_hs.in", "MIT", write_cards
    ),
    **{
        name: Download(TEXT2SQL, f"data/{name}.json", licence, write_queries(name))
        for name, licence in {
            "geography": "see the repository",
            "scholar": "see the repository",
            "advising": "CC BY 4.0",
            "atis": "see the repository",
        }.items()
    },
    "nl2bash": Download("TellinaTool/nl2bash", "data/bash/all.nl", "MIT", write_commands),
}
MADE = ("corpus", "messy")
"""Data that is fetched by pip or made here."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the data that the command line asks for, or say what to download."""
    options = ArgumentParser(
        prog="python -m experiments.data",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    options.add_argument("name", choices=[*MADE, *DOWNLOADS])
    options.add_argument("--from", dest="source", type=Path, help="folder that you downloaded")
    options.add_argument("-o", "--out", type=Path, help="folder to write to")
    chosen = options.parse_args(arguments)
    with one_line_errors():
        if chosen.name in DOWNLOADS and chosen.source is None:
            raise ConfigError(_advice(chosen.name))
        if chosen.out is None:
            raise ConfigError("-o is missing: the folder to write to")
        if chosen.name in MADE:
            _make(chosen.name, chosen.out)
        else:
            DOWNLOADS[chosen.name].write(chosen.source, chosen.out)


def _advice(name: str) -> str:
    download = DOWNLOADS[name]
    folder = download.repository.partition("/")[2]
    return (
        f"{name}: clone the public repository {download.repository} (licence: {download.licence}; "
        f"it has {download.file}), then: python -m experiments.data {name} --from {folder}/ -o data"
    )


def _make(name: str, out: Path) -> None:
    """Run the module that fetches or makes the data."""
    if name == "corpus":
        from experiments.corpus.__main__ import main as write_corpus

        write_corpus([str(PACKAGES), "-o", str(out)])
    else:
        from experiments.messy.__main__ import main as write_messy

        write_messy(["-o", str(out)])


if __name__ == "__main__":
    main()
