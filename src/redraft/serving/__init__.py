"""The outside world to predict and complete: HTTP with a web page, and a language server."""
