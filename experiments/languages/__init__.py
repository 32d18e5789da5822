"""Completion of TypeScript, Java and Go from the code of a project."""
