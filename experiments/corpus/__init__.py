"""Python functions of a list of pinned packages: downloaded, mined, filtered and split."""
