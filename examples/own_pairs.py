"""Your own pairs: requests to pandas, with names and numbers never seen before."""

import random
from pathlib import Path
from tempfile import TemporaryDirectory

from redraft import Example, RetrieveAndEdit

REQUESTS = {
    "total {a} of {table} by {b}": '{table}.groupby("{b}")["{a}"].sum()',
    "average {a} of {table} by {b}": '{table}.groupby("{b}")["{a}"].mean()',
    "the {n} rows of {table} with the highest {a}": '{table}.nlargest({n}, "{a}")',
    "rows of {table} with {a} over {n}": '{table}[{table}["{a}"] > {n}]',
    "sort {table} by {a}, then by {b}": '{table}.sort_values(["{a}", "{b}"])',
    "rename the column {a} of {table} to {b}": '{table}.rename(columns={{"{a}": "{b}"}})',
}
TABLES = """orders customers flights players songs parcels rooms loans books matches visits trains
    cars houses shops courses patients invoices tickets films cities trees ships teams""".split()  # noqa: SIM905
COLUMNS = """price city year weight score owner length colour team age country speed rating
    size cost depth genre month width salary status brand floor distance volume
    artist region grade energy author delay capacity rent duration pressure angle
    sender gender profit branch""".split()  # noqa: SIM905
NEW_WORDS = ("average wingspan of penguins by island", "rows of volcanoes with height over 8848")


def make_pairs(count: int) -> list[Example]:
    """So many distinct pairs, the same ones every time."""
    chance = random.Random(0)
    pairs: dict[str, Example] = {}
    while len(pairs) < count:
        request, code = chance.choice(list(REQUESTS.items()))
        a, b = chance.sample(COLUMNS, 2)
        words = {"a": a, "b": b, "table": chance.choice(TABLES), "n": chance.randint(2, 99)}
        x = request.format(**words)
        pairs[x] = Example({"text": x}, code.format(**words))
    return list(pairs.values())


def main() -> None:
    """Learn from 180 pairs, answer the 20 others and new words, and keep the model."""
    pairs = make_pairs(200)
    train, held_out = pairs[:180], pairs[180:]
    print(f"learning from {len(train)} pairs such as\n  {train[0].x['text']}\n  {train[0].y}\n")
    model = RetrieveAndEdit.fit(train)

    answers = model.predict([example.x for example in held_out])
    right = sum(a[0].output == e.y for a, e in zip(answers, held_out, strict=True))
    print(f"held-out requests answered exactly: {right} of {len(held_out)}\n")

    for request in NEW_WORDS:
        answer = model.predict_one(request)
        assert answer.prototype is not None
        print("request:   ", request)
        print("answer:    ", answer.output)
        print("prototype: ", answer.prototype.example.x["text"])
        print("diff:      ", answer.diff())
        print(
            "origins:   ", *(f"{token.text.strip()}←{token.origin}" for token in answer.provenance)
        )
        print("confidence:", f"{answer.confidence:.0%}\n")

    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        again = RetrieveAndEdit.load(Path(folder) / "model")
    assert again.predict([example.x for example in held_out]) == answers
    print("saved, loaded: the same answers")


if __name__ == "__main__":
    main()
