package verify

import (
	"fmt"
	"maps"
	"strings"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
)

// pageClass is the distinction that encoding_stats make. Writers of data pages v2 call these DATA_PAGE too, and the
// encoding of a dictionary has several names.
type pageClass struct {
	dictionary bool
	encoding   int32
}

func classOf(kind, encoding int32) pageClass {
	switch {
	case kind == meta.DictionaryPage:
		return pageClass{dictionary: true}
	case encoding == meta.PlainDictionary:
		encoding = meta.RleDictionary
	}
	return pageClass{encoding: encoding}
}

// checkEncodings compares the footer's claims about the encodings of a chunk's pages with the page headers. Extra
// encodings are harmless: writers list those of levels and dictionaries, and those they meant to use.
func (v *verifier) checkEncodings(w *chunkWalk) error {
	m := v.r.Footer.RowGroups[w.group].Columns[w.leaf].MetaData
	listed := map[pageClass]bool{}
	for _, e := range m.Encodings {
		listed[classOf(meta.DataPage, int32(e))] = true
	}
	there := map[pageClass]int64{}
	if w.dict != nil {
		there[classOf(meta.DictionaryPage, meta.PlainValues)]++
	}
	for i, p := range w.data {
		s := classOf(p.Kind, p.Encoding)
		if !listed[s] {
			return fault.Corruptf(v.r.FooterAt, meta.IndexPath(w.group, w.leaf, "encodings"), "%v, but page "+
				"%d is in %s", m.Encodings, i, meta.EnumName(meta.Encodings, p.Encoding))
		}
		there[s]++
	}
	if len(m.EncodingStats) == 0 {
		return nil
	}
	said := map[pageClass]int64{}
	for _, s := range m.EncodingStats {
		if s.Count != 0 && s.PageType != meta.IndexPage {
			said[classOf(int32(s.PageType), int32(s.Encoding))] += int64(s.Count)
		}
	}
	if !maps.Equal(said, there) {
		return fault.Corruptf(v.r.FooterAt, meta.IndexPath(w.group, w.leaf, "encoding_stats"), "%s, but there are %s",
			classCounts(said), classCounts(there))
	}
	return nil
}

// classCounts formats numbers of pages.
func classCounts(pages map[pageClass]int64) (text string) {
	if n, ok := pages[pageClass{dictionary: true}]; ok {
		text = fmt.Sprintf("%d of dictionaries ", n)
	}
	for e := range int32(len(meta.Encodings)) {
		if n, ok := pages[pageClass{encoding: e}]; ok {
			text += fmt.Sprintf("%d in %s ", n, meta.EnumName(meta.Encodings, e))
		}
	}
	return strings.TrimSpace(text)
}
