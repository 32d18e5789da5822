"""From pairs to an answer that names its source: fit, predict, explain, save, load."""

from pathlib import Path
from tempfile import TemporaryDirectory

from redraft import Example, RetrieveAndEdit

PAIRS = {
    "Sum the first 5 items in customers": "sum(customers[:5])",
    "Count the orders that are open": "sum(order.is_open for order in orders)",
    "Join the names with commas": "', '.join(names)",
    "Sort customers by their city": "sorted(customers, key=lambda customer: customer.city)",
}


def main() -> None:
    """Fit on four pairs, ask for a fifth, and keep the model."""
    pairs = [Example({"text": x}, y) for x, y in PAIRS.items()]
    # too few to learn from: the nearest by words, its output as it is (own_pairs.py learns)
    model = RetrieveAndEdit.fit(pairs, retriever="lexical", editor="verbatim")
    answer = model.predict_one("Sum the first two elements in tmp")
    assert answer.prototype is not None
    print("answer:   ", answer.output)
    print("made from:", answer.prototype.example.x["text"])
    print("distance: ", round(answer.prototype.distance, 3))

    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        again = RetrieveAndEdit.load(Path(folder) / "model")
    assert again.predict_one("Sum the first two elements in tmp") == answer


if __name__ == "__main__":
    main()
