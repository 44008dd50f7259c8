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
	Name      string     // for messages; a CFile does not know it
	Type      block.Type // of the elements, if Array
	Nullable  bool
	Array     bool // cells are lists; no release of Apache Kudu reads them, see the package comment
	Precision int  // of decimals; 0: as many digits as the type holds
	Scale     int  // of decimals; a CFile does not know it
	Length    int  // of varchar, in characters; 0: any
}

// Pair is a pair of the footer's metadata.
type Pair struct {
	Key   string
	Value []byte
}

// WriterOptions say how a CFile is laid out. The zero value is what Kudu does by default (with a positional index and
// without a value index).
type WriterOptions struct {
	Version     int // 1 or 2; 0 = 2
	NoChecksums bool
	Encoding    block.Encoding    // AutoEncoding: the type's first, see types
	Compression block.Compression // DefaultCompression: none
	// of data blocks and of the dictionary; 0 = 256 KiB; what is below 512 counts as 512, as in Kudu
	BlockSize         int
	IndexBlockSize    int // 0 = 32 KiB
	RestartInterval   int // of prefix encoding; 0 = 16
	NoPositionalIndex bool
	ValueIndex        bool     // the values must rise strictly
	Coerce            Coercion // timestamps finer than a microsecond
	// MinKey and MaxKey, if not nil, stand in the metadata in place of the first and the last encoded key,
	// which are there if there is a value index.
	MinKey, MaxKey []byte
	Meta           []Pair // further metadata

	// cuts the key out of a value (delta files), and turns off the cutting of separating keys
	indexKey func([]byte) []byte
	unsorted bool      // the values need not ascend (delta files)
	noKeys   bool      // no min_key and max_key (delta files)
	batch    int       // rows of a run of values, see fullAtRunEnd
	Digest   hash.Hash // is given the sizes and checksums of the blocks; nil: not needed
}

// WithDefaults fills in what is zero and checks everything against the type.
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

// canIndex reports whether a value index can be had: the types that Kudu takes for keys, present in every row.
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

// chunkRows is about how many rows are looked at together.
const chunkRows = 4096

// Defaults of Kudu, see WriterOptions.
const (
	defaultBlockSize      = 256 << 10
	defaultIndexBlockSize = 32 << 10
	defaultRestarts       = 16
	minBlockSize          = 512

	// Kudu writes the rows of a leaf of its row store's tree at once. Rows inserted in the order of their keys leave
	// seven in each leaf but the last.
	defaultBatch = 7
)
