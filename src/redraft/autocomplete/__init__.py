"""An editor's buffer to completions. Knows Python source, finished or not; knows no editor."""
