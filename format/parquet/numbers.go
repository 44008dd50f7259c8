package parquet

const (
	magic     = "PAR1"
	encrypted = "PARE"
)

// More encodings, and physical types: parquet.thrift.
const (
	plainValues       = 0
	plainDictionary   = 2
	rleValues         = 3
	rleLevels         = 3
	bitPacked         = 4
	deltaBinaryPacked = 5
	deltaLengths      = 6
	deltaByteArray    = 7
	rleDictionary     = 8
	byteStreamSplit   = 9

	typeBoolean = 0
	typeInt32   = 1
	typeInt64   = 2
	typeInt96   = 3
	typeFloat   = 4
	typeDouble  = 5
	typeBytes   = 6
	typeFixed   = 7
)

func isDictionary(encoding int32) bool {
	return encoding == plainDictionary || encoding == rleDictionary
}
