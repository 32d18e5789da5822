"""A job goes on from the shards that are there, and touches no folder of another."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from redraft import Example, RetrieveAndEdit
from redraft.bulk.addresses import names_in, read_whole
from redraft.bulk.job import Job, Outcome, in_this_process
from redraft.bulk.mine import MineJob
from redraft.bulk.predict import PredictJob
from redraft.bulk.ray_cluster import RayCluster
from redraft.bulk.shards import Inputs, cut_files, cut_sources
from redraft.bulk.work import worker_of
from redraft.errors import BulkError, ConfigError, MissingExtraError
from redraft.mining.python_functions import find_sources
from redraft.predictor import PredictOptions

SHARDS = ["000000.jsonl", "000001.jsonl", "000002.jsonl"]


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    (tmp_path / "sources").mkdir()
    for at in range(5):
        source = f'def f{at}():\n    """Do {at}."""\n    return {at}\n'
        (tmp_path / "sources" / f"m{at}.py").write_text(source)
    (tmp_path / "sources" / "m5.py").write_text("no python")
    return cut_sources(find_sources([tmp_path / "sources"]), 2)


def run(inputs: Inputs, folder: Path | str) -> list[Outcome]:
    return list(Job.begin(MineJob(), inputs, str(folder)).run(in_this_process))


def test_rows_stand_in_the_order_of_the_input(inputs: Inputs, tmp_path: Path) -> None:
    outcomes = run(inputs, tmp_path / "out")
    assert [outcome.rows for outcome in outcomes] == [2, 2, 1]
    assert outcomes[2].skipped == ("m5.py:1: not Python 3: invalid syntax",)
    assert sorted(names_in(str(tmp_path / "out"))) == [*SHARDS, "job.json"]
    text = "".join((tmp_path / "out" / name).read_text() for name in SHARDS)
    assert [f'"y": "return {at}"' in line for at, line in enumerate(text.splitlines())] == [
        True
    ] * 5


def test_only_what_is_missing_is_done_again(inputs: Inputs, tmp_path: Path) -> None:
    run(inputs, tmp_path / "out")
    before = {name: (tmp_path / "out" / name).stat() for name in SHARDS}
    content = (tmp_path / "out" / SHARDS[1]).read_bytes()
    (tmp_path / "out" / SHARDS[1]).unlink()
    (tmp_path / "out" / ".000001.jsonl.elsewhere-1.partial").write_text("of a killed process")
    assert [outcome.number for outcome in run(inputs, tmp_path / "out")] == [1]
    assert (tmp_path / "out" / SHARDS[1]).read_bytes() == content
    for name in (SHARDS[0], SHARDS[2]):
        assert (tmp_path / "out" / name).stat().st_mtime_ns == before[name].st_mtime_ns
    assert sorted(names_in(str(tmp_path / "out"))) == [*SHARDS, "job.json"]


def test_the_folder_of_another_job_is_refused(inputs: Inputs, tmp_path: Path) -> None:
    run(inputs, tmp_path / "out")
    fewer = cut_sources(find_sources([tmp_path / "sources"])[:2], 2)
    differs = (
        r"out: holds the shards of another job \(it differs in: inputs, shards\); name another"
    )
    with pytest.raises(BulkError, match=differs):
        run(fewer, tmp_path / "out")
    with pytest.raises(BulkError, match=r"sources: is not empty and holds no job\.json"):
        run(inputs, tmp_path / "sources")


@pytest.mark.parametrize(
    "content", ["{", "[]", "null", "5", '"x"', "[" * 100_000, '{"a":' * 100_000, "\udcff", ""]
)
def test_a_damaged_job_file_is_named(content: str, inputs: Inputs, tmp_path: Path) -> None:
    run(inputs, tmp_path / "out")
    (tmp_path / "out" / "job.json").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(BulkError) as caught:
        run(inputs, tmp_path / "out")
    assert str(caught.value) == f"{tmp_path}/out/job.json: damaged; name another folder"


@pytest.mark.usefixtures("inputs")
def test_shards_of_other_rows_are_another_job(tmp_path: Path) -> None:
    # as many shards, and yet others: a row between them would be lost
    sources = find_sources([tmp_path / "sources"])[:5]
    run(cut_sources(sources, 3), tmp_path / "other")
    with pytest.raises(BulkError, match=r"it differs in: rows\)"):
        run(cut_sources(sources, 4), tmp_path / "other")


def test_a_folder_whose_maker_was_killed_at_once_is_empty(inputs: Inputs, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".job.json.elsewhere.partial").write_text("{")
    run(inputs, tmp_path / "out")
    assert sorted(names_in(str(tmp_path / "out"))) == [*SHARDS, "job.json"]


def test_a_model_that_changes_while_the_job_goes_on_is_told(
    examples: list[Example], pairs_file: Path, tmp_path: Path
) -> None:
    model = RetrieveAndEdit.fit(examples, retriever="bm25", editor="verbatim")
    model.save(tmp_path / "model")
    work = PredictJob(str(tmp_path / "model"), asdict(PredictOptions()))
    inputs = cut_files([str(pairs_file)], 50)
    assert len(list(Job.begin(work, inputs, str(tmp_path / "a")).run(in_this_process))) == 2
    job = Job.begin(work, inputs, str(tmp_path / "b"))
    fewer = RetrieveAndEdit.fit(examples[:40], retriever="bm25", editor="verbatim")
    fewer.save(tmp_path / "model")
    worker_of.cache_clear()  # as in a process that starts later
    with pytest.raises(BulkError, match=r"model: changed since the job started"):
        list(job.run(in_this_process))


def test_shards_are_written_wherever_fsspec_reaches(inputs: Inputs, tmp_path: Path) -> None:
    run(inputs, tmp_path / "out")
    assert len(run(inputs, "memory://jobs/mined")) == 3
    assert run(inputs, "memory://jobs/mined") == []
    for name in SHARDS:
        found = read_whole(f"memory://jobs/mined/{name}")
        assert found == (tmp_path / "out" / name).read_bytes()


def test_a_folder_that_workers_do_not_share_is_told(inputs: Inputs, tmp_path: Path) -> None:
    def elsewhere(job: Job) -> Iterator[Outcome]:
        return (Outcome(shard.number, 1) for shard in job.remaining)

    job = Job.begin(MineJob(), inputs, str(tmp_path / "out"))
    with pytest.raises(BulkError, match="the folder must be shared by all machines"):
        list(job.run(elsewhere))


def test_ray_without_its_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    expected = r"--ray needs ray, which .*; install it with: pip install 'redraft\[ray\]'"
    with pytest.raises(MissingExtraError, match=expected):
        RayCluster("auto").check()


def test_a_cluster_is_named_by_the_user_or_by_the_environment() -> None:
    assert RayCluster.at("head:6379", {"RAY_ADDRESS": "job:1"}).address == "head:6379"
    assert RayCluster.at("auto", {"RAY_ADDRESS": "job:1"}).address == "job:1"
    assert RayCluster.at("auto", {}).address == "auto"
    pytest.importorskip("ray")
    with pytest.raises(ConfigError, match=r"--ray ray://head: expected an address, HOST:PORT"):
        RayCluster("ray://head").check()
    with pytest.raises(BulkError, match=r"^\.\.:6379: no Ray cluster answers there"):
        RayCluster("..:6379").check()
