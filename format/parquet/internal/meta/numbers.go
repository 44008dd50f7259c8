package meta

// The magic of a plain file, and of one with an encrypted footer.
const (
	Magic     = "PAR1"
	Encrypted = "PARE"
)

// Encodings and physical types: parquet.thrift, Encoding and Type.
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

// IsDictionary reports whether a page's values are codes of a dictionary.
func IsDictionary(encoding int32) bool {
	return encoding == PlainDictionary || encoding == RleDictionary
}
