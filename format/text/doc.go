// Package text reads and writes the text formats: "csv", "tsv" and "jsonl".
//
// # CSV and TSV
//
// Records are those of RFC 4180: fields are separated by one character, quoted with ", a quote inside is doubled, line
// ends inside quotes belong to the value; lines end in LF or CR LF. Beyond the RFC: a byte order mark is skipped; a
// quote in a field that does not begin with one is an ordinary character; blank lines are skipped, except in tables of
// one column, where they are null. Text that is compressed with gzip is decompressed.
//
//	null              an empty field without quotes (or the text of the option null)
//	empty string      ""
//	numbers           shortest form that reads back the same; NaN, +Inf, -Inf; decimals with all digits of their scale
//	bool              true, false (read also as True, TRUE, False, FALSE)
//	date              2006-01-02
//	time, timestamp   15:04:05.000 and 2006-01-02T15:04:05.000Z07:00, with the digits of the unit; a timestamp without
//	                  zone has no Z; a year outside 0…9999 is written as the number of units since 1970
//	duration          12ms
//	binary            base64
//	the rest          JSON, as in JSON lines
//
// # JSON lines
//
// One object a line, its members in the order of the schema. Values are those of arrow-go's record-to-JSON form, see
// cells.AppendJSON. In a text that is read missing members are null, maps may be objects, a string column takes any
// other value as its JSON text, and a member that is not in the schema is an error unless unknown=ignore.
//
// # Types
//
// Without the option schema the types are inferred from the first 1000 rows or 4 MiB: int64, uint64 (if a number needs
// it), float64, bool; date32 and timestamps in CSV only; structs and lists in JSON only; and utf8 for everything else:
// mixed columns, columns without a value, numbers with leading zeros or a plus (such as telephone numbers), integers of
// more than 64 bits. Inference loses no digits, except that a column with integers and fractions is float64. A later
// value that is not of the type is an error with file, byte, line and column; reading can continue after it.
//
// Sources are read from start to end, without their size, and have one row group of unknown length.
package text
