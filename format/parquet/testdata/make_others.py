# Files of other writers than pyarrow, by formula (others_test.go has the same): python3 make_others.py, with DuckDB, Polars, pyarrow, fastparquet and pandas.
import os
import shutil

import duckdb
import fastparquet
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

# numbers of 32 bits as DELTA_BINARY_PACKED, whose first values, least deltas and packed bits are longer than that
duckdb.sql("""copy (select (4294967295 - range)::uinteger as down,
  (range * 2654435761 % 4294967296)::uinteger as far,
  (case when range % 3 = 0 then null else range * 1431655765 % 4294967296 end)::uinteger as nulls,
  (case when range % 2 = 0 then 2147483647 else -2147483648 end)::integer as signed,
  [(range * 1431655765 % 4294967296)::uinteger] as list
  from range(2100)) to 'deltas32.duckdb.parquet' (format parquet, parquet_version v2, dictionary_size_limit 1, compression zstd)""")
# a page without values between others, as pyarrow makes them of lists and small pages
pq.write_table(pa.table({"l": [["0"], ["2"], ["1"], ["1"], ["2"]]}), "empty_page.parquet", data_page_size=1, write_batch_size=2, write_page_index=True,
               compression="none", store_schema=False)
# a copy of each chunk's metadata behind it
pl.DataFrame({"a": [1, 2, None], "s": ["x", "y", None]}).write_parquet("copies.polars.parquet", compression="uncompressed")
os.makedirs("warned", exist_ok=True)  # what tests of healthy files leave out
# and a copy of the whole ColumnChunk: a file that pyarrow 0.7.1 wrote, and pyarrow's own tests read
shutil.copy(os.path.join(os.path.dirname(pa.__file__), "tests/data/parquet/v0.7.1.parquet"), "warned/copies.arrow-0.7.1.parquet")
# an Arrow schema with a type that the Arrow library does not know
pl.DataFrame({"a": [1, -5, None]}, schema={"a": pl.Int128}).write_parquet("warned/int128.polars.parquet", compression="uncompressed")
# summaries
os.makedirs("summary.pyarrow", exist_ok=True)
said = []
t = pa.table({"a": [1, 2, 3]})
pq.write_to_dataset(t, "summary.pyarrow", basename_template="part-{i}.parquet", metadata_collector=said)
pq.write_metadata(t.schema, "summary.pyarrow/_metadata", metadata_collector=said)
pq.write_metadata(t.schema, "summary.pyarrow/_common_metadata")
fastparquet.write("summary.fastparquet", pd.DataFrame({"a": range(6), "s": list("abcdef")}), file_scheme="hive", row_group_offsets=[0, 3])
print("duckdb", duckdb.__version__, "polars", pl.__version__, "pyarrow", pa.__version__, "fastparquet", fastparquet.__version__)

# Five row groups without checksums. In each, a, b and c have the same values in another order, and pages of one size.
n = range(500)
pq.write_table(pa.table({"id": pa.array(n, pa.int64()), "a": pa.array((i * 37 % 100 for i in n), pa.int64()),
                         "b": pa.array((i * 41 % 100 for i in n), pa.int64()), "s": [f"s{i * 13 % 1000}" for i in n],
                         "c": pa.array((i * 73 % 100 for i in n), pa.int64()), "few": ["xyz"[i % 3] for i in n],
                         "l": [[i] * (i % 4) for i in n], "d": [None if i % 5 == 0 else i / 7 for i in n]}),
               "moved.parquet", row_group_size=100, use_dictionary=["few"],
               compression={c: "none" if c in "abc" else "snappy" for c in ["id", "a", "b", "s", "c", "few", "l.list.element", "d"]})
