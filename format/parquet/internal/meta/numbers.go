package meta

const (
	Magic     = "PAR1"
	Encrypted = "PARE"
)

// More encodings, and physical types: parquet.thrift.
const (
	PlainValues       = 0
	PlainDictionary   = 2
	RleValues         = 3
	RleLevels         = 3
	BitPacked         = 4
	DeltaBinaryPacked = 5
	DeltaLengths      = 6
	DeltaByteArray    = 7
	RleDictionary     = 8
	ByteStreamSplit   = 9

	TypeBoolean = 0
	TypeInt32   = 1
	TypeInt64   = 2
	TypeInt96   = 3
	TypeFloat   = 4
	TypeDouble  = 5
	TypeBytes   = 6
	TypeFixed   = 7
)

func IsDictionary(encoding int32) bool {
	return encoding == PlainDictionary || encoding == RleDictionary
}
