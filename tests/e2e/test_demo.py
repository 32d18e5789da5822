"""`redraft demo` as a newcomer runs it."""

from pathlib import Path

from redraft import RetrieveAndEdit
from tests.conftest import Run


def test_the_demo_ends_with_a_table_a_report_and_a_model(tmp_path: Path, redraft: Run) -> None:
    done = redraft("demo", "-o", tmp_path / "demo", "--budget", "10s", "--questions", "6")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("a held-out function") == 3
    assert "answer → truth" in done.stdout
    assert done.stdout.count("bm25 alone ") == done.stdout.count("retrieve+edit ") == 2
    assert "with their own modules in the index" in done.stdout
    assert "a completion at the cursor" in done.stdout
    assert (tmp_path / "demo" / "report.html").stat().st_size > 1_000_000
    model = RetrieveAndEdit.load(tmp_path / "demo" / "model")
    assert len(model.retriever.examples) > 1000
