package carbon

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/codec"
	"stoa/vec"
	"stoa/wire"
)

// maxPageRows is far more than any writer puts in a page (32,000 rows in format 3; carbon.blocklet.size, at most 12,000,000, in the older ones).
const maxPageRows = 1 << 24

// maxPageRows3 is more than the 32,000 rows that a page of format 3 has at most: its row ids have 15 bits.
const maxPageRows3 = 1 << 16

// storedPage is a page as its file keeps it. It is what Next learned and Decode needs.
type storedPage struct {
	*dataChunk
	col       *column // of the file
	version   int
	rows      int64 // of the top-level column
	coded     bool  // the values are codes of the chunk's dictionary
	global    bool  // the values are codes of the column's dictionary
	widths    *keyWidths
	limits    format.Limits
	spans     int          // how many of the task's spans are this page's own
	dates     dateRule     // direct dictionaries
	nullCodes []uint32     // of a page of codes below a list or struct
	below     []storedPage // of an array or struct: the pages that tell which of its entries are null
}

// pieces are the stored parts of a page. In format 3 they follow each other, in format 1 each has a span of its own.
func (p *storedPage) pieces(b [][]byte) (data, rowids, runs []byte, err error) {
	if p.spans > 1 {
		data = b[0]
		if i := 1; p.rowidLen > 0 {
			rowids = b[i]
			i++
			if p.rleLen > 0 {
				runs = b[i]
			}
		} else if p.rleLen > 0 {
			runs = b[1]
		}
		return data, rowids, runs, nil
	}
	d, r := int64(p.dataLen), int64(p.dataLen)+int64(p.rowidLen)
	if d < 0 || p.rowidLen < 0 || p.rleLen < 0 || r+int64(p.rleLen) > int64(len(b[0])) {
		return nil, nil, nil, fault.Rel(0, 0, "data_page_length", "%d, %d and %d bytes of data, row ids and runs do not fit in %d", p.dataLen, p.rowidLen, p.rleLen, len(b[0]))
	}
	return b[0][:d], b[0][d:r], b[0][r : r+int64(p.rleLen)], nil
}

// content is a page taken apart.
type content struct {
	p      *storedPage
	t      *format.Task
	n      int         // entries; -1 not known
	raw    []byte      // the values, decompressed; runs spelled out
	rowids []uint32    // entry i of raw is entry rowids[i] of the page; nil: they are in order
	nulls  []byte      // bit set: null (Java's BitSet, least significant bit first, no bits behind the last one)
	meta   encoderMeta // of pages that have one
	own    bool        // it has one
}

// open decompresses a page and reads what stands beside the values.
func (p *storedPage) open(t *format.Task, b [][]byte, n int64) (c content, err error) {
	c = content{p: p, t: t, n: int(n)}
	data, rowids, runs, err := p.pieces(b)
	if err != nil {
		return c, err
	}
	if len(p.meta) > 0 && !p.oldMeasure() {
		cur := wire.NewInnerCursor(p.meta[0], fault.Span{}, "encoder_meta")
		c.meta = parseEncoderMeta(cur, p.first() == encRLEIntegral)
		c.own = true
		if cur.Err() != nil {
			return c, relative(cur.Err())
		}
	}
	if p.first() == encRLEIntegral {
		c.raw = data // runs are not compressed again
	} else if c.raw, err = codec.Expand(p.codec, data, p.limits.Page, t.Scratch.Bytes); err != nil {
		return c, err
	}
	t.Raw += int64(len(c.raw))
	if err := c.readNulls(); err != nil {
		return c, err
	}
	if p.encoders.has(encRLE) && len(runs) > 0 {
		if err := c.spell(runs); err != nil {
			return c, err
		}
	}
	if p.encoders.has(encInvertedIndex) && len(rowids) > 0 {
		if c.rowids, err = c.readRowIDs(rowids); err != nil {
			return c, err
		}
	}
	return c, nil
}

// relative makes an error of a structure that was kept apart one without a place.
func relative(err error) error {
	if e, ok := err.(*fault.Error); ok {
		out := *e
		out.At = fault.Span{}
		return &out
	}
	return err
}

// readNulls decompresses the bits of the nulls.
func (c *content) readNulls() error {
	pr := c.p.presence
	if pr == nil || len(pr.bits) == 0 {
		return nil
	}
	b := pr.bits // format 1 does not compress them
	if c.p.version > 1 {
		var err error
		if b, err = codec.Expand(c.p.codec, pr.bits, c.p.limits.Page, c.t.Scratch.Bytes); err != nil {
			return fault.Locate(err, fault.Span{}, false, "presence")
		}
	}
	if pr.ones {
		return fault.Unsupportedf(fault.Span{}, "presence.represents_presence", "bits that stand for values instead of nulls")
	}
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	c.nulls = b
	return nil
}

// nullsWithin checks that no null is behind the last entry.
func (c *content) nullsWithin(n int) error {
	if k := len(c.nulls); k > 0 {
		if last := 8*(k-1) + bits.Len8(c.nulls[k-1]) - 1; last >= n {
			return fault.Rel(0, 0, "presence", "entry %d is null, there are %d", last, n)
		}
	}
	return nil
}

// spell writes the runs of the values out: pairs of first entry and count, i16 each in format 3.
func (c *content) spell(stored []byte) error {
	var runs []uint32
	if c.p.version == 3 {
		runs = c.t.Scratch.Uint32s(len(stored) / 2)
		for i := range runs {
			runs[i] = uint32(binary.BigEndian.Uint16(stored[2*i:]))
		}
	} else {
		var err error
		if runs, err = c.p.widths.unpack(stored, c.t.Scratch); err != nil {
			return err
		}
	}
	k := len(runs) / 2
	if k == 0 || len(runs)%2 != 0 || len(c.raw)%k != 0 {
		return fault.Rel(0, 0, "rle", "%d numbers for %d bytes of values", len(runs), len(c.raw))
	}
	w := len(c.raw) / k
	var total uint64
	for i := range k {
		if uint64(runs[2*i]) != total {
			return fault.Rel(0, 0, "rle", "run %d begins at entry %d, the one before ends at %d", i, runs[2*i], total)
		}
		total += uint64(runs[2*i+1])
	}
	if total > maxPageRows || c.n >= 0 && total != uint64(c.n) {
		return fault.Rel(0, 0, "rle", "%d entries, the page has %d", total, c.n)
	}
	out := c.t.Scratch.Bytes(int(total) * w)
	pos := 0
	for i := range k {
		v := c.raw[i*w : (i+1)*w]
		end := pos + int(runs[2*i+1])*w
		if pos < end {
			copy(out[pos:], v)
			for done := pos + w; done < end; { // double what is there
				done += copy(out[done:end], out[pos:done])
			}
			pos = end
		}
	}
	c.raw = out
	return nil
}

// readRowIDs reads the inverted index: i32 size of the ids, then ids, then the positions of those that begin a run of which
// the next id is the end; i16 each in format 3. The result is a permutation of 0…n-1.
func (c *content) readRowIDs(b []byte) ([]uint32, error) {
	if len(b) < 4 {
		return nil, fault.Rel(0, 0, "rowid", "%d bytes", len(b))
	}
	size := int64(int32(binary.BigEndian.Uint32(b)))
	if size < 0 || size > int64(len(b)-4) {
		return nil, fault.Rel(0, 0, "rowid", "%d bytes of row ids in a page of %d", size, len(b))
	}
	ids, starts := b[4:4+size], b[4+size:]
	if c.p.version != 3 {
		return c.p.widths.rowIDs(ids, starts, c.n, c.t.Scratch)
	}
	return permutation(shorts(ids, c.t.Scratch), shorts(starts, c.t.Scratch), c.n, c.t.Scratch)
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
	if n < 0 || n > maxPageRows {
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
func (c *content) settle(w int) error {
	if c.n < 0 {
		c.n = len(c.raw) / w
	}
	if len(c.raw) != c.n*w {
		return fault.Rel(0, 0, "", "%d bytes of values, %d entries of %d bytes have %d", len(c.raw), c.n, w, c.n*w)
	}
	return c.nullsWithin(c.n)
}

// inOrder brings values of w bytes into the order of the rows.
func (c *content) inOrder(w int) []byte {
	if c.rowids == nil {
		return c.raw
	}
	out := c.t.Scratch.Bytes(len(c.raw))
	for i, r := range c.rowids {
		copy(out[int(r)*w:int(r)*w+w], c.raw[i*w:])
	}
	return out
}

// setNulls clears the validity of the entries from at on that the bits of the nulls name.
func (c *content) setNulls(dst *vec.Vector, at int) {
	if len(c.nulls) == 0 {
		return
	}
	valid := dst.Validity()
	k := 0
	for i, x := range c.nulls {
		for ; x != 0; x &= x - 1 {
			r := at + 8*i + bits.TrailingZeros8(x)
			valid[r>>3] &^= 1 << (r & 7)
			k++
		}
	}
	dst.AddNulls(k)
}

// clearOne makes entry i null.
func clearOne(valid []byte, i int) { valid[i>>3] &^= 1 << (i & 7) }

// decode appends the page's entries to dst.
func (p *storedPage) decode(t *format.Task, b [][]byte, n int64, dst *vec.Vector) error {
	c, err := p.open(t, b, n)
	if err != nil {
		return err
	}
	if err := c.check12(); err != nil {
		return err
	}
	switch {
	case p.coded:
		return c.codes(dst)
	case p.global:
		return c.globalCodes(dst)
	case p.oldMeasure():
		return c.measure12(dst)
	case c.own:
		return c.typed(dst)
	case p.encoders.has(encDictionary):
		return c.surrogates(dst)
	case p.encoders.has(encDirectCompressVarchar):
		return c.strings(dst, 4)
	}
	return c.strings(dst, 2)
}

// typed decodes a page with an encoder's metadata.
func (c *content) typed(dst *vec.Vector) error {
	m, w := &c.meta, c.meta.store.width()
	switch c.p.first() {
	case encRLEIntegral:
		if err := c.integralRuns(); err != nil {
			return err
		}
		return c.whole(dst, c.meta.schema.width(), false)
	case encAdaptiveIntegral, encAdaptiveDeltaIntegral:
		if w == 0 || m.store == storeFloat || m.store == storeDouble {
			return c.unknown(dst)
		}
		return c.whole(dst, w, c.p.first() == encAdaptiveDeltaIntegral)
	case encAdaptiveFloating, encAdaptiveDeltaFloating:
		return c.floating(dst, c.p.first() == encAdaptiveDeltaFloating)
	case encDirectCompress, encDirectCompressVarchar, encBoolByte:
		switch {
		case m.store == storeFloat || m.store == storeDouble:
			return c.floating(dst, false)
		case w > 0:
			return c.whole(dst, w, false)
		case m.store == storeDecimal:
			return c.wideDecimals(dst)
		case c.p.encoders.has(encIntLengthChild), m.column == plainLongValue, c.p.col.parent == nil:
			return c.strings(dst, 4)
		}
		return c.strings(dst, 2)
	}
	return c.unknown(dst)
}

func (c *content) unknown(dst *vec.Vector) error {
	return fault.Unsupportedf(fault.Span{}, "encoders", "%s of %s as %s, wanted as %s", c.p.encoders, c.meta.schema, c.meta.store, dst.Type)
}

// integralRuns spells RLE_INTEGRAL out: i16 count, the highest bit set if so many values follow and not one; big-endian values,
// which become little-endian.
func (c *content) integralRuns() error {
	w := c.meta.schema.width()
	if w == 0 || c.n < 0 || c.n > maxPageRows {
		return fault.Rel(0, 0, "encoders", "runs of %s, %d entries", c.meta.schema, c.n)
	}
	out := c.t.Scratch.Bytes(c.n * w)
	b, at := c.raw, 0
	for len(b) > 0 {
		if len(b) < 2 {
			return fault.Rel(len(c.raw)-len(b), len(b), "", "the bytes end within a run")
		}
		head := binary.BigEndian.Uint16(b)
		b = b[2:]
		count, step := int(head&0x7fff), 0
		need := w
		if head&0x8000 != 0 {
			step, need = w, w*count
		}
		if need > len(b) || count*w > len(out)-at {
			return fault.Rel(len(c.raw)-len(b), 0, "", "a run of %d values, %d bytes are left and %d entries wanted", count, len(b), (len(out)-at)/w)
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
		return fault.Rel(0, 0, "", "%d of %d entries", at/w, c.n)
	}
	c.raw = out
	return nil
}

// codes decodes codes of the chunk's dictionary: big-endian, three bytes each for local dictionaries.
func (c *content) codes(dst *vec.Vector) error {
	const w = 3
	if err := c.settle(w); err != nil {
		return err
	}
	c.siftCodes(w)
	raw, dict := c.inOrder(w), c.t.Dict
	if dict == nil {
		return fault.Bugf("carbon: codes without a dictionary")
	}
	at := dst.Len()
	if dict.Len() == 0 {
		dst.ExtendNulls(c.n)
		return nil
	}
	codes, ends := dst.ExtendCodes(c.n, dict), dict.Offsets(0)
	nulls := 0
	var valid []byte
	for i := range codes {
		b := raw[3*i:]
		v := uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
		null := v == nullCode
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
			clearOne(valid, at+i)
			nulls++
			v = 0
		}
		codes[i] = v
	}
	dst.AddNulls(nulls)
	return nil
}

// nullCode is the code that stands for null in every dictionary.
const nullCode = 1

// nullText is what stands for a null string.
const nullText = "@NU#LL$!"

// strings decodes values with a length before each, of lv bytes.
func (c *content) strings(dst *vec.Vector, lv int) error {
	switch dst.Type.ID() {
	case arrow.STRING, arrow.BINARY:
	default:
		return c.leaves(dst, lv)
	}
	if c.rowids == nil && c.n >= 0 && len(c.nulls) == 0 && c.p.col.parent == nil {
		return c.texts(dst, lv)
	}
	starts, err := c.lengths(lv)
	if err != nil {
		return err
	}
	c.siftTexts(starts)
	at := dst.Extend(c.n)
	offs := dst.Offsets(at)
	pos := offs[0]
	room, err := dst.Bytes(pos, int64(len(c.raw)-lv*c.n))
	if err != nil {
		return err
	}
	isNull := c.nullRule()
	var valid []byte
	nulls, k := 0, 0
	for i := range c.n {
		v := c.raw[starts[2*i]:starts[2*i+1]]
		if isNull(i, v) {
			if valid == nil {
				valid = dst.Validity()
			}
			clearOne(valid, at+i)
			nulls++
		} else if c.t.Want.Has(i) {
			k += copy(room[k:], v)
		}
		offs[i+1] = pos + int32(k)
	}
	dst.AddNulls(nulls)
	return nil
}

// texts decodes values with a length before each that are in the order of the rows, in one go. Of those that nobody will look at only
// the length is read, and whether they are null.
func (c *content) texts(dst *vec.Vector, lv int) error {
	if c.n > len(c.raw)/lv {
		return fault.Rel(0, len(c.raw), "", "%d bytes of values are too few for %d", len(c.raw), c.n)
	}
	at := dst.Extend(c.n)
	offs := dst.Offsets(at)
	room, err := dst.Bytes(offs[0], int64(len(c.raw)-lv*c.n))
	if err != nil {
		return err
	}
	canBeNull := c.p.col.typ != typeBinary
	var valid []byte
	nulls, k, pos := 0, 0, 0
	first := offs[0]
	for i := range c.n {
		n, err := c.length(pos, lv)
		if err != nil {
			return err
		}
		v := c.raw[pos+lv : pos+lv+n]
		pos += lv + n
		switch {
		case canBeNull && n == len(nullText) && string(v) == nullText:
			if valid == nil {
				valid = dst.Validity()
			}
			clearOne(valid, at+i)
			nulls++
		case c.t.Want == nil || c.t.Want.Has(i):
			k += copy(room[k:], v)
		}
		offs[i+1] = first + int32(k)
	}
	if pos != len(c.raw) {
		return fault.Rel(pos, len(c.raw)-pos, "", "%d bytes behind the last of %d values", len(c.raw)-pos, c.n)
	}
	dst.AddNulls(nulls)
	return nil
}

// nullRule says which entries are null: strings by their text, what is null by the bits, and, in lists and structs, binary
// values without bytes.
func (c *content) nullRule() func(i int, v []byte) bool {
	bit := func(i int) bool { return i>>3 < len(c.nulls) && c.nulls[i>>3]>>(i&7)&1 != 0 }
	text := c.p.col.typ != typeBinary
	child := c.p.col.parent != nil
	if c.p.col.typ == typeDate {
		return func(i int, v []byte) bool { return len(v) == 0 || string(v) == nullDate || c.nulls != nil && bit(i) }
	}
	return func(i int, v []byte) bool {
		return text && string(v) == nullText || child && !text && len(v) == 0 || c.nulls != nil && bit(i)
	}
}

// nullDate is the code for null with its sign turned, as lists and structs keep dates.
const nullDate = "\x80\x00\x00\x01"

// lengths finds where each value begins and ends, in the order of the rows.
func (c *content) lengths(lv int) ([]uint32, error) {
	if c.n < 0 || c.n > len(c.raw)/lv {
		if c.n >= 0 {
			return nil, fault.Rel(0, len(c.raw), "", "%d bytes of values are too few for %d", len(c.raw), c.n)
		}
		if err := c.countLengths(lv); err != nil {
			return nil, err
		}
	}
	if err := c.nullsWithin(c.n); err != nil {
		return nil, err
	}
	out := c.t.Scratch.Uint32s(2 * c.n)
	pos := 0
	for i := range c.n {
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
	if pos != len(c.raw) {
		return nil, fault.Rel(pos, len(c.raw)-pos, "", "%d bytes behind the last of %d values", len(c.raw)-pos, c.n)
	}
	return out, nil
}

func (c *content) length(pos, lv int) (n int, err error) {
	b := c.raw[pos:]
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
func (c *content) countLengths(lv int) error {
	c.n = 0
	for pos := 0; pos < len(c.raw); c.n++ {
		n, err := c.length(pos, lv)
		if err != nil {
			return err
		}
		pos += lv + n
	}
	return nil
}

func pagePath(col string, i int) string { return fmt.Sprintf("%s.page[%d]", col, i) }
