"""What the experiments share: runner, result rows, paired differences, tables, baselines, plots."""
