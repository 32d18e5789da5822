"""An input and its prototypes to candidates. Knows no retriever."""
