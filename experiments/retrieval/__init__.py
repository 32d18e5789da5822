"""Which retriever finds the output that is easiest to edit."""
