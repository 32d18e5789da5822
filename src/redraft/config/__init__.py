"""Settings: dataclasses, their ranges, and TOML."""
