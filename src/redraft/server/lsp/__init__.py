"""The language server: code completion from the functions of the open workspace."""
