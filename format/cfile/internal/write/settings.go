package write

import (
	"fmt"
	"hash"
	"math"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
)

func (f *Field) describe() string {
	if f.Type.Digits() > 0 {
		return fmt.Sprintf("%s(%d,%d)", f.Type, f.Precision, f.Scale)
	}
	return f.Type.String()
}

// Field is the column that a CFile holds.
type Field struct {
	Name      string     // for messages; a CFile does not store it
	Type      block.Type // of the elements, if Array
	Nullable  bool
	Array     bool // cells are lists; no release of Apache Kudu reads them
	Precision int  // of decimals; 0: the largest of the type
	Scale     int  // of decimals; a CFile does not store it
	Length    int  // of varchar, in characters; 0: any
}

// Pair is a pair of the footer's metadata.
type Pair struct {
	Key   string
	Value []byte
}

// WriterOptions determine the layout of a CFile. The zero value is Kudu's default, with a positional index and without
// a value index.
type WriterOptions struct {
	Version     int // 1 or 2; 0 = 2
	NoChecksums bool
	Encoding    block.Encoding    // AutoEncoding: the type's first, see block.Types
	Compression block.Compression // DefaultCompression: none
	// Size of data blocks and of the dictionary; 0 = 256 KiB. As in Kudu, a size below 512 is raised to 512.
	BlockSize         int
	IndexBlockSize    int // 0 = 32 KiB
	RestartInterval   int // of prefix encoding; 0 = 16
	NoPositionalIndex bool
	ValueIndex        bool     // the values must ascend strictly
	Coerce            Coercion // timestamps finer than a microsecond
	// MinKey and MaxKey, if not nil, replace the first and the last encoded key in the metadata of a file with a value
	// index.
	MinKey, MaxKey []byte
	Meta           []Pair // further metadata

	// extracts the key from a value (delta files); if set, separator keys are not truncated
	indexKey func([]byte) []byte
	unsorted bool      // the values need not ascend (delta files)
	noKeys   bool      // no min_key and max_key (delta files)
	batch    int       // rows per run of values, see fullAtRunEnd
	Digest   hash.Hash // receives the sizes and checksums of the blocks; nil: not needed
}

// WithDefaults replaces zero values by their defaults and checks all options against the type.
func (o WriterOptions) WithDefaults(f *Field) (WriterOptions, error) {
	info, ok := block.Types[f.Type]
	if !ok {
		return o, fault.Invalidf("column %q: data type %d is not known", f.Name, int32(f.Type))
	}
	setZero(&o.Version, 2)
	setZero(&o.BlockSize, defaultBlockSize)
	o.BlockSize = max(o.BlockSize, minBlockSize)
	setZero(&o.IndexBlockSize, defaultIndexBlockSize)
	setZero(&o.RestartInterval, defaultRestarts)
	setZero(&o.batch, defaultBatch)
	if o.Encoding == block.AutoEncoding {
		o.Encoding = info.Encodings[0]
	}
	if o.Compression == block.DefaultCompression {
		o.Compression = block.NoCompression
	}
	switch {
	case o.Version != 1 && o.Version != 2:
		return o, fault.Invalidf("column %q: there is no CFile version %d", f.Name, o.Version)
	case o.BlockSize > math.MaxInt32/2 || o.IndexBlockSize > math.MaxInt32/2 || o.IndexBlockSize < 0 ||
		o.RestartInterval < 0:
		return o, fault.Invalidf("column %q: block size %d, index block size %d, restart interval %d: out of range",
			f.Name, o.BlockSize, o.IndexBlockSize, o.RestartInterval)
	case o.Encoding == block.GroupVarint && o.Version != 1:
		return o, fault.Invalidf("column %q: group-varint is an encoding of version 1 only", f.Name)
	case f.Array && o.Version == 1:
		return o, fault.Invalidf("column %q: version 1 has no array blocks", f.Name)
	}
	if err := block.Allowed(f.Type, o.Encoding); err != nil {
		return o, fault.Invalidf("column %q: encoding %s is not defined for type %s", f.Name, o.Encoding, f.Type)
	}
	if o.ValueIndex {
		return o, canIndex(f)
	}
	return o, nil
}

// canIndex returns an error unless the column can have a value index: its type must be one of Kudu's key types, and no
// row may be null.
func canIndex(f *Field) error {
	switch {
	case f.Nullable || f.Array:
		return fault.Invalidf("column %q: a value index needs a column without nulls and lists", f.Name)
	case !block.Keyable(f.Type):
		return fault.Invalidf("column %q: %s has no order of keys, so there can be no value index", f.Name, f.Type)
	}
	return nil
}

func setZero(p *int, v int) {
	if *p == 0 {
		*p = v
	}
}

// Summary reports what a Writer wrote.
type Summary struct {
	Rows        int64 // of a delta file: deltas; of a bloom file: keys
	Bytes       int64
	Blocks      int64 // of data (or bloom filters)
	PlainBlocks int64 // of a dictionary-encoded column: those written after the dictionary was full
	IndexBlocks int64
	DictEntries int64
}

// check checks precision, scale and length of the field against its type. The error is Invalid.
func (f *Field) check() error {
	switch digits := f.Type.Digits(); {
	case digits == 0 && (f.Precision != 0 || f.Scale != 0):
		return fault.Invalidf("column %q: %s has no precision", f.Name, f.Type)
	case !f.Type.HasDigits(f.Precision, f.Scale):
		return fault.Invalidf("column %q: %s cannot hold decimal(%d,%d)", f.Name, f.Type, f.Precision, f.Scale)
	case f.Length < 0:
		return fault.Invalidf("column %q: length %d", f.Name, f.Length)
	}
	return nil
}

// chunkRows is the approximate number of rows that are processed together.
const chunkRows = 4096

// Defaults of Kudu, see WriterOptions.
const (
	defaultBlockSize      = 256 << 10
	defaultIndexBlockSize = 32 << 10
	defaultRestarts       = 16
	minBlockSize          = 512

	// Kudu writes the rows of each leaf of its in-memory tree at once. If rows are inserted in key order, every leaf
	// but the last has seven.
	defaultBatch = 7
)
