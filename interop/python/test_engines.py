"""Engines that read datasets and splits: DataFusion, Dask, Ray."""

import os
import shutil
import tempfile

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import stoa

TABLE = os.path.join(os.environ["STOA_CORPUS"], "kudu", "fs_log") + "#d_major"
pytestmark = pytest.mark.filterwarnings("ignore")


def full():
    return stoa.open(TABLE).to_table(columns=["id", "a", "b"])


def test_datafusion():
    import datafusion

    c = datafusion.SessionContext()
    c.register_dataset("t", stoa.open(TABLE))
    got = c.sql("select count(*) n, sum(id) s from t where id > 1000 and b like 'upd%'").to_pydict()
    want = full().filter((ds.field("id") > 1000) & pa.compute.starts_with(ds.field("b"), "upd"))
    assert got == {"n": [want.num_rows], "s": [pa.compute.sum(want["id"]).as_py()]} and want.num_rows > 0
    assert c.sql("select id, b from t order by id limit 3").to_pydict()["id"] == sorted(full()["id"].to_pylist())[:3]


def _frame(split):
    return split.scan().read_all().to_pandas()


def test_dask():
    import dask.dataframe as dd

    splits = stoa.open(TABLE).plan(columns=["id", "a", "b"], target=1)
    frame = dd.from_map(_frame, splits, meta=full().slice(0, 0).to_pandas())
    assert frame["id"].sum().compute(scheduler="processes", num_workers=2) == pa.compute.sum(full()["id"]).as_py()


def test_ray(monkeypatch):
    # of a machine that is busy with other things; and no token of this cluster in the home directory
    monkeypatch.setenv("RAY_gcs_server_port_wait_time_s", "300")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    import ray
    import stoa.ray

    def _arrow(batch):  # inside, so that workers get it by value: they cannot import this file
        return pa.concat_tables([s.scan().read_all() for s in batch["item"]])

    home = tempfile.mkdtemp(prefix="r", dir="/tmp")  # a short path: sockets lie under it, and have 107 bytes
    for left in (2, 1, 0):  # Ray gives up when its own processes are not there after 30 seconds, which is in its code
        try:
            ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", object_store_memory=200 << 20,
                     _temp_dir=home)
            break
        except Exception as e:
            ray.shutdown()
            if not left or "timed out" not in str(e):
                raise
    try:
        task = ray.remote(lambda s: s.scan().read_all())
        splits = stoa.open(TABLE).plan(columns=["id", "a", "b"], target=1)
        got = pa.concat_tables(ray.get([task.remote(s) for s in splits]))
        assert got.equals(full())
        want, where = full(), ds.field("id") + 0 > 1000  # which is no text of stoa's: workers filter afterwards
        for splits, rows in [(splits, want), (stoa.open(TABLE).plan(want.column_names, where=where, target=1),
                                              want.filter(ds.field("id") > 1000))]:
            data = ray.data.from_items(splits).map_batches(_arrow, batch_size=1, batch_format="numpy")
            assert sorted(map(repr, data.take_all())) == sorted(map(repr, rows.to_pylist())) and rows.num_rows > 0
        data = stoa.ray.read(TABLE, want.column_names, "id > 1000", target=1)
        assert sorted(map(repr, data.take_all())) == sorted(map(repr, rows.to_pylist()))
        assert stoa.ray.read(TABLE).count() == stoa.open(TABLE).count_rows()
    finally:
        ray.shutdown()
        shutil.rmtree(home, ignore_errors=True)


def test_polars_scans_the_dataset():
    import polars as pl

    t = stoa.open(TABLE)
    got = pl.scan_pyarrow_dataset(t).filter(pl.col("id") > 1000).select("id", "b").collect().to_arrow()
    want = full().filter(ds.field("id") > 1000).select(["id", "b"])
    assert got.cast(want.schema).equals(want) and want.num_rows > 0
