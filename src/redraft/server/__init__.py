"""The HTTP server with its web page, its Python client, and the language server."""
