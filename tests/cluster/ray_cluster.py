"""A real Ray cluster of several nodes on this machine, in a process of its own.

Ray starts threads and replaces handlers of the process that starts a cluster: tests must not be
that process. `python -m tests.cluster.ray_cluster NODES` starts one, prints its address, kills
the last node when it reads a line `kill`, and stops with its input.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parent.parent.parent
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # on a machine that is busy otherwise, workers would never start
    "OMP_NUM_THREADS": "1",
}
STORE_BYTES = 80_000_000


class RayNodes:
    """A cluster that runs: one CPU a node."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.address = self._read()

    def kill_one(self) -> int:
        """Kill a node that is not the first as soon as it works; how many tasks die with it."""
        self._write("kill")
        return int(self._read())

    def kill_all(self) -> None:
        """Kill every node, the first one too."""
        self._write("kill all")
        assert self._read() == "0"

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _read(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("told: "):  # Ray may print what it likes besides
                return line.removeprefix("told: ").strip()
        raise AssertionError("the cluster did not start")


@contextmanager
def ray_nodes(count: int, **environment: str) -> Iterator[RayNodes]:
    """A new cluster of so many nodes, gone afterwards."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.cluster.ray_cluster", str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env={**os.environ, **SETTINGS, **environment},
    ) as process:
        yield RayNodes(process)
        assert process.stdin is not None
        process.stdin.close()


def tasks_of(node: Any) -> int:
    """How many of a node's workers have a shard in hand, by the titles that Ray gives them."""
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    titles = []
    for process in raylet.children(recursive=True):
        with suppress(psutil.Error):  # it may just have ended
            titles.append("".join(process.cmdline()))
    return sum("do_shard" in title or "_map_task" in title for title in titles)


def main() -> None:
    """Be the cluster."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    others = [cluster.add_node(**node, wait=False) for _ in range(int(sys.argv[1]) - 1)]
    cluster.wait_for_nodes()
    print(f"told: {cluster.address}", flush=True)
    for line in sys.stdin:
        tasks = 0
        if line == "kill\n":
            node = others.pop()
            while not (tasks := tasks_of(node)):
                time.sleep(0.01)
            cluster.remove_node(node, allow_graceful=False)
        else:
            cluster.shutdown()
        print(f"told: {tasks}", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
