package page

import (
	"math"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
)

// dictWriter assigns codes to the strings of a column and so builds its local dictionary, which is stored with each
// blocklet whose pages are all coded. Codes are assigned once per file. When there are too many, the rest of the column
// is written without a dictionary.
type dictWriter struct {
	threshold int // largest number of codes, not counting that of null
	codes     map[string]uint32
	values    []string // indexed by code - 1
	size      int      // bytes of the values with their lengths
	full      bool
}

// maxDictionary is the largest size of a local dictionary in bytes.
const maxDictionary = 4 << 20

func NewDictWriter(threshold int) *dictWriter {
	d := &dictWriter{threshold: threshold, codes: map[string]uint32{}}
	d.values = append(d.values, schema.NullText) // code 1
	return d
}

// codesOf returns the codes of a page; nil if the dictionary is full. Null has code 1. In lists and structs null is an
// ordinary text with a code of its own, as in CarbonData's writer.
func (d *dictWriter) codesOf(w *PageWriter, x *Cells) []uint32 {
	if d.full {
		return nil
	}
	out := make([]uint32, x.N)
	last := -1
	for i := range out {
		v := x.Text(i)
		if x.Null(i) {
			if w.Parent == nil {
				out[i] = schema.NullCode
				continue
			}
			v = []byte(schema.NullText)
		}
		if last >= 0 && !x.Null(i) && !x.Null(last) && string(x.Text(last)) == string(v) {
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

func (d *dictWriter) add(v []byte, w *PageWriter) (uint32, bool) {
	d.size += len(v) + w.lengthBytes()
	code := uint32(len(d.values) + 1)
	if int(code) > d.threshold+1 || d.size > maxDictionary || len(v) > math.MaxInt16 && w.Type != layout.TypeVarchar {
		return 0, false
	}
	d.values = append(d.values, string(v))
	d.codes[string(v)] = code
	return code, true
}

// UnifyPages makes all pages of a blocklet the same kind. If all have codes it returns their dictionary; otherwise it
// rewrites the coded pages without one. It is called when a blocklet is written.
func (w *PageWriter) UnifyPages(pages []*layout.OutPage) *layout.LocalDictionary {
	coded := 0
	for _, p := range pages {
		if p.Codes != nil {
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
		if p.Codes == nil {
			continue
		}
		q := &layout.OutPage{}
		q.DataChunk.Codec, q.Rows, q.MinMax, q.Nulls = w.Codec, p.Rows, p.MinMax, p.Nulls
		w.plain(q, nil, lv, func(i int) []byte { return []byte(w.Dict.values[p.Codes[i]-1]) })
		pages[i] = q
	}
	return nil
}

// dictionary returns the LocalDictionaryChunk of a blocklet: the values of the codes in use, in code order.
func (w *PageWriter) dictionary(pages []*layout.OutPage) *layout.LocalDictionary {
	var used []byte
	for _, p := range pages {
		for _, c := range p.Codes {
			for len(used) <= int(c>>3) {
				used = append(used, 0)
			}
			used[c>>3] |= 1 << (c & 7)
		}
	}
	class, lv := layout.PlainValue, 2
	if w.Type == layout.TypeVarchar {
		class, lv = layout.PlainLongValue, 4
	}
	var raw []byte
	for c := 1; c < 8*len(used); c++ {
		if used[c>>3]>>(c&7)&1 != 0 {
			raw = appendText(raw, []byte(w.Dict.values[c-1]), lv)
		}
	}
	return &layout.LocalDictionary{Encoders: layout.Encodings{layout.EncDirectCompress},
		Meta: [][]byte{compressedMeta(w.Name, class, w.Codec)}, Data: w.compress(raw), Used: w.compress(used)}
}
