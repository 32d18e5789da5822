"""Scripts that make pages and pictures of the documentation."""
