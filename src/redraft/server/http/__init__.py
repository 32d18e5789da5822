"""The HTTP server: a JSON API and a web page over one or more models."""
