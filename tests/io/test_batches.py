"""Files in batches: pyarrow holds a part of a file at a time, and a row that is too long for that is named."""

import gzip

import numpy as np
import pytest

from softmargin.core.errors import DataFormatError
from softmargin.io.batches import Batches

pa = pytest.importorskip("pyarrow")

MEMORY = 1 << 23


def table(n_rows):
    X = np.random.default_rng(0).standard_normal((n_rows, 20))
    return pa.table({f"f{k}": X[:, k] for k in range(20)})


def parquet(path, n_rows):
    import pyarrow.parquet

    pyarrow.parquet.write_table(table(n_rows), path, row_group_size=2000, compression="none", use_dictionary=False)


def csv(path, n_rows):
    import pyarrow.csv

    pyarrow.csv.write_csv(table(n_rows), path)


@pytest.mark.parametrize("write", [parquet, csv])
def test_pyarrow_holds_a_part_of_the_file(write, tmp_path):
    path = tmp_path / f"rows.{write.__name__}"
    write(path, 100_000)
    assert path.stat().st_size > 1.9 * MEMORY
    before, most, n_rows = pa.total_allocated_bytes(), 0, 0
    for part, share in Batches(MEMORY).of(path):
        n_rows += part.X.shape[0]
        assert share == pytest.approx(n_rows / 100_000, abs=0.05)
        most = max(most, pa.total_allocated_bytes() - before)
    assert n_rows == 100_000
    assert most < MEMORY


def test_a_row_that_is_longer_than_a_block_is_explained(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("y," + ",".join(f"f{k}" for k in range(30_000)) + "\n1" + 30_000 * ",0.5" + "\n")
    with pytest.raises(
        DataFormatError, match=r"wide\.csv: the file cannot be read: .*Rows of more than 65536 bytes need"
    ):
        next(Batches(1 << 20).of(path))
    assert next(Batches(1 << 28).of(path))[0].X.shape == (1, 30_000)


@pytest.mark.parametrize("ending", [".svm", ".svm.gz", ".npy", ".npz"])
def test_the_share_that_was_read(ending, tmp_path):
    X = np.random.default_rng(0).standard_normal((40_000, 5))
    path = tmp_path / f"rows{ending}"
    if ending == ".npy":
        np.save(path, X)
    elif ending == ".npz":
        np.savez(path, X=X)
    else:
        text = "".join(f"1 {' '.join(f'{k}:{v:.6f}' for k, v in enumerate(row, 1))}\n" for row in X).encode()
        path.write_bytes(gzip.compress(text, 1) if ending == ".svm.gz" else text)
    found, n_rows = list(Batches(1 << 22).of(path)), 0
    assert len(found) > 1
    for part, share in found:
        n_rows += part.X.shape[0]
        assert share is None if ending == ".svm.gz" else share == pytest.approx(n_rows / len(X), abs=0.1)
