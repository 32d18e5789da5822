"""HTML reports of evaluations. Knows no model except the retriever whose embeddings it maps."""
