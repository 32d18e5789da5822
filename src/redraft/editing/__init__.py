"""Editors: turn an input and its prototypes into candidates and completions. Knows no retriever."""
