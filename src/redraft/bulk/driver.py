"""The process that drives Ray: reads a task from stdin, tells outcomes on stdout as JSON lines.

The only file that knows Ray. When its input ends, its parent is gone or wants no more: it leaves
the cluster, and Ray ends the tasks that are under way. A task that was given up for lost may run
twice; both write the same bytes under names of their own, and each replaces the file as a whole.
"""

import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator
from typing import IO, Any

from redraft.bulk.cluster import ANY, LOCAL
from redraft.bulk.job import Task, write_shard
from redraft.bulk.shards import Shard
from redraft.errors import PairsError, RedraftError

_STORE_BYTES = 100_000_000
"""Of shared memory, where Ray is started here: only the names of shards pass through it."""


def do_shard(batch: dict[str, Any], *, work: str, ending: str, folder: str) -> dict[str, Any]:
    """The part of a worker, for a batch of one: a user's mistake is an outcome too."""
    shard = Shard.from_json(json.loads(str(batch["shard"][0])))
    try:
        outcome = write_shard(Task(work, ending, folder, ()), shard)
    except PairsError as error:
        return _failed(str(error))
    except RedraftError as error:
        return _failed(f"{error} (on {socket.gethostname()})")
    except Exception as error:
        # Ray would let it end the driver, without a word to whom it happened
        logging.exception("shard %d", shard.number)
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        place = f"{shard.pieces[0].file}:{shard.pieces[0].first}"
        return _failed(f"{place}: the work on the shard that begins here failed ({reason})")
    told = {"number": outcome.number, "rows": outcome.rows, "skipped": outcome.skipped}
    return {"told": [json.dumps(told)]}


def _failed(reason: str) -> dict[str, Any]:
    return {"told": [json.dumps({"error": reason})]}


def connect(address: str) -> None:
    """Join the cluster, or start one of this machine's cores if none is named and none runs."""
    import ray

    quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address != LOCAL:
        try:
            ray.init(address=address, **quiet)
            return
        except ConnectionError:
            if address != ANY:
                raise
    ray.init(address=LOCAL, include_dashboard=False, object_store_memory=_STORE_BYTES, **quiet)


def outcomes(asked: dict[str, Any]) -> Iterator[str]:
    """What becomes of each shard, in the order in which they are done."""
    import ray.data

    shards = [{"shard": json.dumps(shard)} for shard in asked["shards"]]
    told = {name: asked[name] for name in ("work", "ending", "folder")}
    done = ray.data.from_items(shards, override_num_blocks=len(shards)).map_batches(
        do_shard, batch_size=1, fn_kwargs=told, num_cpus=1
    )
    for row in done.iter_rows():
        yield str(row["told"])


def leave_with_parent(parent: IO[str]) -> None:
    """Leave when the parent closes the pipe, or is killed."""

    def wait() -> None:
        parent.read()
        import ray

        ray.shutdown()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    """Do the task that stdin tells of."""
    # Ray prints what it likes where it likes: results have a pipe of their own
    results = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    asked = json.loads(sys.stdin.readline())
    leave_with_parent(sys.stdin)
    connect(asked["address"])
    results.write(json.dumps({"connected": True}) + "\n")
    import ray

    try:
        for told in outcomes(asked):
            results.write(told + "\n")
        results.write(json.dumps({"done": True}) + "\n")
    except ray.exceptions.RayTaskError as error:
        # it is not the cluster that went away: a machine cannot begin, for want of a package
        logging.exception("a worker")
        reason = f"{type(error.cause).__name__}: {error.cause}".splitlines()[0]
        told = (
            f"{asked['address']}: a machine cannot do the work ({reason}); install the same there"
        )
        results.write(json.dumps({"error": told}) + "\n")
    results.flush()
    ray.shutdown()


if __name__ == "__main__":
    main()
