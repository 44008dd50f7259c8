package carbon

import (
	"math"
)

// dictWriter gives codes to the strings of a column: the local dictionary, which a blocklet whose pages are all coded keeps beside
// them. Codes are given out once a file; when there are too many, the column goes on without.
type dictWriter struct {
	threshold int // most codes, without that of null
	codes     map[string]uint32
	values    []string // by code - 1
	size      int      // of the values with their lengths
	full      bool
}

// Local dictionaries have at most so many bytes.
const maxDictionary = 4 << 20

func newDictWriter(threshold int) *dictWriter {
	d := &dictWriter{threshold: threshold, codes: map[string]uint32{}}
	d.values = append(d.values, nullText) // code 1
	return d
}

// codesOf gives the codes of a page; nil if the dictionary is full. Null is code 1; within lists and structs it is a text like
// others, with a code of its own, as the real writer has it.
func (d *dictWriter) codesOf(w *pageWriter, x *cells) []uint32 {
	if d.full {
		return nil
	}
	out := make([]uint32, x.n)
	last := -1
	for i := range out {
		v := x.text(i)
		if x.null(i) {
			if w.parent == nil {
				out[i] = nullCode
				continue
			}
			v = []byte(nullText)
		}
		if last >= 0 && !x.null(i) && !x.null(last) && string(x.text(last)) == string(v) {
			out[i], last = out[last], i
			continue
		}
		code, ok := d.codes[string(v)]
		if !ok {
			if code, ok = d.add(v, w); !ok {
				d.full = true
				return nil
			}
		}
		out[i], last = code, i
	}
	return out
}

func (d *dictWriter) add(v []byte, w *pageWriter) (uint32, bool) {
	d.size += len(v) + w.lengthBytes()
	code := uint32(len(d.values) + 1)
	if int(code) > d.threshold+1 || d.size > maxDictionary || len(v) > math.MaxInt16 && w.typ != typeVarchar {
		return 0, false
	}
	d.values = append(d.values, string(v))
	d.codes[string(v)] = code
	return code, true
}

// settle makes the pages of a blocklet one kind: with a dictionary if all have codes; else those that have are written anew.
// It is done when a blocklet is written.
func (w *pageWriter) settle(pages []*outPage) *localDictionary {
	coded := 0
	for _, p := range pages {
		if p.codes != nil {
			coded++
		}
	}
	if coded == 0 {
		return nil
	}
	if coded == len(pages) {
		return w.dictionary(pages)
	}
	lv := w.lengthBytes()
	for i, p := range pages {
		if p.codes == nil {
			continue
		}
		q := &outPage{}
		q.dataChunk.codec, q.rows, q.minMax, q.nulls = w.codec, p.rows, p.minMax, p.nulls
		w.plain(q, nil, lv, func(i int) []byte { return []byte(w.dict.values[p.codes[i]-1]) })
		pages[i] = q
	}
	return nil
}

// dictionary makes the LocalDictionaryChunk of a blocklet: the values of the codes that are used, in the order of the codes.
func (w *pageWriter) dictionary(pages []*outPage) *localDictionary {
	var used []byte
	for _, p := range pages {
		for _, c := range p.codes {
			for len(used) <= int(c>>3) {
				used = append(used, 0)
			}
			used[c>>3] |= 1 << (c & 7)
		}
	}
	class, lv := plainValue, 2
	if w.typ == typeVarchar {
		class, lv = plainLongValue, 4
	}
	var raw []byte
	for c := 1; c < 8*len(used); c++ {
		if used[c>>3]>>(c&7)&1 != 0 {
			raw = appendText(raw, []byte(w.dict.values[c-1]), lv)
		}
	}
	return &localDictionary{encoders: encodings{encDirectCompress}, meta: [][]byte{bareMeta(w.name, class, w.codec)}, data: w.compress(raw), used: w.compress(used)}
}
