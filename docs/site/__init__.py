"""The documentation site: `make docs` builds it from the pages of the repository and its code."""
