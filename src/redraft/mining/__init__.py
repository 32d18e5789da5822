"""Python sources to examples. Sources are read, never run."""
