"""`redraft embed`: compute the embeddings of many inputs."""

from typing import Annotated

import typer

from redraft.cli._bulk import ROWS, BulkCommand, RayOption, RowsOption, run_job
from redraft.cli._options import ModelArgument, StoreOption, argument

cls = BulkCommand


def command(
    model: ModelArgument,
    inputs: Annotated[
        list[str],
        argument(
            "JSON lines (rows with x) or Parquet (columns x, or x.NAME): files, folders, glob "
            "patterns, or addresses such as s3://bucket/pairs/*.parquet.",
            "INPUT",
        ),
    ],
    out: Annotated[
        str, typer.Option("-o", "--out", metavar="FOLDER", help="Output folder or address.")
    ],
    rows: RowsOption = ROWS,
    ray: RayOption = None,
    store: StoreOption = None,
) -> None:
    """Compute the embedding of every input with the model's learned retriever.

    Writes Parquet shards of `--rows` rows in input order. Columns: `file` and `line`, the origin
    of the row, and `vector`, a unit vector of 32-bit floats. Shards are written atomically: after
    an interruption the same command resumes with the missing shards. The output does not depend on
    the number of machines, byte for byte.

    Examples: `redraft embed model/ pairs/*.jsonl -o vectors/`,
    `redraft embed model/ s3://bucket/pairs -o s3://bucket/vectors --ray head:6379`
    """
    from redraft.bulk.addresses import absolute
    from redraft.bulk.embed import EmbedJob
    from redraft.bulk.shards import cut_files

    work = EmbedJob(absolute(str(model)), store)
    run_job(work, lambda: cut_files(inputs, rows, without=out), out, ray=ray)
