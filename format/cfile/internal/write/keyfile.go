package write

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
	"stoa/internal/bloom"
	"stoa/internal/pb"
)

// stringFile collects strings that are added one by one and passes them to a Writer in bulk.
type stringFile struct {
	c    *Writer
	data []byte
	strs []strSpan
}

func newStringFile(w io.Writer, name string, o WriterOptions) (*stringFile, error) {
	c, err := NewWriter(w, Field{Name: name, Type: block.Binary}, o)
	return &stringFile{c: c}, err
}

func (f *stringFile) add(parts ...[]byte) error {
	lo := len(f.data)
	for _, p := range parts {
		f.data = append(f.data, p...)
	}
	if len(f.data) > math.MaxInt32 {
		return fault.Limitf(fault.Span{}, f.c.f.Name, "a value of %d bytes", len(f.data)-lo)
	}
	f.strs = append(f.strs, strSpan{uint32(lo), uint32(len(f.data))})
	if len(f.data) < 64<<10 && len(f.strs) < chunkRows {
		return nil
	}
	return f.flush()
}

func (f *stringFile) flush() error {
	c := f.c
	if c.err == nil && c.done {
		c.err = fault.Bugf("the file is closed")
	}
	if c.err != nil {
		return c.err
	}
	n := len(f.strs)
	if c.rows+int64(n) > math.MaxUint32 {
		c.err = fault.Limitf(fault.Span{}, c.f.Name, "more than %d values", uint32(math.MaxUint32))
		return c.err
	}
	p := &portion{values: dense{n: n, strs: f.strs, data: f.data}, rows: n}
	if c.err = c.keys.checkAscending(c, &p.values); c.err == nil {
		c.err = c.take(p)
	}
	f.data, f.strs = f.data[:0], f.strs[:0]
	return c.err
}

func (f *stringFile) close() (Summary, error) {
	if err := f.flush(); err != nil {
		return f.c.sum, err
	}
	return f.c.Close()
}

// AdhocIndexWriter writes the ad-hoc index of a rowset with a compound key: one encoded key per row, a value index
// only, min_key and max_key in the metadata.
type AdhocIndexWriter struct{ f *stringFile }

// NewAdhocIndexWriter begins an ad-hoc index. Options that o leaves open are Kudu's: prefix encoding, LZ4, blocks of 4
// KiB.
func NewAdhocIndexWriter(w io.Writer, o WriterOptions) (*AdhocIndexWriter, error) {
	if o.Encoding == block.AutoEncoding {
		o.Encoding = block.Prefix
	}
	if o.Compression == block.DefaultCompression {
		o.Compression = block.LZ4
	}
	setZero(&o.BlockSize, 4096)
	o.NoPositionalIndex, o.ValueIndex = true, true
	f, err := newStringFile(w, "ad-hoc index", o)
	return &AdhocIndexWriter{f}, err
}

// Add appends the key of the next row; keys must ascend.
func (a *AdhocIndexWriter) Add(key []byte) error { return a.f.add(key) }

// Close ends the file. It does not close the underlying writer.
func (a *AdhocIndexWriter) Close() (Summary, error) { return a.f.close() }

// BloomOptions determine the layout of a bloom file; zero values stand for Kudu's defaults.
type BloomOptions struct {
	Version        int
	NoChecksums    bool
	BlockBytes     int     // of a filter; 0 = 4096
	FPRate         float64 // of false positives; 0 = 0.0001
	IndexBlockSize int     // 0 = 32 KiB
}

// BloomWriter writes a bloom file: filters, each with as many keys as fit it at the given false-positive rate, and a
// value index with the first key of each, truncated as in other files. A block is
//
//	u32 length, BloomBlockHeaderPB{1: number of hash functions}, bits
type BloomWriter struct {
	c      *Writer
	filter *bloom.Filter
	max    int // largest number of keys of a filter
	n      int // number of keys in the open filter
	keys   int64
	block  []byte
}

// NewBloomWriter begins a bloom file.
func NewBloomWriter(w io.Writer, o BloomOptions) (*BloomWriter, error) {
	setZero(&o.BlockBytes, 4096)
	if o.FPRate == 0 {
		o.FPRate = 0.0001
	}
	// Kudu's formula, with its value of the natural logarithm of 2.
	const ln2 = 0.69314
	maxKeys := math.Ceil(-float64(8*o.BlockBytes) * ln2 * ln2 / math.Log(o.FPRate))
	if o.BlockBytes < 1 || !(o.FPRate > 0 && o.FPRate < 1) || maxKeys < 1 || maxKeys > math.MaxInt32 {
		return nil, fault.Invalidf("a bloom filter of %d bytes with a rate of %v", o.BlockBytes, o.FPRate)
	}
	c, err := NewWriter(w, Field{Name: "bloom file", Type: block.Binary}, WriterOptions{
		Version: o.Version, NoChecksums: o.NoChecksums, Encoding: block.Plain, IndexBlockSize: o.IndexBlockSize,
		NoPositionalIndex: true, ValueIndex: true, noKeys: true,
	})
	if err != nil {
		return nil, err
	}
	return &BloomWriter{c: c, filter: bloom.New(o.BlockBytes, int(maxKeys)), max: int(maxKeys)}, nil
}

// Add adds an encoded key; keys must ascend.
func (b *BloomWriter) Add(key []byte) error {
	c, k := b.c, &b.c.keys
	if c.err == nil && c.done {
		c.err = fault.Bugf("the file is closed")
	}
	if c.err != nil {
		return c.err
	}
	if k.any && bytes.Compare(k.last, key) >= 0 {
		c.err = fault.Invalidf("bloom file, key %d: it is not above the one before", b.keys)
		return c.err
	}
	if b.n == 0 {
		k.head, k.open = append(k.head[:0], key...), true
	}
	k.last, k.any = append(k.last[:0], key...), true
	b.filter.Add(bloom.Hash(key))
	b.n++
	b.keys++
	if b.n == b.max {
		c.err = b.flush()
	}
	return c.err
}

func (b *BloomWriter) flush() error {
	head := pb.AppendUint(nil, 1, uint64(b.filter.Hashes))
	p := binary.LittleEndian.AppendUint32(b.block[:0], uint32(len(head)))
	p = append(append(p, head...), b.filter.Bits...)
	b.block = p
	clear(b.filter.Bits)
	b.n = 0
	return b.c.indexed(p, 0)
}

// Close writes the last filter, the index and the footer. It does not close the underlying writer.
func (b *BloomWriter) Close() (Summary, error) {
	c := b.c
	if c.err == nil && c.done {
		c.err = fault.Bugf("Close twice")
	}
	if c.err == nil && b.n > 0 {
		c.err = b.flush()
	}
	if c.err == nil {
		c.done = true
		c.err = c.Finish(0)
	}
	if c.err == nil {
		c.err = c.close()
	}
	c.sum.Rows, c.sum.Bytes = b.keys, c.out.off
	return c.sum, c.err
}
