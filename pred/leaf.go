package pred

import (
	"slices"
	"sort"
)

// leafKind is the kind of test of a leaf.
type leafKind uint8

const (
	leafNull   leafKind = iota + 1 // the cell is null
	leafNever                      // TRUE for no cell, null or not, negated or not
	leafRange                      // from lo to hi
	leafSet                        // one of keys or texts
	leafEqual                      // equals text
	leafText                       // from … to, excluding to
	leafPrefix                     // begins with text
	leafLike                       // matches like
)

// leaf is the test of a bound node: a set of values, or with neg its complement. Except for leafNull it is never TRUE
// for a null.
type leaf struct {
	dom   domain
	kind  leafKind
	neg   bool
	empty bool // leafRange: the range from lo to hi is empty

	lo, hi num // leafRange: the inclusive limits; leafSet: the smallest and largest key
	keys   []num

	text     string
	from, to string // the values of the kinds on bytes lie in this range, which excludes to
	open     bool   // there is no upper limit
	texts    map[string]struct{}
	sorted   []string
	like     *pattern

	low64, span64 uint64   // lo and hi-lo, for classes of up to 64 bits
	keys64        []uint64 // keys minus low64
	bitmap        []uint64 // keys64 as bits, with a 0 after the last, if they are close together
}

func (l *leaf) setRange(lo, hi num) {
	l.kind, l.lo, l.hi = leafRange, lo, hi
	l.low64, l.span64 = lo[3], hi[3]-lo[3]
}

// invert replaces a negative leaf, whose range begins or ends with the domain, by the positive leaf for the rest.
func (l *leaf) invert() {
	l.neg = false
	if l.lo == l.dom.min {
		l.setRange(l.hi.next(), l.dom.max)
	} else {
		l.setRange(l.dom.min, l.lo.prev())
	}
}

// setList makes l a test for membership in keys or texts, which are sorted.
func (l *leaf) setList(keys []num, texts []string) {
	l.keys, l.sorted = keys, texts
	switch {
	case len(keys) > 0:
		l.setRange(keys[0], keys[len(keys)-1])
		l.kind = leafSet
		if l.dom.class == classWide {
			return
		}
		for _, k := range keys {
			l.keys64 = append(l.keys64, k[3]-l.low64)
		}
		if l.span64 < max(4096, 64*uint64(len(keys))) {
			l.bitmap = make([]uint64, (l.span64+1)/64+1)
			for _, k := range l.keys64 {
				l.bitmap[k/64] |= 1 << (k % 64)
			}
		}
	case len(texts) > 0:
		l.from, l.to = texts[0], texts[len(texts)-1]+"\x00"
		l.texts = make(map[string]struct{}, len(texts))
		for _, t := range texts {
			l.texts[t] = struct{}{}
		}
	default:
		l.kind, l.empty = leafRange, true
	}
}

// has64 reports whether the value low64+d, of a class of up to 64 bits, is in the set.
func (l *leaf) has64(d uint64) bool {
	if d > l.span64 {
		return false
	}
	if l.bitmap != nil {
		return l.bitmap[d/64]>>(d%64)&1 != 0
	}
	_, ok := slices.BinarySearch(l.keys64, d)
	return ok
}

// hasNum reports whether n is in the set.
func (l *leaf) hasNum(n num) bool {
	_, ok := slices.BinarySearchFunc(l.keys, n, num.cmp)
	return ok
}

// hasText reports whether b is in the set or range of a leaf on bytes.
func (l *leaf) hasText(b []byte) bool {
	switch l.kind {
	case leafEqual:
		return string(b) == l.text
	case leafPrefix:
		return len(b) >= len(l.text) && string(b[:len(l.text)]) == l.text
	case leafText:
		return string(b) >= l.from && (l.open || string(b) < l.to)
	case leafSet:
		_, ok := l.texts[string(b)]
		return ok
	case leafLike:
		return l.like.match(b)
	}
	return false
}

// keysIn returns the number of keys from lo to hi.
func (l *leaf) keysIn(lo, hi num) int {
	first := sort.Search(len(l.keys), func(i int) bool { return l.keys[i].cmp(lo) >= 0 })
	end := sort.Search(len(l.keys), func(i int) bool { return l.keys[i].cmp(hi) > 0 })
	return max(0, end-first)
}
