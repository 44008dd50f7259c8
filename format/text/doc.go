// Package text reads and writes the text formats: "csv", "tsv" and "jsonl".
//
// # CSV and TSV
//
// Records are cut as RFC 4180 has it: fields are separated by one character, quoted with ", a quote inside is
// doubled, line ends inside quotes belong to the value; lines end in LF or CR LF. Beyond the RFC: a byte order
// mark is skipped; a quote in a field that does not begin with one is an ordinary character; blank lines
// are skipped, except in tables of one column, where they are null. Text that is compressed with gzip is
// decompressed.
//
//	null              an empty field without quotes (or the text of the option null)
//	empty string      ""
//	numbers           shortest form that reads back the same; NaN, +Inf, -Inf; decimals with all digits of their scale
//	bool              true, false (read in any of the three usual spellings)
//	date              2006-01-02
//	time, timestamp   15:04:05.000 and 2006-01-02T15:04:05.000Z07:00, with the digits of the unit; a timestamp without
//	                  zone has no Z; a year outside 0…9999 is written as the number of units since 1970
//	duration          12ms
//	binary            base64
//	the rest          JSON, as in JSON lines
//
// # JSON lines
//
// One object a line, its members in the order of the schema. Values are those of arrow-go's record-to-JSON
// form: see AppendJSON. When reading, missing members are null, maps may be objects too, a string column takes
// any other value as its JSON text, and a member that the schema does not know is an error unless
// unknown=ignore.
//
// # Types
//
// Without the option schema the types come from the first 1000 rows or 4 MiB: int64, uint64 (if a number needs
// it), float64, bool; date32 and timestamps in CSV only; structs and lists in JSON only; and text for
// everything else: mixed columns, columns without a value, numbers with leading zeros or a plus (names and
// telephone numbers), integers of more than 64 bits. No digit is lost by inference, except that a column with
// both integers and fractions is float64. A later value that does not fit is an error that says file, byte,
// line and column; reading can continue after it.
//
// Sources are read from start to end, never asked for their size, and have one row group of unknown length.
package text
