"""One script for each table: `python -m benchmarks.tables.<name> [--quick] [--out FOLDER]`."""
