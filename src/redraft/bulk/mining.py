"""Sources by the million to pairs: each row is a Python file, each output row a function."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, ClassVar

from redraft.bulk.shards import Row
from redraft.bulk.work import Result, Worker
from redraft.data.mined import RULES
from redraft.data.python_functions import mine_content
from redraft.data.rows import BadRow


@dataclass(frozen=True)
class Mining:
    """The documented functions of sources, as JSON lines of pairs."""

    name: ClassVar[str] = "mine"
    ending: ClassVar[str] = ".jsonl"

    def identity(self) -> dict[str, Any]:
        """The rules of mining."""
        return {"rules": RULES}

    def prepare(self) -> Worker:
        """Nothing has to be loaded."""
        return mine_rows


def mine_rows(rows: Sequence[Row]) -> Result:
    """The pairs of the sources; one that is not Python 3 is passed over."""
    lines: list[str] = []
    skipped: list[str] = []
    for row in rows:
        found = mine_content(**_source(row))
        if isinstance(found, BadRow):
            skipped.append(str(found))
            continue
        lines += [json.dumps(example.to_json(), ensure_ascii=False) + "\n" for example in found]
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
    """The folder at the top of the tree that a source stands in, or its own name."""
    folders = [each for each in PurePosixPath(name).parts if each not in ("/", "//", "..")]
    return folders[0].removesuffix(".py") if folders else name
