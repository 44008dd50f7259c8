package meta

import (
	"strconv"

	"stoa/format/cfile"
)

// EncodingName is Kudu's EncodingType by its name.
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

// CompressionName is Kudu's CompressionType by its name.
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

// Metadata of CFiles.
const (
	KeyMin        = "min_key"
	KeyMax        = "max_key"
	KeyDeltaStats = "deltafilestats"
)
