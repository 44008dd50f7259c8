package convert

import (
	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
)

const convertLong = `Write the rows of a table, or the selected ones, in another format: that of --to, or else of
the extension of OUT. Before OUT appears, it is read back and compared: if it does not have the same rows
and values, the status is 1, and there is no OUT. Sources are never overwritten,
and another file, or a table with snapshots, only with --force, or if you say so on a terminal.

The comparison ignores the order of rows. --no-check skips it, and so does standard output, which cannot
be read back. If no checksum covers the values of a source that is written whole, it is also verified: the
status is 3 if values contradict what the file says of them, such as bounds.

From Parquet to Parquet, pages are copied as they are, with their codec, if all rows and whole columns are
converted and no --opt changes pages. So several files can be joined, columns left out, key/value metadata
changed (--opt metadata=KEY=VALUE, --opt drop-metadata=KEY) and row groups made smaller (--opt
row-group-rows=N, --opt row-group-size=BYTES); the footer is new. If a new row group begins inside a page,
only that page is decoded, and encoded again in the same way; the summary has the number of such
pages. The pages are verified first (with --no-check only those without checksums); after any finding all
pages are decoded and written anew, as for other formats. -v says why pages are not copied.

With --partition-by y,region the output is a directory with a directory for each value, y=2024/region=eu,
as Hive and Spark have them; the columns are then in these names, and not in the files. Such a directory is
read back with them. For Iceberg and Delta the terms are those of the table's partition spec, such as
"day(ts), bucket(16, id)".

A CFile holds one column: a table of several columns becomes a directory, one file per column.

With --snapshots MOMENT,... or --every 1d a table of Iceberg or Delta has a snapshot for each of these moments
of a Kudu table, which is read as it was then; readers travel in time by them. With --catch-up the table OUT
of Iceberg or Delta is changed to have the rows that the source has now: rows that are gone are deleted, new
ones added, in one snapshot, which is read and compared before it appears. Rows are compared by their values: no key is
needed. So a table is converted while it is in use, and caught up with shortly before it is replaced.

With --catalog rest:http://HOST:8181#sales.orders the new table of Iceberg is registered in that REST
catalogue (a bearer token is in $STOA_CATALOG_TOKEN); without, the lines that register it elsewhere are said.

With --all, every table below the paths, at any depth, is converted to a file of its name in the directory
OUT, as Parquet unless --to says otherwise. A table with Hive partitions (CarbonData) becomes a directory
with the same partitions, NAME=VALUE; tables written as kudu-fs share one master and one tablet server. If
a table cannot be converted, the others still are. OUT/.stoa-convert.json has the tables that are done and
those that failed, with the reason; during the run there is also a line per table in .stoa-convert.journal.
--resume skips what is done, unless the output is missing, or a file of the source has another size or time.
An output that is not as it was written is an error, and stays, unless with --force. With --file-size each
table is a directory of files, each within a tablet and in the order of its keys; --resume then continues
after the last file. At the end there is a line per table: the rows and a checksum of the values that were
read and read back, or why there is no output.

A new table of Iceberg or Delta that is larger than one of its files is built in OUT.unfinished, or at its
address, where its files are no table before the last one. If the run is interrupted, --resume goes on after
the last files that were complete.`

func ConvertCmd(a *cli.App) *cobra.Command {
	var c conversion
	var all allFlags
	var past pastFlags
	cmd := &cobra.Command{
		Use:   "convert PATH... -o OUT",
		Short: "Write the rows as another format",
		Long:  convertLong,
		Example: `  stoa convert block.cfile -o block.parquet
  stoa convert 'logs/*.csv' --source-opt header=true --where "status >= 500" -o errors.parquet --opt compression=zstd
  stoa convert --all kudu -o out/`,
		Args: a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.catalog != "" && (past.on() || all.all) {
				return cli.WrongUse("--catalog is for one table, without --snapshots, --every and --catch-up")
			}
			if past.on() {
				return c.runPast(cmd.Context(), a, args, past, all)
			}
			if all.all {
				return c.runAll(cmd, a, args, all)
			}
			if c.goOn = all.resume; c.goOn && !isLake(c.to) {
				return cli.WrongUse("--resume goes with --all, and with --to iceberg or delta")
			}
			if c.fileSize != "" {
				return cli.WrongUse("--file-size goes with --all")
			}
			return c.goesOn(cmd.Context(), a, args)
		},
	}
	all.register(cmd)
	past.register(cmd)
	c.writeFlags.register(a, cmd)
	c.writeFlags.registerPieces(cmd)
	c.writeFlags.registerPartitions(cmd)
	c.SelectFlags.Register(a, cmd, &c.SourceFlags)
	c.RegisterLimit(cmd, 0, "write `N` rows at most")
	c.DamageFlags.Register(cmd, "fail")
	c.SourceFlags.Register(a, cmd)
	return cli.First(cmd, "output", "to", "all")
}
