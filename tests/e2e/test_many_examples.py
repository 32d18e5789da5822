"""Many examples, which are kept in files, are answered as they are from memory."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import NoneType

import pytest
from typer.testing import CliRunner, Result

from redraft import Example, RetrieveAndEdit
from redraft.cli.app import app
from redraft.data.pairs import write_pairs
from redraft.errors import NoAnswerError
from redraft.server.served_model import ServedModel
from redraft.storage import disk as filed
from redraft.storage.disk import DiskExamples, gather
from redraft.training import fit_neural
from redraft.training.editor_config import EditorConfig
from redraft.training.fit import FitOptions
from redraft.training.fit_neural import prototype_source
from tests.greetings import NAMES, SETTINGS, greeting, settings

ASKED = [{"text": f"greet {name}"} for name in ("Ada", "Nobody", "Turing")]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    write_pairs([greeting(name) for name in NAMES], tmp_path / "pairs.jsonl")
    return tmp_path / "pairs.jsonl"


def run(*arguments: object) -> Result:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.stderr
    return done


def answers(model: Path) -> list[list[tuple[str, float]]]:
    loaded = RetrieveAndEdit.load(model)
    return [
        [(each.example.y, each.distance) for each in found]
        for found in loaded.retriever.retrieve(ASKED, 4)
    ]


def examples(model: Path) -> list[Example]:
    return list(RetrieveAndEdit.load(model).retriever.examples)


@pytest.mark.parametrize("retriever", ["bm25", "lexical", "none"])
def test_every_verb_gives_what_it_gives_in_memory(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retriever: str
) -> None:
    more = tmp_path / "more.jsonl"
    write_pairs([greeting("Nobody"), greeting("Somebody")], more)
    told = {}
    for many in (100, 12):
        monkeypatch.setattr(filed, "IN_MEMORY_LIMIT", many)
        model, parts = tmp_path / f"model-{many}", ("--retriever", retriever)
        fitted = run("fit", pairs, "-o", model, *parts, "--editor", "verbatim")
        held = RetrieveAndEdit.load(model).retriever.examples
        assert isinstance(held, DiskExamples) == (many == 12)
        seen = [json.loads(fitted.stdout) | {"model": "", "bytes": 0}, answers(model)]
        run("evaluate", model, pairs, "-o", tmp_path / f"report-{many}")
        seen.append((tmp_path / f"report-{many}" / "scores.json").read_text())
        run("add", model, more)
        seen += [answers(model), [each.to_json() for each in examples(model)]]
        run("remove", model, "--where", "initial=N")
        seen += [answers(model), [each.to_json() for each in examples(model)]]
        told[many] = seen
        assert not list(tmp_path.rglob(".staging-*"))
        assert not (tmp_path / f"model-{many}.training").exists()
    assert told[12] == told[100]


@pytest.mark.parametrize("retriever", ["bm25", "task"])
def test_what_is_trained_on_many_is_trained_as_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retriever: str
) -> None:
    # no encoder adds noise, which differs for examples in files
    monkeypatch.setattr(fit_neural, "DenseEncoder", NoneType)
    answered = []
    for many in (100, 12):
        monkeypatch.setattr(filed, "IN_MEMORY_LIMIT", many)
        told: list[str] = []
        known = gather((greeting(name) for name in NAMES), tmp_path / f"examples-{many}")
        options = FitOptions(SETTINGS, log=told.append)
        model = RetrieveAndEdit.fit(known, retriever=retriever, editor="neural", options=options)
        assert isinstance(model.retriever.examples, DiskExamples) == (many == 12)
        assert any("words are counted in" in each for each in told) == (many == 12)
        model.save(tmp_path / "model")
        loaded = RetrieveAndEdit.load(tmp_path / "model")
        added = loaded.retriever.add([greeting("Nobody")])
        removed = RetrieveAndEdit(added.remove([0, 3]), loaded.editor)
        answered.append(
            [
                [(found.output, found.score) for found in candidates]
                for asked in (model, loaded, removed)
                for candidates in asked.predict(ASKED, 2)
            ]
        )
    assert answered[0] == answered[1]


def test_prototypes_of_noisy_directions_are_drawn_from_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filed, "IN_MEMORY_LIMIT", 12)
    monkeypatch.setattr(filed, "CHUNK", 8)
    known = gather((greeting(name) for name in NAMES), tmp_path / "examples")
    model = RetrieveAndEdit.fit(
        known, retriever="task", editor="neural", options=FitOptions(settings(20))
    )
    source = prototype_source(model.retriever, known, EditorConfig())
    drawn = source.draw([5, 2, 9], seed=3)
    assert drawn == source.draw([5, 2, 9], seed=3)
    outputs = [[each.y for each in found] for found in drawn]
    assert [len(found) for found in outputs] == [1, 1, 1]
    assert all(found != [known[row].y] for found, row in zip(outputs, (5, 2, 9), strict=True))


def test_an_editor_of_many_projects_is_trained_on_some_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filed, "IN_MEMORY_LIMIT", 12)
    monkeypatch.setattr(fit_neural, "OF_PROJECTS", 11)
    pairs = [
        replace(greeting(name), meta={"package": f"p{at % 5}"}) for at, name in enumerate(NAMES)
    ]
    told: list[str] = []
    known = gather(pairs, tmp_path / "examples")
    options = FitOptions(settings(20), dev=(), log=told.append)
    model = RetrieveAndEdit.fit(known, retriever="bm25", editor="neural", options=options)
    assert len(model.retriever.examples) == len(NAMES)
    assert any("6 of whole projects are trained on" in each for each in told)
    assert all(model.predict(ASKED))


def test_a_model_whose_folder_is_gone_answers_and_is_changed_in_memory(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filed, "IN_MEMORY_LIMIT", 12)
    run("fit", pairs, "-o", tmp_path / "model", "--editor", "verbatim")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    shutil.rmtree(tmp_path / "model")
    added = loaded.retriever.add([greeting("Nobody")])
    assert added.retrieve(ASKED[1:2])[0][0].example == greeting("Nobody")
    RetrieveAndEdit(added, loaded.editor).save(tmp_path / "again")
    assert len(examples(tmp_path / "again")) == len(NAMES) + 1


def test_a_split_of_many_is_that_of_few(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in ((), ("--by", "initial")):
        for many in (100, 12):
            monkeypatch.setattr(filed, "IN_MEMORY_LIMIT", many)
            run("split", pairs, "-o", tmp_path / f"parts-{many}", *arguments)
        for name in ("train.jsonl", "dev.jsonl", "test.jsonl"):
            expected = (tmp_path / "parts-100" / name).read_text()
            assert (tmp_path / "parts-12" / name).read_text() == expected
    assert not list(tmp_path.rglob(".staging-*"))


def test_near_leaks_are_looked_for_among_the_first_of_many_and_that_is_told(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filed, "IN_MEMORY_LIMIT", 12)
    known = [greeting(name) for name in NAMES]
    write_pairs([replace(known[0], y="another"), known[-1]], tmp_path / "test.jsonl")
    command = ["check", tmp_path / "test.jsonl", "--against", pairs]
    done = CliRunner().invoke(app, [*map(str, command)])
    assert "near leaks are checked against the first 12 of 30 rows" in done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["detail"] for each in found[:-1]] == ["same input", "same input and output"]


def test_many_examples_are_served_by_their_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filed, "IN_MEMORY_LIMIT", 12)
    known = gather((greeting(name) for name in NAMES), tmp_path / "examples")
    model = RetrieveAndEdit.fit(known, retriever="bm25", editor="verbatim")
    served = ServedModel("greetings", model)
    assert served.example(known[3].identity).y == known[3].y
    served.remove([known[3].identity])
    for gone in (known[3].identity, "no identity"):
        with pytest.raises(NoAnswerError):
            served.example(gone)
    assert len(served.model.retriever.examples) == len(NAMES) - 1


PEAK = """
import itertools, sys
from pathlib import Path
from types import NoneType
from redraft.storage import disk as filed
from redraft.types import Example
from redraft.retrieval.bm25 import Bm25Retriever
filed.IN_MEMORY_LIMIT = 1000
folder, count = Path(sys.argv[1]), int(sys.argv[2])
pairs = (
    Example({"text": f"sum the {at % 50} rows of table_{at}"}, f"return {at} + " * 20 + "1")
    for at in range(count)
)
found = Bm25Retriever.build(filed.gather(pairs, folder / "examples"))
assert found.retrieve([{"text": "rows of table_7"}])[0][0].example.y.startswith("return 7 +")
lines = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc, which Linux has")
def test_memory_does_not_grow_with_the_examples(tmp_path: Path) -> None:
    def peak(count: int) -> float:
        command = [sys.executable, "-c", PEAK, str(tmp_path / str(count)), str(count)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return float(done.stdout)

    # 30,000 more examples in memory would take some 30 MB, and as much again for their words
    assert peak(32_000) < peak(2_000) + 20


def test_a_model_of_many_examples_goes_back_to_memory_with_few(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filed, "IN_MEMORY_LIMIT", len(NAMES))
    model = tmp_path / "model"
    write_pairs(
        [
            replace(greeting(name), meta={"initial": "A" * (at < 16)})
            for at, name in enumerate(NAMES)
        ],
        pairs,
    )
    run("fit", pairs, "-o", model, "--editor", "verbatim")
    assert isinstance(RetrieveAndEdit.load(model).retriever.examples, DiskExamples)
    run("remove", model, "--where", "initial=A")
    assert isinstance(RetrieveAndEdit.load(model).retriever.examples, list)
    assert not any(each.meta["initial"] == "A" for each in examples(model))
