"""The Ray driver process: reads a task from stdin, writes outcomes to stdout as JSON lines.

The only module that imports Ray. When stdin closes, the parent has exited or cancelled the job:
the driver leaves the cluster, and Ray cancels its running tasks. A task that Ray considers lost may
run twice; both runs write the same bytes to separate temporary files, and replace the output
atomically.
"""

import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from typing import IO, Any

from redraft.bulk.job import write_shard
from redraft.bulk.ray_cluster import ANY, LOCAL
from redraft.bulk.shards import shard_from_json
from redraft.errors import PairsError, RedraftError

_STORE_BYTES = 100_000_000
"""Object store size of a local Ray cluster: it only holds descriptions of shards."""


def do_shard(batch: dict[str, Any], *, work: str, ending: str, folder: str) -> dict[str, Any]:
    """Process the shard of a one-row batch; errors are returned as an outcome."""
    shard = shard_from_json(json.loads(str(batch["shard"][0])))
    try:
        outcome = write_shard(shard, work, ending, folder)
    except PairsError as error:
        return _failed(str(error))
    except RedraftError as error:
        return _failed(f"{error} (on {socket.gethostname()})")
    except Exception as error:
        # an exception would terminate the driver without saying which shard failed
        logging.exception("shard %d", shard.number)
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        place = f"{shard.pieces[0].file}:{shard.pieces[0].first}"
        return _failed(f"{place}: processing the shard that starts here failed ({reason})")
    return {"message": [json.dumps(asdict(outcome))]}


def _failed(reason: str) -> dict[str, Any]:
    return {"message": [json.dumps({"error": reason})]}


def connect(address: str) -> None:
    """Join the cluster at `address`; for `ANY`, start a local one if none is running."""
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


def outcomes(request: dict[str, Any]) -> Iterator[str]:
    """Process the shards of `request` on the cluster and yield messages as they complete."""
    import ray.data

    shards = [{"shard": json.dumps(shard)} for shard in request["shards"]]
    arguments = {name: request[name] for name in ("work", "ending", "folder")}
    done = ray.data.from_items(shards, override_num_blocks=len(shards)).map_batches(
        do_shard, batch_size=1, fn_kwargs=arguments, num_cpus=1
    )
    for row in done.iter_rows():
        yield str(row["message"])


def leave_with_parent(parent: IO[str]) -> None:
    """Exit when the parent closes the pipe or is killed."""

    def wait() -> None:
        parent.read()
        import ray

        ray.shutdown()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    """Run the task read from stdin."""
    # Ray prints to stdout: write results to a duplicate, and redirect stdout to stderr
    results = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    request = json.loads(sys.stdin.readline())
    leave_with_parent(sys.stdin)
    connect(request["address"])
    results.write(json.dumps({"connected": True}) + "\n")
    import ray

    try:
        for message in outcomes(request):
            results.write(message + "\n")
        results.write(json.dumps({"done": True}) + "\n")
    except ray.exceptions.RayTaskError as error:
        # the cluster is alive, but a worker cannot start, for example for a missing package
        logging.exception("a worker")
        reason = f"{type(error.cause).__name__}: {error.cause}".splitlines()[0]
        text = (
            f"{request['address']}: a worker cannot start ({reason}); "
            "install the same packages on all machines"
        )
        results.write(json.dumps({"error": text}) + "\n")
    results.flush()
    ray.shutdown()


if __name__ == "__main__":
    main()
