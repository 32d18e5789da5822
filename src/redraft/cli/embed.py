"""`redraft embed`: the vectors of many inputs."""

from typing import Annotated

import typer

from redraft.cli.bulk import ROWS, BulkCommand, RayOption, RowsOption, run_job
from redraft.cli.options import ModelArgument, StoreOption

cls = BulkCommand


def command(
    model: ModelArgument,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="JSON lines (rows with x) or Parquet (columns x, or x.NAME): files, folders of "
            "them, patterns, or addresses such as s3://bucket/pairs/*.parquet.",
            show_default=False,
        ),
    ],
    out: Annotated[
        str,
        typer.Option("-o", "--out", metavar="FOLDER", help="Folder or address for the shards."),
    ],
    rows: RowsOption = ROWS,
    ray: RayOption = None,
    store: StoreOption = None,
) -> None:
    """Give every input the vector by which the model's learned retriever finds examples.

    Writes Parquet shards of `--rows` rows, in the order of the input: `file` and `line` say where
    a row stands, `vector` has its 32-bit floats, of length 1. A shard is written in full or not
    at all. Stopped or killed, the same command goes on from the shards that are there; how many
    machines work on it changes no byte.

    Examples: `redraft embed model/ pairs/*.jsonl -o vectors/`,
    `redraft embed model/ s3://bucket/pairs -o s3://bucket/vectors --ray head:6379`
    """
    from redraft.bulk.addresses import absolute
    from redraft.bulk.embedding import Embedding
    from redraft.bulk.shards import cut_files

    work = Embedding(absolute(str(model)), store)
    run_job(work, lambda: cut_files(inputs, rows, without=out), out, ray=ray)
