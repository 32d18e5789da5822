"""Retrievers: from an input to prototypes. Know examples and distances, no editor."""
