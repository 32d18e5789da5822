"""`redraft demo` as a newcomer runs it."""

import re
import shlex
from pathlib import Path

from redraft import RetrieveAndEdit
from tests.conftest import Run


def test_the_demo_ends_with_a_table_a_report_a_model_and_commands_to_paste(
    tmp_path: Path, redraft: Run
) -> None:
    done = redraft("demo", "-o", tmp_path / "demo", "--budget", "1s", "--questions", "20")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("prototype → answer") == 3
    assert done.stdout.count("╭─ confidence ") == 3
    assert "no answer: the best candidate's confidence is" in done.stdout
    assert re.search(r"Asked: .+\n +SELECT name FROM agents.+\nconfidence \d+ %", done.stdout)
    assert "5 were cut out and are typed again" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.split("2. Your own code")[0].splitlines())) <= 80
    assert "▏return a.max_mag(b, context=self)" in done.stdout
    assert done.stdout.count("▏") == 5
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    [answer] = re.findall(r"^    answer +(.+)$", readme, flags=re.M)
    assert answer in " ".join(done.stdout.replace("│", " ").split())
    right = {
        row.split("│")[1].strip(): int(row.split("│")[2].split()[0])
        for row in done.stdout.splitlines()
        if " of 20 │" in row
    }
    redraft_alone = right.pop("Redraft: retrieve, edit, choose")
    caption = "A network, trained for 1 s, did not help on held-out pairs, and is not used."
    trained = right.pop("Redraft, trained for 1 s", None)
    assert (trained is None) == (caption in " ".join(done.stdout.split()))
    assert len(right) == 3
    assert redraft_alone > max(right.values())
    assert (tmp_path / "demo" / "report.html").stat().st_size > 1_000_000
    model = RetrieveAndEdit.load(tmp_path / "demo" / "model")
    assert len(model.retriever.examples) == 300
    offered = [
        shlex.split(line)[1:]
        for line in re.findall(r"^(?:Try)? +(\S*redraft .+)$", done.stdout, flags=re.M)
    ]
    assert [arguments[0] for arguments in offered] == ["predict", "serve", "fit"]
    pasted = redraft(*offered[0])
    assert pasted.returncode == 0, pasted.stderr
    assert "777" in pasted.stdout
    fitted = redraft(*[tmp_path / "mine" if part == "mine" else part for part in offered[2]])
    assert fitted.returncode == 0, fitted.stderr
