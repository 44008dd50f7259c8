package page

import (
	"encoding/binary"
	"errors"
	"fmt"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/codec"
	"stoa/vec"
	"stoa/wire"
)

// Open decompresses a page of n entries, -1 if their number is unknown, and reads its metadata, nulls, runs and row
// ids. b has the bytes of its spans.
func (p *StoredPage) Open(t *format.Task, b [][]byte, n int64) (c Content, err error) {
	c = Content{P: p, T: t, N: int(n)}
	data, rowids, runs, err := p.Pieces(b)
	if err != nil {
		return c, err
	}
	if len(p.Meta) > 0 && !p.v12Measure() {
		cur := wire.NewInnerCursor(p.Meta[0], fault.Span{}, "encoder_meta")
		c.meta = layout.ParseEncoderMeta(cur, p.FirstEncoding() == layout.EncRLEIntegral)
		c.own = true
		if cur.Err() != nil {
			return c, Relative(cur.Err())
		}
		if err := c.checkKind(); err != nil {
			return c, err
		}
	}
	if p.FirstEncoding() == layout.EncRLEIntegral {
		c.Raw = data // runs are not compressed
	} else if c.Raw, err = Expand(p.Codec, c.meta.Codec, data, p.Limits, t); err != nil {
		return c, err
	}
	t.Raw += int64(len(c.Raw))
	if err := c.readNulls(); err != nil {
		return c, err
	}
	if err := c.checkParts(rowids, runs); err != nil {
		return c, err
	}
	if len(runs) > 0 {
		if err := c.expandRuns(runs); err != nil {
			return c, err
		}
	}
	if len(rowids) > 0 {
		if c.rowids, err = c.readRowIDs(rowids); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Expand decompresses the bytes of a column by its compressor_name. twin is the name in the metadata of the encoder, ""
// if there is none. Writers store the same name in both places, so an unknown one is damaged if the other differs, or,
// without another, if it differs from a known name in one byte.
func Expand(name, twin string, b []byte, l format.Limits, t *format.Task) ([]byte, error) {
	out, err := codec.Expand(name, b, l.Page, t.Scratch.Bytes)
	if !errors.Is(err, fault.Unsupported) {
		return out, err
	}
	if twin != "" && twin != name {
		return nil, fault.Rel(0, 0, "chunk_meta.compressor_name", "%q, and the encoder's metadata has %q", name, twin)
	}
	for _, known := range []string{"snappy", "zstd", "gzip"} {
		if twin == "" && bytesDiffer(name, known) == 1 {
			return nil, fault.Rel(0, 0, "chunk_meta.compressor_name", "%q, and %q is known", name, known)
		}
	}
	return nil, err
}

// bytesDiffer counts the bytes in which two names of the same length differ; -1 if the lengths differ.
func bytesDiffer(a, b string) (n int) {
	if len(a) != len(b) {
		return -1
	}
	for i := range len(a) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// checkParts compares the parts of a page with its encoders: it must have row ids if and only if INVERTED_INDEX is
// among them, since otherwise its values would be decoded in the wrong order. RLE permits runs but does not require
// them.
func (c *Content) checkParts(rowids, runs []byte) error {
	switch e := c.P.Encoders; {
	case e.Has(layout.EncInvertedIndex) != (len(rowids) > 0) && c.N != 0:
		return fault.Rel(0, 0, "encoders", "%s contradicts %d bytes of row ids", e, len(rowids))
	case !e.Has(layout.EncRLE) && len(runs) > 0:
		return fault.Rel(0, 0, "encoders", "%s contradicts %d bytes of runs", e, len(runs))
	}
	return nil
}

// readNulls sets the bit set of the nulls.
func (c *Content) readNulls() error {
	pr := c.P.Presence
	if pr == nil || len(pr.Bits) == 0 {
		return nil
	}
	b := pr.Bits // format 1 does not compress them
	if c.P.Version > 1 {
		var err error
		if b, err = Expand(c.P.Codec, c.meta.Codec, pr.Bits, c.P.Limits, c.T); err != nil {
			return fault.Locate(err, fault.Span{}, false, "presence")
		}
	}
	if pr.Ones {
		return fault.Unsupportedf(fault.Span{}, "presence.represents_presence",
			"bits that mark values instead of nulls")
	}
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	c.Nulls = b
	return nil
}

// expandRuns expands the runs of values in Raw. stored has pairs of first entry and count, each i16 in format 3.
func (c *Content) expandRuns(stored []byte) error {
	var runs []uint32
	if c.P.Version == 3 {
		runs = c.T.Scratch.Uint32s(len(stored) / 2)
		for i := range runs {
			runs[i] = uint32(binary.BigEndian.Uint16(stored[2*i:]))
		}
	} else {
		var err error
		if runs, err = c.P.Widths.Runs(stored, c.T.Scratch); err != nil {
			return err
		}
	}
	k := len(runs) / 2
	if k == 0 || len(runs)%2 != 0 || len(c.Raw)%k != 0 {
		return fault.Rel(0, 0, "rle",
			"expected a pair of numbers for each value, found %d numbers for %d bytes of values",
			len(runs), len(c.Raw))
	}
	w := len(c.Raw) / k
	var total uint64
	for i := range k {
		if uint64(runs[2*i]) != total {
			return fault.Rel(0, 0, "rle", "run %d: expected the first entry %d, found %d", i, total, runs[2*i])
		}
		total += uint64(runs[2*i+1])
	}
	if total > MaxPageRows || c.N >= 0 && total != uint64(c.N) {
		return fault.Rel(0, 0, "rle", "expected runs of %d entries, found %d", c.N, total)
	}
	out := c.T.Scratch.Bytes(int(total) * w)
	pos := 0
	for i := range k {
		v := c.Raw[i*w : (i+1)*w]
		end := pos + int(runs[2*i+1])*w
		if pos < end {
			copy(out[pos:], v)
			for done := pos + w; done < end; { // each copy doubles the size
				done += copy(out[done:end], out[pos:done])
			}
			pos = end
		}
	}
	c.Raw = out
	return nil
}

// readRowIDs reads the inverted index: i32 size of the ids in bytes, ids, starts; i16 each in format 3. See
// permutation.
func (c *Content) readRowIDs(b []byte) ([]uint32, error) {
	if len(b) < 4 {
		return nil, fault.Rel(0, 0, "rowid", "expected at least 4 bytes, found %d", len(b))
	}
	size := int64(int32(binary.BigEndian.Uint32(b)))
	if size < 0 || size > int64(len(b)-4) {
		return nil, fault.Rel(0, 0, "rowid", "expected at most %d bytes of row ids, found %d", len(b)-4, size)
	}
	ids, starts := b[4:4+size], b[4+size:]
	if c.P.Version != 3 {
		return c.P.Widths.RowIDs(ids, starts, c.N, c.T.Scratch)
	}
	return permutation(shorts(ids, c.T.Scratch), shorts(starts, c.T.Scratch), c.N, c.T.Scratch)
}

// Decode appends the n entries of a page, -1 if their number is unknown, to dst. b has the bytes of its spans. Errors
// are relative to the page.
func (p *StoredPage) Decode(t *format.Task, b [][]byte, n int64, dst *vec.Vector) error {
	c, err := p.Open(t, b, n)
	if err != nil {
		return err
	}
	if err := c.checkV12(); err != nil {
		return err
	}
	switch {
	case p.Coded:
		return c.codes(dst)
	case p.Global:
		return c.globalCodes(dst)
	case p.v12Measure():
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

// typed decodes a page that has encoder_meta.
func (c *Content) typed(dst *vec.Vector) error {
	m, w := &c.meta, c.meta.Store.Width()
	switch c.P.FirstEncoding() {
	case layout.EncRLEIntegral:
		if err := c.integralRuns(); err != nil {
			return err
		}
		return c.whole(dst, c.meta.Schema.Width(), false)
	case layout.EncAdaptiveIntegral, layout.EncAdaptiveDeltaIntegral:
		if w == 0 || m.Store == layout.StoreFloat || m.Store == layout.StoreDouble {
			return c.unknown(dst)
		}
		return c.whole(dst, w, c.P.FirstEncoding() == layout.EncAdaptiveDeltaIntegral)
	case layout.EncAdaptiveFloating, layout.EncAdaptiveDeltaFloating:
		return c.floating(dst, c.P.FirstEncoding() == layout.EncAdaptiveDeltaFloating)
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

// integralRuns expands RLE_INTEGRAL: an i16 count and a value to repeat or, if the highest bit of the count is set,
// that many single values. Values are converted from big-endian to little-endian.
func (c *Content) integralRuns() error {
	w := c.meta.Schema.Width()
	if w == 0 || c.N < 0 || c.N > MaxPageRows {
		return fault.Rel(0, 0, "encoders", "RLE_INTEGRAL of type %s, %d entries", c.meta.Schema, c.N)
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
				"a run of %s does not fit: %d bytes and %d entries are left", fault.Count(count, "value"), len(b),
				(len(out)-at)/w)
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
		return fault.Rel(0, 0, "", "expected %d entries, found %d", c.N, at/w)
	}
	c.Raw = out
	return nil
}

// codes decodes codes of the chunk's local dictionary: big-endian, three bytes each.
func (c *Content) codes(dst *vec.Vector) error {
	const w = 3
	if err := c.setCount(w); err != nil {
		return err
	}
	c.filterCodes(w)
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
			schema.SetNull(valid, at+i)
			nulls++
			v = 0
		}
		codes[i] = v
	}
	dst.AddNulls(nulls)
	return nil
}

// PagePath is the path of page i of a column in messages.
func PagePath(col string, i int) string { return fmt.Sprintf("%s.page[%d]", col, i) }
