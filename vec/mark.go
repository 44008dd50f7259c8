package vec

// Mark is the state of a vector before entries were appended: see Rollback.
type Mark struct {
	n, nulls, coded int
	valid, bits     byte  // the bytes of the bitmaps that entries n-1 and n share
	hasValid        bool  // there was a validity bitmap
	levels          bool  // there were levels
	off             int32 // where the values of entry n begin; if the last entry is a code, the length of its string
	items           *Mark
}

// Mark records the state of v. Its cost does not depend on the size of v.
func (v *Vector) Mark() Mark {
	m := Mark{n: v.n, nulls: v.nulls, coded: v.coded, hasValid: v.valid != nil, levels: v.def != nil}
	if at := v.n >> 3; v.n&7 != 0 {
		if v.valid != nil {
			m.valid = v.valid.Buf()[at]
		}
		if v.kind == boolean {
			m.bits = v.data.Buf()[at]
		}
	}
	switch {
	case v.coded < v.n:
		m.off = v.lastCoded()
	case v.offs != nil:
		m.off = words[int32](v.offs, v.n+1)[v.n]
	}
	if v.Items != nil {
		items := v.Items.Mark()
		m.items = &items
	}
	return m
}

// lastCoded returns how many bytes the last entry, which is a code, has when expanded.
func (v *Vector) lastCoded() int32 {
	if v.dict.n == 0 || v.nulls > 0 && !v.Valid(v.n-1) {
		return 0
	}
	c := words[uint32](v.codes, v.n-v.coded)[v.n-v.coded-1]
	o := words[int32](v.dict.offs, v.dict.n+1)
	return o[c+1] - o[c]
}

// Rollback restores v to its state at m, after entries were appended by a decoder that may have stopped anywhere. A
// page that fails leaves no trace in what it shares with the previous page: the offset between them, the bytes of
// bitmaps that hold bits of both, and the number of nulls. Codes that had to be expanded for the page remain expanded.
func (v *Vector) Rollback(m Mark) {
	if m.n > v.n { // entries were removed, and cannot be restored
		return
	}
	v.n, v.nulls, v.coded = m.n, m.nulls, min(v.coded, m.n)
	switch {
	case v.valid != nil && !m.hasValid:
		v.valid.Release()
		v.valid = nil
	case v.valid != nil && v.n&7 != 0:
		v.valid.Buf()[v.n>>3] = m.valid
	}
	if v.kind == boolean && v.n&7 != 0 {
		v.data.Buf()[v.n>>3] = m.bits
	}
	if v.offs != nil && v.coded == v.n && v.failed == nil {
		o := words[int32](v.offs, v.n+1)
		o[v.n] = m.off
		if m.coded < m.n { // expanded since
			o[v.n] += o[v.n-1]
		}
	}
	switch {
	case !m.levels:
		v.def, v.rep = nil, nil
	default:
		v.def, v.rep = v.def[:min(m.n, len(v.def))], v.rep[:min(m.n, len(v.rep))]
	}
	if v.Items != nil {
		v.Items.Rollback(*m.items)
	}
}
