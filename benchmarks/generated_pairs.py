"""Made-up documented functions, as many as are wanted: the same ones for the same seed.

Some words are frequent and most are rare, as in real code; nearly every function is another one.
"""

import random
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from redraft.types import Example

_ROWS = 4_096

_KINDS = (
    *("order", "invoice", "customer", "user", "file", "event", "token", "record", "ticket", "job"),
    *("message", "page", "session", "product", "payment", "report", "task", "sensor", "route"),
    *("image", "packet", "header", "query", "column", "branch", "commit", "module", "node", "edge"),
    *("account", "contract", "shipment", "vehicle", "patient", "visit", "sample", "batch", "layer"),
    *("signal", "frame", "window", "widget", "cursor", "buffer", "stream", "channel", "socket"),
    *("lease", "cluster", "shard", "index", "cache", "policy", "rule", "alert", "metric", "trace"),
)
_QUALITIES = (
    *("open", "closed", "pending", "recent", "stale", "active", "hidden", "shared", "remote"),
    *("local", "draft", "signed", "failed", "valid", "broken", "nested", "sorted", "unique", "raw"),
    *("daily", "monthly", "annual", "average", "total", "minimal", "maximal", "partial", "public"),
)
_ATTRIBUTES = (
    *("price", "size", "name", "status", "owner", "date", "count", "weight", "score", "label"),
    *("length", "height", "rate", "limit", "offset", "priority", "version", "region", "language"),
)
_SYLLABLES = ("ka", "to", "mi", "ren", "sol", "vu", "dar", "pel", "xo", "lin", "bra", "que", "zet")


def _skewed(words: tuple[str, ...], chance: random.Random) -> str:
    """A word, the first ones the most often."""
    return words[int(len(words) * chance.random() ** 2)]


def _name(chance: random.Random) -> str:
    """A name that few others have, such as a product's."""
    return "".join(chance.choice(_SYLLABLES) for _ in range(chance.randint(2, 5)))


Template = tuple[str, str, str, str]
"""Docstring, name, arguments and body, to be filled with the words of a function."""

_TEMPLATES: tuple[Template, ...] = (
    (
        "Return the {quality} {kind}s of {own} whose {attribute} is at least {number}.",
        "{quality}_{kind}s_of_{own}",
        "{kind}s, least={number}",
        "return [{kind} for {kind} in {kind}s if {kind}.{attribute} >= least]",
    ),
    (
        "Sum the {attribute} of every {quality} {kind} that {own} has.",
        "sum_{quality}_{kind}_{attribute}",
        "{own}",
        "total = 0\nfor {kind} in {own}.{kind}s:\n    if {kind}.is_{quality}:\n"
        "        total += {kind}.{attribute}\nreturn total",
    ),
    (
        "Find the {kind} with this {attribute} in {own}, or the {quality} one.",
        "find_{own}_{kind}",
        "{attribute}, default=None",
        "for {kind} in {own}:\n    if {kind}.{attribute} == {attribute}:\n        return {kind}\n"
        "return default",
    ),
    (
        "Read {quality} {kind}s from a file of {own} and keep the first {number}.",
        "read_{own}_{kind}s",
        "path",
        "with open(path) as stream:\n    lines = stream.readlines()[:{number}]\n"
        "return [parse_{kind}(line) for line in lines]",
    ),
    (
        "Write a {quality} {kind} to {own} under its {attribute}.",
        "save_{quality}_{kind}",
        "{kind}, {own}",
        "key = {kind}.{attribute}\nif key in {own}:\n"
        '    raise KeyError(f"{kind} {{key}} is there already")\n{own}[key] = {kind}',
    ),
    (
        "Group {kind}s by {attribute} and count those that are {quality} for {own}.",
        "count_{kind}s_by_{attribute}",
        "{kind}s",
        "counts = {{}}\nfor {kind} in {kind}s:\n    if {kind}.{quality}:\n"
        "        key = {kind}.{attribute}\n        counts[key] = counts.get(key, 0) + 1\n"
        "return counts",
    ),
    (
        "Send the {quality} {kind} to {own} and try again {number} times.",
        "send_{kind}_to_{own}",
        "{kind}, client",
        "for attempt in range({number}):\n    answer = client.post('{own}', {kind}.{attribute})\n"
        "    if answer.ok:\n        return answer\nreturn None",
    ),
    (
        "The {attribute} of a {kind} in {own} as a share of {number}, {quality} ones left out.",
        "{kind}_{attribute}_share",
        "{kind}",
        "if {kind}.is_{quality}:\n    return 0.0\nreturn {kind}.{attribute} / {number}",
    ),
)


def pairs(*, seed: int = 0) -> Iterator[Example]:
    """Functions without end."""
    chance = random.Random(seed)
    while True:
        words: dict[str, object] = {
            "kind": _skewed(_KINDS, chance),
            "quality": _skewed(_QUALITIES, chance),
            "attribute": _skewed(_ATTRIBUTES, chance),
            "own": _name(chance),
            "number": chance.randint(1, 999),
        }
        docstring, name, arguments, body = (
            each.format(**words) for each in chance.choice(_TEMPLATES)
        )
        x = {"docstring": docstring, "name": name, "arguments": arguments}
        yield Example(x, body, {"file": f"{words['kind']}s.py"})


def write_parquet(path: Path, count: int, *, watch: Callable[[int], None] = lambda _: None) -> None:
    """So many functions as a Parquet file, written some thousand at a time."""
    import pyarrow
    from pyarrow import parquet

    names = ("x.docstring", "x.name", "x.arguments", "y", "meta.file")
    schema = pyarrow.schema([(name, pyarrow.string()) for name in names])
    coming, written = islice(pairs(), count), 0
    with parquet.ParquetWriter(path, schema) as writer:
        while part := list(islice(coming, _ROWS)):
            columns = [
                *([each.x[name[2:]] for each in part] for name in names[:3]),
                [each.y for each in part],
                [each.meta["file"] for each in part],
            ]
            writer.write_table(pyarrow.table(columns, schema=schema))
            written += len(part)
            watch(written)
