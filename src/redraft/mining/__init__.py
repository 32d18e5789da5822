"""Python sources and packages to examples. Sources are read, never run."""
