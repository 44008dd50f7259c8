// Package redfile reads, writes, verifies and recovers RedFile, the format of January and February 2013 whose
// magic was RED1 and that became Parquet.
//
//	"RED1"
//	column chunk (pages), column metadata      for each column of the first row group
//	…                                          for each column of each row group
//	file metadata                              a Thrift struct
//	length of the file metadata                u32, little-endian
//	"RED1"
//
// A page is a Thrift header and a body: repetition levels, definition levels, values, compressed together.
// Values are PLAIN (little-endian, BYTE_ARRAY with a u32 length in front, BOOLEAN as bits, least significant
// first) or GROUP_VAR_INT.
//
// All five generations of the metadata have the same magic; the types of their fields distinguish them (see
// layout.ParseFileMeta). A is that of the seed document, which no program wrote; E is what redelm, the program that
// became parquet-mr, wrote until its magic became PAR1.
//
//	                          A, B                  C              D                 E
//	schema                    none: paths, levels   text           elements, lists   elements, depth first
//	rows of a row group       absent                present        present           present
//	ColumnMetaData 6 and 7    maximum levels       sizes          sizes             sizes
//	metadata of columns       after the pages; from B on a copy may stand in the file's
//
// Points that the documents leave open, and how this package settles them (tests in brackets):
//
//   - The number at the end is a length, as every program wrote it; if that does not fit, it is interpreted as the
//     document states, as an offset from the end [TestGenerations].
//   - Metadata is in Thrift's compact protocol; the binary one is recognized by the first byte of each structure
//     [TestGenerations].
//   - Levels are encoded as redelm did, in all generations [TestRealLevels]: see internal/enc/redlevels.
//   - num_values counts nulls and empty lists. Sizes are without the header.
//   - crc is the CRC-32 of gzip over the stored body; 0 means none. meta_data_crc is the same over the metadata without
//     that field, and is written in generation E, too, whose readers skip unknown fields [TestChecksums].
//   - Snappy is one raw block, or in Hadoop's framing [TestHadoopSnappy]. The framing of LZO was never documented: it
//     is refused.
//   - INT96 is twelve bytes, opaque.
//   - A repeated field is a non-null list of non-null items. Lists and maps that are nullable, or have nullable items,
//     are groups marked LIST and MAP that contain a repeated group "list" or "map".
//   - In generations A and B the schema is inferred from paths and levels [TestInferred], unless the metadata has the
//     Arrow schema under "ARROW:schema" [TestRow].
//
// Our extensions, which readers of 2013 skip, are index pages and, between row groups, sync blocks and intermediate
// metadata (both in internal/layout). The document calls these a "potential extension" [TestKilledWriter,
// TestFailingSink, TestCutAnywhere].
//
// Sources: the seed document; parquet-format at e52693d, 1c3c4b8, 2975dd3, 684acaa and e1438f1; parquet-mr
// before 90f027e.
package redfile
