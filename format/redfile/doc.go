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
// Five generations of the metadata have the one magic; their fields' types say which it is (see
// layout.ParseFileMeta). A is the seed document's own and nobody wrote it; E is what redelm, the program that became
// parquet-mr, wrote until its magic became PAR1.
//
//	                          A, B                  C              D                 E
//	schema                    none: paths, levels   text           elements, lists   elements, depth first
//	rows of a row group       not said              said           said              said
//	ColumnMetaData 6 and 7    maximum levels       sizes          sizes             sizes
//	metadata of columns       after the pages; from B on a copy may stand in the file's
//
// What the documents leave open, and how it is settled here (the tests that hold it in brackets):
//
//   - The number at the end is a length, as every program wrote it; if that does not fit, it is read as the document
//     words it, as an offset from the end [TestGenerations].
//   - Compact protocol; the binary one is read, too, structure by structure [TestGenerations].
//   - Levels are in the bytes of redelm, in all generations [TestRealLevels]: see internal/enc/redlevels.
//   - num_values counts nulls and empty lists. Sizes are without the header.
//   - crc is the CRC-32 of gzip over the stored body; 0 means none. meta_data_crc is the same over the metadata without
//     that field, and is written in generation E, too, whose readers pass an unknown field over [TestChecksums].
//   - Snappy is bare or in Hadoop's frames [TestHadoopSnappy]. The framing of LZO was never documented: it is
//     refused.
//   - INT96 is twelve bytes, opaque.
//   - A repeated field is a list that cannot be null, of items that cannot be. Lists and maps that can are groups
//     marked LIST and MAP, with a repeated group "list" or "map" in them.
//   - In generation A the schema is guessed from paths and levels, unless the Arrow schema is kept under "ARROW:schema"
//     [TestRow].
//
// Ours are: index pages, and sync blocks with the metadata so far between row groups (both in internal/layout),
// which readers of 2013 skip; they make the document's "potential extension" true [TestKilledWriter,
// TestFailingSink, TestCutAnywhere].
//
// Sources: the seed document; parquet-format at e52693d, 1c3c4b8, 2975dd3, 684acaa and e1438f1; parquet-mr
// before 90f027e.
package redfile
