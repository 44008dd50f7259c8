package page

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/codec"
	"stoa/vec"
	"stoa/wire"
)

// MaxPageRows is far more than any writer puts in a page (32,000 rows in format 3; carbon.blocklet.size, at
// most 12,000,000, in the older ones).
const MaxPageRows = 1 << 24

// MaxPageRows3 is more than the 32,000 rows that a page of format 3 has at most: its row ids have 15 bits.
const MaxPageRows3 = 1 << 16

// StoredPage is a page as its file keeps it. It is what Next learned and Decode needs.
type StoredPage struct {
	*layout.DataChunk
	Col       *schema.Column // of the file
	Version   int
	Rows      int64 // of the top-level column
	Coded     bool  // the values are codes of the chunk's dictionary
	Global    bool  // the values are codes of the column's dictionary
	Widths    *KeyWidths
	Limits    format.Limits
	Spans     int          // how many of the task's spans are this page's own
	Dates     DateRule     // direct dictionaries
	NullCodes []uint32     // of a page of codes below a list or struct
	Below     []StoredPage // of an array or struct: the pages that tell which of its entries are null
}

// Pieces are the stored parts of a page. In format 3 they follow each other, in format 1 each has a span of its own.
func (p *StoredPage) Pieces(b [][]byte) (data, rowids, runs []byte, err error) {
	if p.Spans > 1 {
		data = b[0]
		if i := 1; p.RowidLen > 0 {
			rowids = b[i]
			i++
			if p.RleLen > 0 {
				runs = b[i]
			}
		} else if p.RleLen > 0 {
			runs = b[1]
		}
		return data, rowids, runs, nil
	}
	d, r := int64(p.DataLen), int64(p.DataLen)+int64(p.RowidLen)
	if d < 0 || p.RowidLen < 0 || p.RleLen < 0 || r+int64(p.RleLen) > int64(len(b[0])) {
		return nil, nil, nil, fault.Rel(0, 0, "data_page_length",
			"%d, %d and %d bytes of data, row ids and runs do not fit in %d", p.DataLen, p.RowidLen, p.RleLen,
			len(b[0]))
	}
	return b[0][:d], b[0][d:r], b[0][r : r+int64(p.RleLen)], nil
}

// Content is a page taken apart.
type Content struct {
	P      *StoredPage
	T      *format.Task
	N      int                // entries; -1 not known
	Raw    []byte             // the values, decompressed; runs spelled out
	rowids []uint32           // entry i of raw is entry rowids[i] of the page; nil: they are in order
	Nulls  []byte             // bit set: null (Java's BitSet, least significant bit first, no bits behind the last one)
	meta   layout.EncoderMeta // of pages that have one
	own    bool               // it has one
}

// Open decompresses a page and reads what stands beside the values.
func (p *StoredPage) Open(t *format.Task, b [][]byte, n int64) (c Content, err error) {
	c = Content{P: p, T: t, N: int(n)}
	data, rowids, runs, err := p.Pieces(b)
	if err != nil {
		return c, err
	}
	if len(p.Meta) > 0 && !p.oldMeasure() {
		cur := wire.NewInnerCursor(p.Meta[0], fault.Span{}, "encoder_meta")
		c.meta = layout.ParseEncoderMeta(cur, p.First() == layout.EncRLEIntegral)
		c.own = true
		if cur.Err() != nil {
			return c, Relative(cur.Err())
		}
	}
	if p.First() == layout.EncRLEIntegral {
		c.Raw = data // runs are not compressed again
	} else if c.Raw, err = codec.Expand(p.Codec, data, p.Limits.Page, t.Scratch.Bytes); err != nil {
		return c, err
	}
	t.Raw += int64(len(c.Raw))
	if err := c.readNulls(); err != nil {
		return c, err
	}
	if p.Encoders.Has(layout.EncRLE) && len(runs) > 0 {
		if err := c.spell(runs); err != nil {
			return c, err
		}
	}
	if p.Encoders.Has(layout.EncInvertedIndex) && len(rowids) > 0 {
		if c.rowids, err = c.readRowIDs(rowids); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Relative makes an error of a structure that was kept apart one without a place.
func Relative(err error) error {
	if e, ok := err.(*fault.Error); ok {
		out := *e
		out.At = fault.Span{}
		return &out
	}
	return err
}

// readNulls decompresses the bits of the nulls.
func (c *Content) readNulls() error {
	pr := c.P.Presence
	if pr == nil || len(pr.Bits) == 0 {
		return nil
	}
	b := pr.Bits // format 1 does not compress them
	if c.P.Version > 1 {
		var err error
		if b, err = codec.Expand(c.P.Codec, pr.Bits, c.P.Limits.Page, c.T.Scratch.Bytes); err != nil {
			return fault.Locate(err, fault.Span{}, false, "presence")
		}
	}
	if pr.Ones {
		return fault.Unsupportedf(fault.Span{}, "presence.represents_presence",
			"bits that stand for values instead of nulls")
	}
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	c.Nulls = b
	return nil
}

// nullsWithin checks that no null is behind the last entry.
func (c *Content) nullsWithin(n int) error {
	if k := len(c.Nulls); k > 0 {
		if last := 8*(k-1) + bits.Len8(c.Nulls[k-1]) - 1; last >= n {
			return fault.Rel(0, 0, "presence", "entry %d is null, there are %d", last, n)
		}
	}
	return nil
}

// spell writes the runs of the values out: pairs of first entry and count, i16 each in format 3.
func (c *Content) spell(stored []byte) error {
	var runs []uint32
	if c.P.Version == 3 {
		runs = c.T.Scratch.Uint32s(len(stored) / 2)
		for i := range runs {
			runs[i] = uint32(binary.BigEndian.Uint16(stored[2*i:]))
		}
	} else {
		var err error
		if runs, err = c.P.Widths.Unpack(stored, c.T.Scratch); err != nil {
			return err
		}
	}
	k := len(runs) / 2
	if k == 0 || len(runs)%2 != 0 || len(c.Raw)%k != 0 {
		return fault.Rel(0, 0, "rle", "%d numbers for %d bytes of values", len(runs), len(c.Raw))
	}
	w := len(c.Raw) / k
	var total uint64
	for i := range k {
		if uint64(runs[2*i]) != total {
			return fault.Rel(0, 0, "rle", "run %d begins at entry %d, the one before ends at %d", i, runs[2*i], total)
		}
		total += uint64(runs[2*i+1])
	}
	if total > MaxPageRows || c.N >= 0 && total != uint64(c.N) {
		return fault.Rel(0, 0, "rle", "%d entries, the page has %d", total, c.N)
	}
	out := c.T.Scratch.Bytes(int(total) * w)
	pos := 0
	for i := range k {
		v := c.Raw[i*w : (i+1)*w]
		end := pos + int(runs[2*i+1])*w
		if pos < end {
			copy(out[pos:], v)
			for done := pos + w; done < end; { // double what is there
				done += copy(out[done:end], out[pos:done])
			}
			pos = end
		}
	}
	c.Raw = out
	return nil
}

// readRowIDs reads the inverted index: i32 size of the ids, then ids, then the positions of those that begin a
// run of which the next id is the end; i16 each in format 3. The result is a permutation of 0…n-1.
func (c *Content) readRowIDs(b []byte) ([]uint32, error) {
	if len(b) < 4 {
		return nil, fault.Rel(0, 0, "rowid", "%d bytes", len(b))
	}
	size := int64(int32(binary.BigEndian.Uint32(b)))
	if size < 0 || size > int64(len(b)-4) {
		return nil, fault.Rel(0, 0, "rowid", "%d bytes of row ids in a page of %d", size, len(b))
	}
	ids, starts := b[4:4+size], b[4+size:]
	if c.P.Version != 3 {
		return c.P.Widths.RowIDs(ids, starts, c.N, c.T.Scratch)
	}
	return permutation(shorts(ids, c.T.Scratch), shorts(starts, c.T.Scratch), c.N, c.T.Scratch)
}

func shorts(b []byte, a *vec.Arena) []uint32 {
	out := a.Uint32s(len(b) / 2)
	for i := range out {
		out[i] = uint32(binary.BigEndian.Uint16(b[2*i:]))
	}
	return out
}

// permutation spells row ids out. starts are the positions in ids where a run from one id to the next begins.
func permutation(ids, starts []uint32, n int, a *vec.Arena) ([]uint32, error) {
	bad := func(format string, args ...any) ([]uint32, error) {
		return nil, fault.Rel(0, 0, "rowid", format, args...)
	}
	if n < 0 || n > MaxPageRows {
		return bad("row ids for %d entries", n)
	}
	out := a.Uint32s(n)
	seen := a.Bytes((n + 7) / 8)
	clear(seen)
	k, s := 0, 0
	for i := 0; i < len(ids); i++ {
		from, to := ids[i], ids[i]
		if s < len(starts) && starts[s] == uint32(i) {
			if i+1 >= len(ids) {
				return bad("a run begins at the last id")
			}
			s++
			i++
			to = ids[i]
		}
		if to < from || uint64(to) >= uint64(n) || int64(to-from) >= int64(n-k) {
			return bad("rows %d to %d of %d", from, to, n)
		}
		for r := from; r <= to; r++ {
			if seen[r>>3]>>(r&7)&1 != 0 {
				return bad("row %d is there twice", r)
			}
			seen[r>>3] |= 1 << (r & 7)
			out[k] = r
			k++
		}
	}
	if k != n || s != len(starts) {
		return bad("%d row ids for %d entries, %d of %d runs", k, n, s, len(starts))
	}
	return out, nil
}

// settle knows how many entries there are: as many as asked for, or as many as there are values of width w.
func (c *Content) settle(w int) error {
	if c.N < 0 {
		c.N = len(c.Raw) / w
	}
	if len(c.Raw) != c.N*w {
		return fault.Rel(0, 0, "", "%d bytes of values, %d entries of %d bytes have %d", len(c.Raw), c.N, w, c.N*w)
	}
	return c.nullsWithin(c.N)
}

// inOrder brings values of w bytes into the order of the rows.
func (c *Content) inOrder(w int) []byte {
	if c.rowids == nil {
		return c.Raw
	}
	out := c.T.Scratch.Bytes(len(c.Raw))
	for i, r := range c.rowids {
		copy(out[int(r)*w:int(r)*w+w], c.Raw[i*w:])
	}
	return out
}

// setNulls clears the validity of the entries from at on that the bits of the nulls name.
func (c *Content) setNulls(dst *vec.Vector, at int) {
	if len(c.Nulls) == 0 {
		return
	}
	valid := dst.Validity()
	k := 0
	for i, x := range c.Nulls {
		for ; x != 0; x &= x - 1 {
			r := at + 8*i + bits.TrailingZeros8(x)
			valid[r>>3] &^= 1 << (r & 7)
			k++
		}
	}
	dst.AddNulls(k)
}

// Decode appends the page's entries to dst.
func (p *StoredPage) Decode(t *format.Task, b [][]byte, n int64, dst *vec.Vector) error {
	c, err := p.Open(t, b, n)
	if err != nil {
		return err
	}
	if err := c.check12(); err != nil {
		return err
	}
	switch {
	case p.Coded:
		return c.codes(dst)
	case p.Global:
		return c.globalCodes(dst)
	case p.oldMeasure():
		return c.measure12(dst)
	case c.own:
		return c.typed(dst)
	case p.Encoders.Has(layout.EncDictionary):
		return c.surrogates(dst)
	case p.Encoders.Has(layout.EncDirectCompressVarchar):
		return c.strings(dst, 4)
	}
	return c.strings(dst, 2)
}

// typed decodes a page with an encoder's metadata.
func (c *Content) typed(dst *vec.Vector) error {
	m, w := &c.meta, c.meta.Store.Width()
	switch c.P.First() {
	case layout.EncRLEIntegral:
		if err := c.integralRuns(); err != nil {
			return err
		}
		return c.whole(dst, c.meta.Schema.Width(), false)
	case layout.EncAdaptiveIntegral, layout.EncAdaptiveDeltaIntegral:
		if w == 0 || m.Store == layout.StoreFloat || m.Store == layout.StoreDouble {
			return c.unknown(dst)
		}
		return c.whole(dst, w, c.P.First() == layout.EncAdaptiveDeltaIntegral)
	case layout.EncAdaptiveFloating, layout.EncAdaptiveDeltaFloating:
		return c.floating(dst, c.P.First() == layout.EncAdaptiveDeltaFloating)
	case layout.EncDirectCompress, layout.EncDirectCompressVarchar, layout.EncBoolByte:
		switch {
		case m.Store == layout.StoreFloat || m.Store == layout.StoreDouble:
			return c.floating(dst, false)
		case w > 0:
			return c.whole(dst, w, false)
		case m.Store == layout.StoreDecimal:
			return c.wideDecimals(dst)
		case c.P.Encoders.Has(layout.EncIntLengthChild), m.Column == layout.PlainLongValue, c.P.Col.Parent == nil:
			return c.strings(dst, 4)
		}
		return c.strings(dst, 2)
	}
	return c.unknown(dst)
}

func (c *Content) unknown(dst *vec.Vector) error {
	return fault.Unsupportedf(fault.Span{}, "encoders", "%s of %s as %s, wanted as %s", c.P.Encoders, c.meta.Schema,
		c.meta.Store, dst.Type)
}

// integralRuns spells RLE_INTEGRAL out: i16 count, the highest bit set if so many values follow and not one;
// big-endian values, which become little-endian.
func (c *Content) integralRuns() error {
	w := c.meta.Schema.Width()
	if w == 0 || c.N < 0 || c.N > MaxPageRows {
		return fault.Rel(0, 0, "encoders", "runs of %s, %d entries", c.meta.Schema, c.N)
	}
	out := c.T.Scratch.Bytes(c.N * w)
	b, at := c.Raw, 0
	for len(b) > 0 {
		if len(b) < 2 {
			return fault.Rel(len(c.Raw)-len(b), len(b), "", "the bytes end within a run")
		}
		head := binary.BigEndian.Uint16(b)
		b = b[2:]
		count, step := int(head&0x7fff), 0
		need := w
		if head&0x8000 != 0 {
			step, need = w, w*count
		}
		if need > len(b) || count*w > len(out)-at {
			return fault.Rel(len(c.Raw)-len(b), 0, "",
				"a run of %d values, %d bytes are left and %d entries wanted", count, len(b), (len(out)-at)/w)
		}
		for i := range count {
			v := b[i*step:]
			for k := range w {
				out[at+k] = v[w-1-k]
			}
			at += w
		}
		b = b[need:]
	}
	if at != len(out) {
		return fault.Rel(0, 0, "", "%d of %d entries", at/w, c.N)
	}
	c.Raw = out
	return nil
}

// codes decodes codes of the chunk's dictionary: big-endian, three bytes each for local dictionaries.
func (c *Content) codes(dst *vec.Vector) error {
	const w = 3
	if err := c.settle(w); err != nil {
		return err
	}
	c.siftCodes(w)
	raw, dict := c.inOrder(w), c.T.Dict
	if dict == nil {
		return fault.Bugf("carbon: codes without a dictionary")
	}
	at := dst.Len()
	if dict.Len() == 0 {
		dst.ExtendNulls(c.N)
		return nil
	}
	codes, ends := dst.ExtendCodes(c.N, dict), dict.Offsets(0)
	nulls := 0
	var valid []byte
	for i := range codes {
		b := raw[3*i:]
		v := uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
		null := v == schema.NullCode
		if !null && (int(v) >= dict.Len() || !dict.Valid(int(v))) {
			if int(v) >= dict.Len() || ends[v] == ends[v+1] {
				return fault.Rel(3*i, 3, "", "code %d is not in the dictionary", v)
			}
			null = true
		}
		if null {
			if valid == nil {
				valid = dst.Validity()
			}
			schema.ClearOne(valid, at+i)
			nulls++
			v = 0
		}
		codes[i] = v
	}
	dst.AddNulls(nulls)
	return nil
}

// strings decodes values with a length before each, of lv bytes.
func (c *Content) strings(dst *vec.Vector, lv int) error {
	switch dst.Type.ID() {
	case arrow.STRING, arrow.BINARY:
	default:
		return c.leaves(dst, lv)
	}
	if c.rowids == nil && c.N >= 0 && len(c.Nulls) == 0 && c.P.Col.Parent == nil {
		return c.texts(dst, lv)
	}
	starts, err := c.Lengths(lv)
	if err != nil {
		return err
	}
	c.siftTexts(starts)
	at := dst.Extend(c.N)
	offs := dst.Offsets(at)
	pos := offs[0]
	room, err := dst.Bytes(pos, int64(len(c.Raw)-lv*c.N))
	if err != nil {
		return err
	}
	isNull := c.nullRule()
	var valid []byte
	nulls, k := 0, 0
	for i := range c.N {
		v := c.Raw[starts[2*i]:starts[2*i+1]]
		if isNull(i, v) {
			if valid == nil {
				valid = dst.Validity()
			}
			schema.ClearOne(valid, at+i)
			nulls++
		} else if c.T.Want.Has(i) {
			k += copy(room[k:], v)
		}
		offs[i+1] = pos + int32(k)
	}
	dst.AddNulls(nulls)
	return nil
}

// texts decodes values with a length before each that are in the order of the rows, in one go. Of those that
// nobody will look at only the length is read, and whether they are null.
func (c *Content) texts(dst *vec.Vector, lv int) error {
	if c.N > len(c.Raw)/lv {
		return fault.Rel(0, len(c.Raw), "", "%d bytes of values are too few for %d", len(c.Raw), c.N)
	}
	at := dst.Extend(c.N)
	offs := dst.Offsets(at)
	room, err := dst.Bytes(offs[0], int64(len(c.Raw)-lv*c.N))
	if err != nil {
		return err
	}
	canBeNull := c.P.Col.Typ != layout.TypeBinary
	var valid []byte
	nulls, k, pos := 0, 0, 0
	first := offs[0]
	for i := range c.N {
		n, err := c.length(pos, lv)
		if err != nil {
			return err
		}
		v := c.Raw[pos+lv : pos+lv+n]
		pos += lv + n
		switch {
		case canBeNull && n == len(schema.NullText) && string(v) == schema.NullText:
			if valid == nil {
				valid = dst.Validity()
			}
			schema.ClearOne(valid, at+i)
			nulls++
		case c.T.Want == nil || c.T.Want.Has(i):
			k += copy(room[k:], v)
		}
		offs[i+1] = first + int32(k)
	}
	if pos != len(c.Raw) {
		return fault.Rel(pos, len(c.Raw)-pos, "", "%d bytes behind the last of %d values", len(c.Raw)-pos, c.N)
	}
	dst.AddNulls(nulls)
	return nil
}

// nullRule says which entries are null: strings by their text, what is null by the bits, and, in lists and
// structs, binary values without bytes.
func (c *Content) nullRule() func(i int, v []byte) bool {
	bit := func(i int) bool { return i>>3 < len(c.Nulls) && c.Nulls[i>>3]>>(i&7)&1 != 0 }
	text := c.P.Col.Typ != layout.TypeBinary
	child := c.P.Col.Parent != nil
	if c.P.Col.Typ == layout.TypeDate {
		return func(i int, v []byte) bool { return len(v) == 0 || string(v) == nullDate || c.Nulls != nil && bit(i) }
	}
	return func(i int, v []byte) bool {
		return text && string(v) == schema.NullText || child && !text && len(v) == 0 || c.Nulls != nil && bit(i)
	}
}

// nullDate is the code for null with its sign turned, as lists and structs keep dates.
const nullDate = "\x80\x00\x00\x01"

// Lengths finds where each value begins and ends, in the order of the rows.
func (c *Content) Lengths(lv int) ([]uint32, error) {
	if c.N < 0 || c.N > len(c.Raw)/lv {
		if c.N >= 0 {
			return nil, fault.Rel(0, len(c.Raw), "", "%d bytes of values are too few for %d", len(c.Raw), c.N)
		}
		if err := c.countLengths(lv); err != nil {
			return nil, err
		}
	}
	if err := c.nullsWithin(c.N); err != nil {
		return nil, err
	}
	out := c.T.Scratch.Uint32s(2 * c.N)
	pos := 0
	for i := range c.N {
		n, err := c.length(pos, lv)
		if err != nil {
			return nil, err
		}
		pos += lv
		r := i
		if c.rowids != nil {
			r = int(c.rowids[i])
		}
		out[2*r], out[2*r+1] = uint32(pos), uint32(pos+n)
		pos += n
	}
	if pos != len(c.Raw) {
		return nil, fault.Rel(pos, len(c.Raw)-pos, "", "%d bytes behind the last of %d values", len(c.Raw)-pos, c.N)
	}
	return out, nil
}

func (c *Content) length(pos, lv int) (n int, err error) {
	b := c.Raw[pos:]
	switch {
	case len(b) < lv:
		return 0, fault.Rel(pos, 0, "", "the bytes end where the length of a value should be")
	case lv == 2:
		n = int(binary.BigEndian.Uint16(b))
	default:
		n = int(int32(binary.BigEndian.Uint32(b)))
	}
	if n < 0 || n > len(b)-lv {
		return 0, fault.Rel(pos, lv, "", "a value of %d bytes, %d are left", n, len(b)-lv)
	}
	return n, nil
}

// countLengths counts the values.
func (c *Content) countLengths(lv int) error {
	c.N = 0
	for pos := 0; pos < len(c.Raw); c.N++ {
		n, err := c.length(pos, lv)
		if err != nil {
			return err
		}
		pos += lv + n
	}
	return nil
}

func PagePath(col string, i int) string { return fmt.Sprintf("%s.page[%d]", col, i) }
