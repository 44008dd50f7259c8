package recovery

import (
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/table"
)

// chunk is a recovered column chunk: its name, its rows, its size in bytes, and the number of unparsed bytes before it.
type chunk struct {
	name             string
	values, size, at int64
	lists            bool
}

// TestRowGroupsBeginWhereRowsChange: the first chunk of a file is lost, and its size, which differs from that of the
// column in other row groups, is no evidence. Where the number of rows changes between chunks, a row group begins; but
// not across unparsed bytes, nor where a column has lists, nor if two places contradict each other.
func TestRowGroupsBeginWhereRowsChange(t *testing.T) {
	for what, x := range map[string]struct {
		chunks []chunk
		want   string
	}{
		"the last row group is shorter": {[]chunk{{"b", 50, 100, 300, false}, {"c", 50, 100, 0, false},
			{"a", 50, 100, 0, false}, {"b", 50, 100, 0, false}, {"c", 50, 100, 0, false},
			{"a", 19, 100, 0, false}, {"b", 19, 100, 0, false}, {"c", 19, 100, 0, false}}, "a b c"},
		"each row group has other rows": {[]chunk{{"c", 50, 100, 300, false}, {"a", 40, 100, 0, false},
			{"b", 40, 100, 0, false}, {"c", 40, 100, 0, false}, {"a", 30, 100, 0, false},
			{"b", 30, 100, 0, false}}, "a b c"},
		"all have the same": {[]chunk{{"b", 50, 100, 300, false}, {"c", 50, 100, 0, false},
			{"a", 50, 100, 0, false}, {"b", 50, 100, 0, false}}, "b c a"},
		"other rows after a gap": {[]chunk{{"b", 50, 100, 300, false}, {"c", 50, 100, 0, false},
			{"a", 19, 100, 7, false}, {"b", 19, 100, 0, false}}, "b c a"},
		"other rows of a list": {[]chunk{{"b", 50, 100, 300, false}, {"c", 50, 100, 0, false},
			{"a", 70, 100, 0, true}, {"b", 50, 100, 0, false}}, "b c a"},
		"two places": {[]chunk{{"b", 50, 100, 300, false}, {"c", 50, 100, 0, false},
			{"a", 19, 100, 0, false}, {"b", 18, 100, 0, false}}, "b c a"},
		"nothing is lost": {[]chunk{{"b", 50, 100, 0, false}, {"c", 50, 100, 0, false},
			{"a", 19, 100, 0, false}, {"b", 19, 100, 0, false}}, "b c a"},
	} {
		none := table.New(nil, nil, fault.Span{}, format.OpenOptions{}, layout.ReadOptions{}) // a file without bytes
		r, end := newRecoverer(t.Context(), none, ""), int64(layout.MagicLen)
		r.repeated = true
		for _, c := range x.chunks {
			m := &layout.ColumnMeta{Path: []string{c.name}, Values: c.values, HasLevels: true, Raw: -1, Stored: -1,
				Data: end + c.at}
			if c.lists {
				m.MaxRep = 1
			}
			end = m.Data + c.size
			r.chunks = append(r.chunks, foundChunk{off: m.Data, end: end, meta: m})
		}
		var found pathList
		for _, n := range []string{x.chunks[0].name, x.chunks[1].name, x.chunks[2].name} {
			found.add([]string{n})
		}
		got, _ := r.rotated(found)
		place := map[int]string{}
		for _, n := range []string{"a", "b", "c"} {
			place[got.find([]string{n}, 0)] = n
		}
		if s := strings.Join([]string{place[0], place[1], place[2]}, " "); s != x.want {
			t.Errorf("%s: row groups have the columns %s, want %s", what, s, x.want)
		}
	}
}

// TestPathsAreCorrected: a chunk with a unique path, between the neighbours that a column has in other row groups,
// belongs to that column, and that is reported; a path that occurs twice, or has other neighbours, is left unchanged.
func TestPathsAreCorrected(t *testing.T) {
	for paths, want := range map[string]string{
		"a b c a x c a b c": "a b c a b c a b c",
		"a b c x b c a b c": "a b c a b c a b c",
		"a x c a b c a b c": "a b c a b c a b c",
		"a x b c a b c":     "a x b c a b c",     // one more column than the others have
		"a b c a x c a x c": "a x c a x c a x c", // the one that occurs once
		"a b x":             "a b x",
		"a b c x y c a b c": "a b c x y c a b c",
	} {
		r := newRecoverer(t.Context(), &table.File{File: &container.File{}}, "t")
		seen := map[string]bool{}
		for _, p := range strings.Fields(paths) {
			r.repeated = r.repeated || seen[p]
			seen[p] = true
			r.chunks = append(r.chunks, foundChunk{meta: &layout.ColumnMeta{Path: []string{p}}})
		}
		r.correctPaths()
		var got []string
		for _, c := range r.chunks {
			got = append(got, c.meta.Path...)
		}
		if s := strings.Join(got, " "); s != want || len(r.findings) == 0 != (paths == want) {
			t.Errorf("%s: got %s, want %s; %v", paths, s, want, r.findings)
		}
	}
}
