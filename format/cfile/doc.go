// Package cfile reads and writes CFiles, the column files of Apache Kudu, in format v1 (Kudu up to 1.2) and v2;
// and the files that Kudu keeps beside columns in the same container: bloom files, delta files and ad-hoc
// indexes.
//
// # The file
//
// A CFile holds the values of one column, in blocks, and up to two indexes of them. Numbers are little-endian unless
// stated otherwise; varint is LEB128.
//
//	header
//	blocks: data blocks, index blocks, a dictionary, in the order in which they were finished
//	footer
//
//	header    magic     8   "kuducfil" (v1) or "kuducfl2" (v2)
//	          length    4   of the message
//	          message       CFileHeaderPB: metadata pairs (3); in v1 also major (1) and minor version (2), which
//	                        are ignored
//	          checksum  4   CRC-32C of all before it; only with feature bit 0
//
//	footer    checksum  4   CRC-32C of all that follows; only with feature bit 0
//	          message       CFileFooterPB
//	          magic     8
//	          length    4   of the message
//
//	CFileFooterPB   1 data_type, 2 encoding, 3 num_values   (required)
//	                4 posidx_info, 5 validx_info            BTreeInfoPB: 1 root_block
//	                6 compression                           none if it is absent
//	                7 metadata                              pairs: 1 key, 2 value
//	                8 is_type_nullable
//	                9 dict_block_ptr
//	                10 incompatible_features                bit 0 checksums, bit 1 array blocks
//	                11 compatible_features
//	                12 is_type_array                        true with bit 1
//	BlockPointerPB  1 offset, 2 size                        size includes the checksum
//
// A message has at most 64 KiB. A reader must refuse a file with an incompatible feature bit that it does not
// know.
//
// # Blocks
//
// In a file without compression a block is stored as it is. In a file with compression it is stored as one of
//
//	v1   compressed_size u32, uncompressed_size u32, compressed data
//	v2   uncompressed_size u32, compressed data; or, if just as many bytes follow, the data as it is
//
// With feature bit 0, either form is followed by the CRC-32C of all its bytes. This applies to blocks of every kind. A
// data block of a nullable column begins with
//
//	num_rows varint, bitmap_size varint, bitmap (RLE of width 1; 1 = there is a value)
//
// and an array block with
//
//	num_elements varint, num_arrays varint
//	element_bitmap_size varint, element_bitmap (RLE of width 1)
//	lengths_size varint, lengths (RLE of width 16)
//	array_bitmap_size varint, array_bitmap (RLE of width 1)
//
// The encoded values that are not null follow. num_values counts only these; ordinal is the row number of the block's
// first row.
//
//	plain        fixed width    num_values u32, ordinal u32, values
//	             bool           num_values u32, ordinal u32, bits, least significant first
//	             binary         ordinal u32, num_values u32, offsets_pos u32, values, offsets as group varints
//	                            (counted from the ordinal)
//	rle                         num_values u32, ordinal u32, runs (package rle) of the type's width, bools of width 1
//	bitshuffle                  ordinal u32, num_values u32, size u32 (of all this), padded u32, element_size u32,
//	                            chunks (package bitshuffle)
//	prefix                      group varint (num_values, ordinal, restart interval, 0), entries (package prefix),
//	                            restart points u32 each (counted from the header), num_restarts u32
//	dict                        mode u32; 1: codes as bitshuffle uint32; 2: plain binary. The dictionary is a block of
//	                            its own, plain binary
//	group varint (v1)           group varint (num_values, smallest, ordinal, 0), group varints of value - smallest
//
// # Indexes
//
// An index is a tree of blocks, written in post-order: a node comes after its children, the root last.
//
//	entries         key_length varint, key, offset varint, size varint
//	entry_offsets   u32 each
//	trailer         IndexBlockTrailerPB: 1 num_entries, 2 type (0 leaf, 1 internal)
//	trailer_length  u32
//
// In the positional index the key is the ordinal of the block's first row as four big-endian bytes. In the value index
// it is the encoded first value (see AppendKey), truncated to the shortest prefix that is greater than the last value
// of the previous block. In delta files it is not truncated.
//
// # A whole file
//
// A nullable int32 column of null, 20, 30, null, with checksums (TestWorkedExample):
//
//	 0  6b 75 64 75 63 66 6c 32  00 00 00 00  02 94 3a d3                 magic, length 0, checksum
//	16  04  02  03 06                                                     4 rows; bitmap of 2 bytes: one group, 0110
//	20  02 00 00 00  00 00 00 00  14 00 00 00  1e 00 00 00                2 values from row 0 on: 20, 30
//	36  c6 f8 a7 5d                                                       checksum of [16, 36)
//	40  04 00 00 00 00  10  18                                            index entry: row 0 is in the 24 bytes at 16
//	47  00 00 00 00                                                       the entry begins at 0
//	51  08 01 10 00  04 00 00 00  33 c9 f2 19                             1 entry, leaf; trailer of 4 bytes; checksum
//	63  8f 1d 7f a0                                                       checksum of [67, 99)
//	67  08 05  10 01  18 04  22 06 0a 04 08 28 10 17  30 01  40 01  50 01 int32, plain, 4 values, posidx at 40, 23
//	                                                                      bytes; not compressed, nullable, checksums
//	87  6b 75 64 75 63 66 6c 32  14 00 00 00                              magic, length 20
//
// # Auxiliary files
//
// The files do not declare their kind; see Kind for the rules that determine it.
//
//	bloom file     blocks: u32 length, BloomBlockHeaderPB (1 num_hash_functions), bits; see package bloom. Value index
//	               only; num_values is 0.
//	delta file     binary values: row and timestamp as ordered varints (SQLite 4's), then the change list, see Delta.
//	               Value index only, its keys are row and timestamp; metadata deltafilestats. The timestamps of a row
//	               ascend in REDO files and descend in UNDO files.
//	ad-hoc index   binary values: the encoded compound key of each row of a rowset. Value index only; metadata min_key
//	               and max_key.
//
// # Where the documents are silent or differ from Kudu's files
//
//   - The checksum is CRC-32C, and the positional key is four bytes after a length, not a varint (TestWorkedExample).
//   - Count and ordinal of plain blocks are before the values, not after them; the offsets of plain binary blocks are
//     group varints without a frame of reference (TestBlocksByHand).
//   - The null bitmap "0110" in the v1 document's example is run-length encoded in real files, so its size is 2, not 1
//     (TestBlocksByHand).
//   - The first entry of a prefix block is not among the restart points (TestBlocksByHand). Blocks with wrong restart
//     points can still be read; verify reports them.
//   - Group varint: the document's header is num, min, ordinal, unused. No Kudu release that still runs has this
//     encoding, so it is tested with hand-made bytes only (TestBlocksByHand).
//   - Header and footer may have different magics: as in Kudu, the header's magic decides how blocks are compressed,
//     and the footer's features decide whether there are checksums (TestGolden/synthetic).
//   - A file without any index must have no values (columnfile.CheckIndexes). With a value index alone, a block's own
//     ordinal is its first row: each block must begin at the row where the previous one ends, and the last must end at
//     num_values (TestDamage).
//   - Blocks of a level are in ascending order in the file, and a node comes after its children. Every writer does
//     this; our readers require it, which bounds every walk (TestDamage).
//   - A separator of the value index is at most the first value of its block. A lookup begins in the last block whose
//     separator is less than the value, so that it finds the first of several equal values if a file has them
//     (TestNativeSeek).
//   - Strings that are not UTF-8 are kept byte for byte; verify reports them. Int128 is decimal128(38, 0). Values of 39
//     digits exceed that precision but are kept; verify reports them.
//   - Decimals have no precision and scale in Kudu's files: they are read with precision 9, 18 or 38 and scale 0,
//     unless the metadata pair stoa.field, which our writer adds, or an option states others.
package cfile
