package vec

import (
	"encoding/binary"
	"math"
	"unsafe"

	"stoa/fault"

	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// ExtendCodes appends n entries of a string vector as codes of dict, and returns the codes for the caller to fill.
// Every code, including that of a null entry, must be < dict.Len(), unless dict is empty and all entries are null.
// Codes are expanded when necessary: see Plain.
func (v *Vector) ExtendCodes(n int, dict *Vector) []uint32 {
	if v.coded < v.n && v.dict != dict {
		v.failed = v.Plain()
	}
	v.dict = dict
	at := v.n
	v.n += n
	v.grow(&v.codes, 4*(v.n-v.coded))
	v.extendValid(at)
	return words[uint32](v.codes, v.n-v.coded)[at-v.coded:]
}

// Coded returns the codes and their dictionary if all entries are codes.
func (v *Vector) Coded() (codes []uint32, dict *Vector, ok bool) {
	if v.n == 0 || v.coded > 0 {
		return nil, nil, false
	}
	return words[uint32](v.codes, v.n), v.dict, true
}

// Plain expands codes to their strings. More than 2³¹−1 bytes is an error of class Limit.
func (v *Vector) Plain() error {
	if v.Items != nil {
		if err := v.Items.Plain(); err != nil {
			return err
		}
	}
	if v.failed != nil || v.coded == v.n {
		return v.failed
	}
	codes := words[uint32](v.codes, v.n-v.coded)
	dict := v.dict
	at := v.coded
	first := v.offs == nil
	v.grow(&v.offs, 4*(v.n+1))
	if first {
		words[int32](v.offs, 1)[0] = 0
	}
	offs := words[int32](v.offs, v.n+1)[at:]
	if dict.n == 0 {
		for i := range codes {
			offs[i+1] = offs[0]
		}
		v.coded = v.n
		return nil
	}
	if err := v.gather(offs, codes, at); err != nil {
		return err
	}
	v.coded = v.n
	return nil
}

// Fit returns how many of the first n entries have strings of at most limit bytes in all, if all entries are codes that
// may have to be expanded. It is n for every other vector, and never 0.
func (v *Vector) Fit(n int, limit int64) int {
	codes, dict, ok := v.Coded()
	if !ok || dict.n == 0 {
		return n
	}
	offs := words[int32](dict.offs, dict.n+1)
	longest := dict.longest
	if longest == 0 {
		longest = int64(offs[dict.n]) // no string is longer than all of them together
	}
	if longest*int64(n) <= limit {
		return n
	}
	var total int64
	for i, c := range codes[:n] {
		if total += int64(offs[c+1] - offs[c]); total > limit && i > 0 {
			return i
		}
	}
	return n
}

// gather appends the strings of codes, which are the entries from position at on.
func (v *Vector) gather(offs []int32, codes []uint32, at int) error {
	dict := v.dict
	if v.valid == nil || v.nulls == 0 {
		if dict.short != nil {
			return v.gatherShort(offs, codes, dict.short)
		}
	}
	do := words[int32](dict.offs, dict.n+1)
	total := int64(0)
	end := offs[0]
	for i, c := range codes {
		total += int64(do[c+1] - do[c])
		if total > math.MaxInt32-int64(end) {
			return fault.Limitf(fault.Span{}, "", "the strings of %d entries do not fit one batch", i+1)
		}
	}
	out, err := v.Bytes(end, total)
	if err != nil {
		return err
	}
	src := dict.StringBytes()
	hasNulls := v.valid != nil && v.nulls > 0
	var valid []byte
	if hasNulls {
		valid = v.valid.Buf()
	}
	pos := 0
	for i, c := range codes {
		if hasNulls && !bitutil.BitIsSet(valid, at+i) {
			offs[i+1] = end + int32(pos)
			continue
		}
		a, b := int(do[c]), int(do[c+1])
		if n := b - a; n <= 16 && a+16 <= len(src) {
			// two words whatever the length: the next string overwrites the excess, and Slack absorbs the last
			d, s := out[pos:pos+16], src[a:a+16]
			binary.LittleEndian.PutUint64(d, binary.LittleEndian.Uint64(s))
			binary.LittleEndian.PutUint64(d[8:], binary.LittleEndian.Uint64(s[8:]))
			pos += n
		} else {
			pos += copy(out[pos:], src[a:b])
		}
		offs[i+1] = end + int32(pos)
	}
	return nil
}

// shortWord is a dictionary string of at most 16 bytes, with its length.
type shortWord struct {
	lo, hi uint64
	n      int64
	_      int64 // two to a cache line
}

// maxShort is the maximum number of strings of a dictionary that is converted to a table of short words: the table
// should fit into the first-level cache.
const maxShort = 1 << 12

// AsDict declares that d is a dictionary and will not change any more: from now on several goroutines may read it, and
// expanding codes is faster if its strings are short.
func (d *Vector) AsDict() {
	if d.kind == strs && d.offs != nil && d.data != nil && d.coded == d.n {
		d.data.ResizeNoShrink(int(words[int32](d.offs, d.n+1)[d.n])) // so that no view has to resize it
	}
	if d.kind != strs || d.n == 0 || d.coded < d.n {
		return
	}
	d.noDict()
	d.values = d.arrayData(d.n)
	offs, src := words[int32](d.offs, d.n+1), d.StringBytes()
	for i, end := range offs[1:] {
		d.longest = max(d.longest, int64(end-offs[i]))
	}
	if d.n > maxShort {
		return
	}
	t := make([]shortWord, d.n)
	for i := range t {
		var w [16]byte
		n := int(offs[i+1] - offs[i])
		if n > len(w) {
			return
		}
		copy(w[:], src[offs[i]:offs[i+1]])
		t[i] = shortWord{lo: binary.NativeEndian.Uint64(w[:]), hi: binary.NativeEndian.Uint64(w[8:]), n: int64(n)}
	}
	d.short = t
}

// gatherShort is gather for short words without nulls: two stores per entry, whatever its length. The next entry
// overwrites the excess, and Slack absorbs the last.
func (v *Vector) gatherShort(offs []int32, codes []uint32, table []shortWord) error {
	total, end := int64(0), offs[0]
	for _, c := range codes {
		total += table[c].n
	}
	if total > math.MaxInt32-int64(end) {
		return fault.Limitf(fault.Span{}, "", "the strings of %d entries do not fit one batch", len(codes))
	}
	out, err := v.Bytes(end, total)
	if err != nil {
		return err
	}
	to, last := unsafe.Pointer(unsafe.SliceData(out)), offs[1:][:len(codes)]
	pos := int64(0)
	for i, c := range codes {
		w := &table[c]
		*(*uint64)(unsafe.Add(to, pos)) = w.lo // at most total+16 bytes, and Slack is more than 16
		*(*uint64)(unsafe.Add(to, pos+8)) = w.hi
		pos += w.n
		last[i] = end + int32(pos)
	}
	return nil
}
