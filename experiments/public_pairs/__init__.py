"""Public pair sets: the default beside plain retrieval, plain editors and trained networks."""
