"""The learned retriever alone, picking the few-shot examples of a prompt."""

from redraft import Example, RetrieveAndEdit

VERBS = {"Sum": "sum", "Sort": "sorted", "Reverse": "reversed", "Count": "len"}
NAMES = ("customers", "orders", "prices", "cities", "players", "cards", "decks", "turns")
PAIRS = [
    Example({"text": f"{verb} the first {count} {name}"}, f"{function}({name}[:{count}])")
    for verb, function in VERBS.items()
    for name in NAMES
    for count in (2, 5, 10)
]


def main() -> None:
    """Fit a task retriever on 96 pairs and write the prompt for a new question."""
    retriever = RetrieveAndEdit.fit(PAIRS, retriever="task", editor="verbatim").retriever
    question = "Sort the first 3 invoices"
    for prototype in retriever.retrieve([{"text": question}], k=4)[0]:
        print(f"Q: {prototype.example.x['text']}\nA: {prototype.example.y}\n")
    print(f"Q: {question}\nA:")


if __name__ == "__main__":
    main()
