package meta

import (
	"strconv"

	"stoa/format/cfile"
)

// EncodingName is the name of an encoding in Kudu's EncodingType; the number of an unknown one.
func EncodingName(e cfile.Encoding) string {
	switch e {
	case cfile.AutoEncoding:
		return "AUTO_ENCODING"
	case cfile.Plain:
		return "PLAIN_ENCODING"
	case cfile.Prefix:
		return "PREFIX_ENCODING"
	case cfile.GroupVarint:
		return "GROUP_VARINT"
	case cfile.RLE:
		return "RLE"
	case cfile.Dict:
		return "DICT_ENCODING"
	case cfile.BitShuffle:
		return "BIT_SHUFFLE"
	case 999:
		return "UNKNOWN_ENCODING"
	}
	return strconv.Itoa(int(e))
}

// CompressionName is the name of a codec in Kudu's CompressionType; the number of an unknown one.
func CompressionName(c cfile.Compression) string {
	switch c {
	case cfile.DefaultCompression:
		return "DEFAULT_COMPRESSION"
	case cfile.NoCompression:
		return "NO_COMPRESSION"
	case cfile.Snappy:
		return "SNAPPY"
	case cfile.LZ4:
		return "LZ4"
	case cfile.Zlib:
		return "ZLIB"
	case 999:
		return "UNKNOWN_COMPRESSION"
	}
	return strconv.Itoa(int(c))
}

// Keys of metadata in footers of CFiles.
const (
	KeyMin        = "min_key"
	KeyMax        = "max_key"
	KeyDeltaStats = "deltafilestats"
)
