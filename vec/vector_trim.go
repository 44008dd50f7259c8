package vec

// Truncate removes all but the first n entries.
func (v *Vector) Truncate(n int) {
	if n >= v.n {
		return
	}
	if v.valid != nil {
		v.nulls -= countZeros(v.valid.Buf(), n, v.n)
	}
	v.n = n
	v.coded = min(v.coded, n)
	if v.def != nil {
		v.def, v.rep = v.def[:min(n, len(v.def))], v.rep[:min(n, len(v.rep))]
	}
	if v.kind == null {
		v.nulls = n
	}
	if v.kind == list && v.offs != nil {
		v.Items.Truncate(int(words[int32](v.offs, n+1)[n]))
	}
}

// Skip removes the first n entries.
func (v *Vector) Skip(n int) {
	if n == 0 {
		return
	}
	rest := v.n - n
	if v.def != nil {
		v.def, v.rep = append(v.def[:0], v.def[n:]...), append(v.rep[:0], v.rep[n:]...)
	}
	if v.kind == null {
		v.n, v.nulls, v.coded = rest, rest, rest
		return
	}
	if v.valid != nil {
		v.nulls -= countZeros(v.valid.Buf(), 0, n)
		moveBits(v.valid.Buf(), v.valid.Buf(), n, rest)
	}
	if n >= v.coded {
		copy(words[uint32](v.codes, rest), words[uint32](v.codes, v.n-v.coded)[n-v.coded:])
		v.coded = 0
		if v.offs != nil {
			words[int32](v.offs, 1)[0] = 0
		}
		v.n = rest
		if v.kind == strs {
			return
		}
		v.coded = rest
		v.skipPlain(n, rest)
		return
	}
	plain := v.coded - n // remaining entries that are not codes
	v.n, v.coded = rest, plain
	v.skipPlain(n, plain)
}

// Cut removes the entries [from, to).
func (v *Vector) Cut(from, to int) error {
	if to >= v.n {
		v.Truncate(from)
		return nil
	}
	rest, err := New(v.Type, v.mem)
	if err != nil {
		return err
	}
	defer rest.Release()
	if err := rest.appendRun(v, to, v.n); err != nil {
		return err
	}
	v.Truncate(from)
	return v.appendRun(rest, 0, rest.n)
}

// skipPlain moves the k uncoded entries after the first n to the front.
func (v *Vector) skipPlain(n, k int) {
	switch v.kind {
	case fixed:
		if k > 0 {
			copy(v.data.Buf()[:k*v.width], v.data.Buf()[n*v.width:(n+k)*v.width])
		}
	case boolean:
		moveBits(v.data.Buf(), v.data.Buf(), n, k)
	case strs, list:
		o := words[int32](v.offs, n+k+1)
		from, to := o[n], o[n+k]
		for i := range k + 1 {
			o[i] = o[n+i] - from
		}
		if v.kind == list {
			v.Items.Skip(int(from))
		} else if v.data != nil {
			copy(v.data.Buf(), v.data.Buf()[from:to])
		}
	}
}
