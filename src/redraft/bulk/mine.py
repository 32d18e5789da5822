"""Mine Python sources in bulk: each input row is a Python file, each output row a function."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, ClassVar

from redraft.bulk.shards import Row
from redraft.bulk.work import Result, ShardWorker
from redraft.data.rows import BadRow
from redraft.mining.python_functions import RULES, mine_content


@dataclass(frozen=True)
class MineJob:
    """Extract the documented functions of sources; writes JSON lines of pairs."""

    name: ClassVar[str] = "mine"
    ending: ClassVar[str] = ".jsonl"

    def identity(self) -> dict[str, Any]:
        """Return the version of the mining rules."""
        return {"rules": RULES}

    def prepare(self) -> ShardWorker:
        """Return the worker; there is nothing to load."""
        return ShardWorker(mine_rows, _source)


def mine_rows(rows: Sequence[Row]) -> Result:
    """Return the pairs of the sources; sources that are not Python 3 are skipped."""
    lines: list[str] = []
    skipped: list[str] = []
    for row in rows:
        mined = mine_content(**_source(row))
        if isinstance(mined, BadRow):
            skipped.append(str(mined))
            continue
        lines += [json.dumps(example.to_json(), ensure_ascii=False) + "\n" for example in mined]
    content = "".join(lines).encode(errors="backslashreplace")
    return Result(content, len(lines), tuple(skipped))


def _source(row: Row) -> dict[str, Any]:
    value = row.value
    if not isinstance(value, dict) or not isinstance(value.get("content"), str | bytes):
        raise row.error("expected an object with the key content, the text of a Python file")
    name = str(value.get("file") or f"{row.file}:{row.line}")
    package = value.get("package") or _top(name)
    return {"content": value["content"], "name": name, "package": str(package)}


def _top(name: str) -> str:
    """Return the top-level folder of a source path, or the file's name without `.py`."""
    parts = [part for part in PurePosixPath(name).parts if part not in ("/", "//", "..")]
    return parts[0].removesuffix(".py") if parts else name
