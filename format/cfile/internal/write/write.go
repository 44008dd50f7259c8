package write

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
)

// Writer writes one CFile as a stream: it holds one data block, the open index blocks and the dictionary.
//
// For the same values and options the file equals the one that Kudu's flush would write, byte for byte, except for
// compressed data, which depends on the version of LZ4, Snappy or zlib. How the values are divided among calls of
// Append makes no difference.
type Writer struct {
	f    Field
	O    WriterOptions
	out  *outFile
	b    blockBuilder
	pos  *indexTree
	val  *indexTree
	keys keyTracker

	chunk     int   // rows of a chunk, a multiple of the batch
	rows      int64 // rows in the file, including the open block
	blockRows int   // rows in the open block
	pending   bool  // the open block ends with the current run (see fullAtRunEnd)

	present BitRuns    // of the open block: rows, or elements of an array column
	cells   *cellHeads // of array columns

	block []byte // buffer for the encoded block, kept to reuse its memory
	buf   writeScratch
	sum   Summary
	foot  *block.Footer // set once everything else is written
	err   error
	done  bool
}

// NewWriter begins a CFile of column f and writes the header.
func NewWriter(w io.Writer, f Field, o WriterOptions) (*Writer, error) {
	o, err := o.WithDefaults(&f)
	if err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	out, err := newOutFile(w, &o)
	if err != nil {
		return nil, err
	}
	c := &Writer{f: f, O: o, out: out, b: newBlockBuilder(f.Type, &o), chunk: max(1, chunkRows/o.batch) * o.batch}
	if !o.NoPositionalIndex {
		c.pos = newIndexTree(out, o.IndexBlockSize)
	}
	if o.ValueIndex {
		c.val = newIndexTree(out, o.IndexBlockSize)
	}
	if f.Array {
		c.cells = newCellHeads()
	}
	return c, out.header()
}

// Append adds the values of an array, whose type must suit the field (see source). After an error the file is unusable.
func (c *Writer) Append(arr arrow.Array) error {
	if c.err != nil {
		return c.err
	}
	if c.done {
		return fault.Bugf("Append after Close")
	}
	c.err = c.append(arr)
	return c.err
}

func (c *Writer) append(arr arrow.Array) error {
	if n := int64(arr.Len()); c.rows+n > math.MaxUint32 {
		return fault.Limitf(fault.Span{}, c.f.Name, "%s: a CFile holds no more than %d", fault.Count(c.rows+n, "row"),
			uint32(math.MaxUint32))
	}
	if c.f.Array {
		return c.appendCells(arr)
	}
	col, err := newSource(&c.f, arr, c.O.Coerce)
	if err != nil {
		return err
	}
	for a := 0; a < col.n; {
		b := min(col.n, a+c.chunk-int(c.rows%int64(c.O.batch)))
		if err := c.appendChunk(col, a, b); err != nil {
			return err
		}
		a = b
	}
	return nil
}

// appendChunk appends the rows [a, b) of an array.
func (c *Writer) appendChunk(col *source, a, b int) error {
	first := c.rows
	ch, err := col.chunk(a, b, &c.buf, func(i int) int64 { return first + int64(i) })
	if err != nil {
		return err
	}
	if ch.nulls() > 0 && !c.f.Nullable {
		what := "a column without nulls"
		if c.val != nil {
			what = "a column with a value index, which has none"
		}
		return fault.Invalidf("column %q, row %d: null in %s", c.f.Name, c.rows+int64(ch.firstNull()), what)
	}
	if c.val != nil {
		if err := c.keys.checkAscending(c, &ch.values); err != nil {
			return err
		}
	}
	return c.take(ch)
}

// take adds a chunk to blocks.
func (c *Writer) take(ch *portion) error {
	row, d := 0, 0 // rows and values added so far
	if c.pending {
		if err := c.endRun(ch, &row, &d); err != nil {
			return err
		}
	}
	for d < ch.values.n {
		k, f := c.b.add(&ch.values, d, ch.values.n, false)
		c.keys.note(c, &ch.values, d, d+k)
		d += k
		if f == spaceLeft {
			break
		}
		c.takeRows(ch, &row, ch.rowAfter(row, k))
		var err error
		if f == fullNow {
			err = c.finishBlock()
		} else {
			err = c.endRun(ch, &row, &d)
		}
		if err != nil {
			return err
		}
	}
	c.takeRows(ch, &row, ch.rows)
	return nil
}

// takeRows adds the rows from *row to to to the counts of the open block.
func (c *Writer) takeRows(ch *portion, row *int, to int) {
	n := to - *row
	if c.f.Nullable {
		if ch.valid == nil {
			c.present.PutRun(1, n)
		} else {
			c.present.Put(ch.valid, ch.at+*row, n)
		}
	}
	*row = to
	c.rows += int64(n)
	c.blockRows += n
}

// endRun closes the block after the run of non-null rows in which it became full. A run ends before a null and at the
// end of each batch of rows. If it does not end in this chunk, the block stays open.
func (c *Writer) endRun(ch *portion, row, d *int) error {
	end := *row
	if left := int(c.rows % int64(c.O.batch)); left != 0 {
		end = min(ch.rows, *row+c.O.batch-left)
		end = ch.runEnd(*row, end)
	}
	k := c.b.rest(&ch.values, *d, *d+end-*row)
	c.keys.note(c, &ch.values, *d, *d+k)
	short := k < end-*row
	*d += k
	c.takeRows(ch, row, *row+k)
	c.pending = !short && *row == ch.rows && c.rows%int64(c.O.batch) != 0
	if c.pending {
		return nil
	}
	return c.finishBlock()
}

// finishBlock writes the open block, if it has rows, and adds it to the indexes.
//
//	nullable   varint rows, varint length of the bitmap, bitmap (RLE, 1 = present), values
func (c *Writer) finishBlock() error {
	if c.blockRows == 0 {
		return nil
	}
	first := uint32(c.rows - int64(c.blockRows))
	b := c.block[:0]
	switch {
	case c.f.Array:
		b = c.cells.appendHead(b, c.blockRows, &c.present)
	case c.f.Nullable:
		bitmap := c.present.Finish()
		b = binary.AppendUvarint(b, uint64(c.blockRows))
		b = binary.AppendUvarint(b, uint64(len(bitmap)))
		b = append(b, bitmap...)
	}
	b = c.b.Finish(b, first)
	b = append(b, 0, 0, 0, 0)[:len(b)] // room for the checksum
	c.block = b
	if d, ok := c.b.(*dictStrings); ok && d.mode == block.DictPlain {
		c.sum.PlainBlocks++
	}
	if err := c.indexed(b, first); err != nil {
		return err
	}
	c.b.reset()
	c.present.reset()
	if c.f.Array {
		c.cells.reset()
	}
	c.blockRows, c.pending = 0, false
	return nil
}

// indexed writes a block whose first row is first, and adds it to the indexes.
func (c *Writer) indexed(b []byte, first uint32) error {
	p, err := c.out.block(b)
	if err != nil {
		return c.inBlock(err, first)
	}
	c.sum.Blocks++
	if c.pos != nil {
		if err := c.pos.add(binary.BigEndian.AppendUint32(nil, first), p); err != nil {
			return err
		}
	}
	if c.val != nil {
		return c.val.add(c.keys.next(c.O.indexKey != nil), p)
	}
	return nil
}

// inBlock adds to an error the rows of the block that could not be encoded.
func (c *Writer) inBlock(err error, first uint32) error {
	if e, ok := err.(*fault.Error); ok {
		e.Path = fault.JoinPath(c.f.Name, e.Path)
		e.Reason += rowsText(int64(first), c.rows)
	}
	return err
}

// Close writes the last block, the indexes, the dictionary and the footer. It does not close the underlying writer.
func (c *Writer) Close() (Summary, error) {
	if c.err == nil && c.done {
		c.err = fault.Bugf("Close twice")
	}
	if c.err != nil {
		return c.sum, c.err
	}
	c.done = true
	c.err = c.close()
	c.sum.Rows, c.sum.Bytes = c.rows, c.out.off
	return c.sum, c.err
}

func (c *Writer) close() error {
	if err := c.Seal(); err != nil {
		return err
	}
	c.foot.Meta = c.meta()
	return c.out.footer(c.foot)
}

// Seal writes everything but the footer. After it only metadata pairs can be added.
func (c *Writer) Seal() error {
	if c.err != nil || c.foot != nil {
		return c.err
	}
	if c.err = c.finishBlock(); c.err == nil {
		c.err = c.Finish(c.rows)
	}
	return c.err
}

// Finish writes the structures between the data blocks and the footer, in Kudu's order, and fills in the footer.
func (c *Writer) Finish(values int64) error {
	foot := &block.Footer{Type: c.f.Type, Encoding: c.O.Encoding, Compression: c.O.Compression, NumValues: values,
		Nullable: c.f.Nullable}
	var err error
	if foot.PosIdx, err = c.finishTree(c.pos); err != nil {
		return err
	}
	if foot.ValIdx, err = c.finishTree(c.val); err != nil {
		return err
	}
	if d, ok := c.b.(*dictStrings); ok {
		c.sum.DictEntries = int64(len(d.dict.offs))
		c.block = d.dict.Finish(c.block[:0], 0)
		p, err := c.out.block(c.block)
		if err != nil {
			return err
		}
		foot.Dict = &p
	}
	if c.out.checksums {
		foot.Incompatible |= block.FeatureChecksums
	}
	if c.f.Array {
		foot.Incompatible |= block.FeatureArrayBlocks
	}
	c.foot = foot
	return nil
}

func (c *Writer) finishTree(t *indexTree) (*block.BlockPtr, error) {
	if t == nil {
		return nil, nil
	}
	p, err := t.Finish()
	c.sum.IndexBlocks += t.blocks
	return &p, err
}

// meta returns the footer's metadata: the min and max keys if there is a value index and at least one value, then the
// pairs of the options.
func (c *Writer) meta() []block.MetaPair {
	var lo, hi []byte
	if c.keys.any && !c.O.noKeys {
		lo, hi = append([]byte{}, c.keys.min...), append([]byte{}, c.keys.last...) // not nil: an empty key is a key
	}
	if c.O.MinKey != nil {
		lo = c.O.MinKey
	}
	if c.O.MaxKey != nil {
		hi = c.O.MaxKey
	}
	var out []block.MetaPair
	if lo != nil {
		out = append(out, block.MetaPair{Key: block.MinKeyKey, Value: lo})
	}
	if hi != nil {
		out = append(out, block.MetaPair{Key: block.MaxKeyKey, Value: hi})
	}
	for _, p := range c.O.Meta {
		out = append(out, block.MetaPair{Key: p.Key, Value: p.Value})
	}
	return out
}
