package verify

import (
	"fmt"
	"maps"
	"strings"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
)

// pageSort is what encoding_stats tell apart. Writers of data pages v2 call them DATA_PAGE, too, and the
// encoding of a dictionary has several names.
type pageSort struct {
	dictionary bool
	encoding   int32
}

func sortOf(kind, encoding int32) pageSort {
	switch {
	case kind == meta.DictionaryPage:
		return pageSort{dictionary: true}
	case encoding == meta.PlainDictionary:
		encoding = meta.RleDictionary
	}
	return pageSort{encoding: encoding}
}

// encodingsFit holds what the footer says of the encodings of a chunk's pages against their headers. More
// encodings than there are do no harm: writers list those of levels and of dictionaries, and what they meant to
// use.
func (v *verifier) encodingsFit(w *chunkWalk) error {
	m := v.r.Footer.RowGroups[w.group].Columns[w.leaf].MetaData
	listed := map[pageSort]bool{}
	for _, e := range m.Encodings {
		listed[sortOf(meta.DataPage, int32(e))] = true
	}
	there := map[pageSort]int64{}
	if w.dict != nil {
		there[sortOf(meta.DictionaryPage, meta.PlainValues)]++
	}
	for i, p := range w.data {
		s := sortOf(p.Kind, p.Encoding)
		if !listed[s] {
			return fault.Corruptf(v.r.FooterAt, meta.IndexPath(w.group, w.leaf, "encodings"), "%v, but page "+
				"%d is in %s", m.Encodings, i, meta.Named(meta.Encodings, p.Encoding))
		}
		there[s]++
	}
	if len(m.EncodingStats) == 0 {
		return nil
	}
	said := map[pageSort]int64{}
	for _, s := range m.EncodingStats {
		if s.Count != 0 && s.PageType != meta.IndexPage {
			said[sortOf(int32(s.PageType), int32(s.Encoding))] += int64(s.Count)
		}
	}
	if !maps.Equal(said, there) {
		return fault.Corruptf(v.r.FooterAt, meta.IndexPath(w.group, w.leaf, "encoding_stats"), "%s, but there are %s",
			sorts(said), sorts(there))
	}
	return nil
}

// sorts writes numbers of pages.
func sorts(pages map[pageSort]int64) (text string) {
	if n, ok := pages[pageSort{dictionary: true}]; ok {
		text = fmt.Sprintf("%d of dictionaries ", n)
	}
	for e := range int32(len(meta.Encodings)) {
		if n, ok := pages[pageSort{encoding: e}]; ok {
			text += fmt.Sprintf("%d in %s ", n, meta.Named(meta.Encodings, e))
		}
	}
	return strings.TrimSpace(text)
}
