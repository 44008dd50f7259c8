// Package trevni reads and writes Trevni files: columns of typed values in blocks, one file a row group.
//
// Three dialects share one container:
//
//	avro    Apache Avro's, versions 0, 1 and 2: array columns hold lengths, which count the entries of child columns
//	impala  Impala's of 2012: one definition level, after the values
//	wiki    Nong Li's wiki page, a revision of Impala's: Dremel levels in front of the values
//
// # Container
//
//	"Trv" version-byte
//	row-count      fixed64
//	column-count   fixed32
//	metadata       of the file
//	metadata       of each column
//	column-start   fixed64 for each column, from the beginning of the file
//	columns        anywhere after it, in any order
//
//	metadata       pair-count, then key and value of each pair; all numbers and lengths are zig-zag varints
//
//	column         block-count fixed32
//	               for each block: rows, raw bytes, stored bytes (fixed32 each), first value if the column has them
//	               the blocks, one after the other
//
// Fixed numbers are little-endian and signed.
//
// # Telling the dialects apart
//
// Their magics are the same, so the spelling of the columns' keys decides: version 0 or 2 is Avro's; a column
// with trevni.definition or trevni.repetition is Impala's; trevni.name or trevni.type without those is Avro's
// version 1; Name and Type without prefix is the wiki's; anything else is refused.
//
// # Blocks
//
//	avro    [data] [CRC-32, big-endian]
//	impala  [values, definition levels, repetition levels]
//	wiki    [CRC-32, little-endian] [definition levels, repetition levels, values]
//
// What is in brackets is compressed together; sizes in descriptors do not include the checksum. The CRC-32 (IEEE) is of
// the raw bytes. Other forms are accepted, and reported by verify: before or after the data, little- or big-endian, of
// the raw or the stored bytes; and 0 in Avro's dialect with the null codec, because every version of Avro writes that.
// Levels are packed least significant bit first, with as many bits as the largest needs. The number of rows of a
// repeated column in the wiki's dialect is that of its entries.
//
// # Values
//
//	null           nothing
//	boolean        a bit, least significant first; again after every array length
//	int, long      zig-zag varint of at most 5 or 10 bytes
//	fixed32, fixed64, float, double   little-endian
//	string, bytes  zig-zag varint length, then as many bytes; strings are UTF-8
//
// An array column has for each entry a length (zig-zag int), followed by as many values. In version 2 a negative length
// stands for a run of n ≥ 2 lengths v, 0 or 1: (3 − v) − 2n.
//
// # What is settled here
//
//   - Bytes after the last value of a block are damage: that is how a wrong row count shows (TestNegative). Avro
//     ignores them.
//   - A raw size that is wrong is damage, but not with the null codec, where the stored size says the same
//     (wrong_raw_size), nor where bzip2 gives more: Avro before 1.10 compressed its whole buffer. What is too much is
//     cut off before the checksum is compared.
//   - A block without rows is skipped (two_blocks_empty).
//   - The header's row count must be that of at least one column; nothing else protects it.
//   - First values do not mean that a column is sorted, so nothing is skipped by them unless our writer's metadata or
//     the user declares that it is.
//   - deflate is raw (RFC 1951) when written; a zlib header is accepted.
//
// # Use
//
// Package stoa's Open and Create read and write rows. OpenFile here gives what lies below: header, columns,
// blocks, and values from any row or value on:
//
//	f, err := trevni.OpenFile(ctx, store.Local{}, "trades.trv", format.OpenOptions{})
//	c, err := f.Column(ctx, "time")
//	found, err := c.SeekValue(ctx, pred.Int(1700000000))
//	values, err := c.Next(ctx, 1000) // an arrow.Array
package trevni
