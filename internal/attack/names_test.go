package attack

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// storedName is a place where a file stores the name of a column without a checksum.
type storedName struct {
	file     string
	from, to int64
	text     string
}

// nameNodes is the state of the search for names of columns among the nodes of describe. In Trevni they are values of a
// key of the header; in RedFile the parts of a path in the metadata of a column.
type nameNodes struct {
	before string // value of the previous node
	path   bool   // a path is being read
}

func (f *fixture) learnName(n *nameNodes, file, node, value string, from, length int64) {
	n.path = node == "path_in_schema" || n.path && (node == "head" || strings.HasPrefix(node, "["))
	is := f.format() == "trevni" && (n.before == `"trevni.name"` || n.before == `"Name"`) ||
		f.format() == "redfile" && n.path && strings.HasPrefix(node, "[")
	if f.format() == "trevni" && n.before == `"avro.schema"` {
		f.schemas = append(f.schemas, storedName{file, from, from + length, ""})
	}
	if f.format() == "arrow" && (value == "schema" || node == "footer") {
		f.heads = append(f.heads, storedName{file, from, from + length, ""})
	}
	n.before = value
	var text string
	if is && json.Unmarshal([]byte(value), &text) == nil {
		f.names = append(f.names, storedName{file, from, from + length, text})
	}
}

// partsOf returns the parts of a name that spells out the nesting of columns: Links/Links#Backward[],
// Name.Language.Country.
func partsOf(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(".#/>[]", r) })
}

// named reports whether bytes were changed in a stored name that has the parts of word as consecutive parts.
func (c *trial) named(word string) bool {
	want := partsOf(word)
	return slices.ContainsFunc(c.f.names, func(n storedName) bool {
		has := partsOf(n.text)
		at := slices.IndexFunc(has, func(p string) bool { return len(want) > 0 && p == want[0] })
		return at >= 0 && len(has) >= at+len(want) && slices.Equal(has[at:at+len(want)], want) &&
			slices.ContainsFunc(c.touched,
				func(t touch) bool { return t.file == n.file && t.from < n.to && n.from < t.to })
	})
}

// refusesName reports whether a verb refused, by name, a table in which two columns, or two fields of a struct, have
// the same name, provided that verify reported that, too. The original table had no such names; they can arise if bytes
// of names without a checksum were changed. In Arrow's schemas any byte may determine the position of a name. A changed
// name may also be one that CarbonData's writer, which advise tries, does not accept; its files have no checksums at
// all.
func (c *trial) refusesName(got answer) bool {
	duplicated := c.duplicated && bytes.Contains(got.Stderr, []byte("fields of a struct, have this name"))
	unfit := bytes.Contains(got.Stderr, []byte("CarbonData needs a name"))
	if got.Status != cannot || !duplicated && !unfit || c.f.checked && !c.f.nameless {
		return false
	}
	if unfit {
		return c.f.format() == "carbon" && len(c.touched) > 0
	}
	return slices.ContainsFunc(slices.Concat(c.f.heads, c.f.names), func(n storedName) bool {
		return slices.ContainsFunc(c.touched,
			func(t touch) bool { return t.file == n.file && t.from < n.to && n.from < t.to })
	})
}

// renamed reports whether out equals want except for names of columns whose stored bytes were changed, or except for
// the order of columns: a name or a position that is stored only once and without a checksum cannot be checked.
// (CarbonData numbers columns; missing numbers are those of dropped columns.) Blocks and pages may have checksums
// although names have none; verify reports that for the whole file.
func (c *trial) renamed(want, out []string) bool {
	return len(want) == len(out) && c.renamedSome(want, out)
}

// renamedSome is renamed for a table with lost rows; the other rows are in their original order.
func (c *trial) renamedSome(want, out []string) bool {
	if c.f.checked && !c.f.nameless {
		return false
	}
	for _, w := range want {
		if len(out) > 0 && (c.sameButNames(w, out[0]) || !c.f.checked && sameInAnyOrder(w, out[0]) ||
			c.regrouped(w, out[0], false)) {
			out = out[1:]
		}
	}
	return len(out) == 0
}

// regrouped reports whether rows have the same values in each column except for columns whose names were changed. In
// the wiki's Trevni dialect only the names of columns determine which of them belong to one struct. With lost set,
// those columns may also be null, which columnsIn leaves out.
func (c *trial) regrouped(want, out string, lost bool) bool {
	if !slices.ContainsFunc(c.f.names, func(n storedName) bool { return c.named(n.text) }) {
		return false
	}
	if !slices.Equal(topsIn(want, out), topsIn(out, want)) {
		return false
	}
	was, is := map[string][]string{}, map[string][]string{}
	columnsIn(was, "", want)
	columnsIn(is, "", out)
	var gone, come []string
	for path, values := range was {
		if !slices.Equal(values, is[path]) {
			if !c.named(path) {
				return false
			}
			gone = append(gone, strings.Join(values, ","))
			continue
		}
		delete(is, path)
	}
	for values := range maps.Values(is) {
		come = append(come, strings.Join(values, ","))
	}
	slices.Sort(gone)
	slices.Sort(come)
	if lost { // each that came is one of those that are gone; the others were reported as lost
		return !slices.ContainsFunc(come, func(x string) bool { return !slices.Contains(gone, x) })
	}
	return slices.Equal(gone, come)
}

// topsIn returns the names of those cells of a row that another row has as well.
func topsIn(row, other string) (names []string) {
	for _, x := range cellsOf(row) {
		if slices.ContainsFunc(cellsOf(other), func(y cell) bool { return x.name == y.name }) {
			names = append(names, x.name)
		}
	}
	return names
}

// columnsIn collects the values of a row that are not null by the path of names that leads to them, as in the wiki's
// names of columns.
func columnsIn(to map[string][]string, path, value string) {
	switch kindOf(cell{value: value}) {
	case '{':
		for _, x := range cellsOf(value) {
			columnsIn(to, strings.TrimPrefix(path+"."+x.name, "."), x.value)
		}
	case '[':
		var items []json.RawMessage
		json.Unmarshal([]byte(value), &items)
		for _, x := range items {
			columnsIn(to, path, string(x))
		}
	default:
		if value != "null" {
			to[path] = append(to[path], value)
		}
	}
}

// unparented reports whether the columns that a row has in addition were stored, in Trevni, as children of an array,
// and are lost, which is reported. Only the pair trevni.parent of the column's metadata, which has no checksum, says
// that it is a child: if bytes of that metadata were changed, it is a column of its own, and missing in its parent.
// All other cells must be as they were.
func (c *trial) unparented(was, is string, m *lost, row int) bool {
	own, kept := cellsOf(was), cellsOf(is)
	var more []string
	for _, x := range kept {
		if slices.ContainsFunc(own, func(o cell) bool { return o.name == x.name }) {
			continue
		}
		if more = append(more, x.name); x.value != "null" || !m.has(row, x.name) || !c.described(x.name) {
			return false
		}
	}
	kept = slices.DeleteFunc(kept, func(x cell) bool { return slices.Contains(more, x.name) })
	return len(more) > 0 && strings.HasPrefix(c.f.format(), "trevni") && slices.EqualFunc(own, kept,
		func(a, b cell) bool { return a.name == b.name && without(a.value, more) == without(b.value, more) })
}

// described reports whether bytes were changed in the metadata of a Trevni column after its name.
func (c *trial) described(name string) bool {
	for k, n := range c.f.names {
		to := n.to + 200
		if k+1 < len(c.f.names) && c.f.names[k+1].file == n.file {
			to = c.f.names[k+1].from
		}
		if n.text == name && slices.ContainsFunc(c.touched,
			func(t touch) bool { return t.file == n.file && t.from < to && n.to < t.to }) {
			return true
		}
	}
	return false
}

// without returns a value of JSON without the fields that have these names. A struct of which none is left is null.
func without(value string, names []string) string {
	var parts []string
	switch kindOf(cell{value: value}) {
	case '{':
		for _, x := range cellsOf(value) {
			if !slices.Contains(names, x.name) {
				parts = append(parts, x.name+":"+without(x.value, names))
			}
		}
		if parts == nil {
			return "null"
		}
		return "{" + strings.Join(parts, ",") + "}"
	case '[':
		var items []json.RawMessage
		json.Unmarshal([]byte(value), &items)
		for _, x := range items {
			parts = append(parts, without(string(x), names))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return value
}

// symbol reports whether a value is a text, such as the symbol of an enum, whose bytes were changed in an Avro schema.
// Blocks have only the numbers of symbols; the symbols themselves are stored nowhere else.
func (c *trial) symbol(value string) bool {
	return value[0] == '"' && slices.ContainsFunc(c.f.schemas, func(s storedName) bool {
		return slices.ContainsFunc(c.touched, func(t touch) bool {
			b, _ := os.ReadFile(filepath.Join(c.f.dir, s.file))
			from, to := max(s.from, t.from-int64(len(value))+1), min(s.to, t.to+int64(len(value))-1)
			return t.file == s.file && from < to && to <= int64(len(b)) && bytes.Contains(b[from:to], []byte(value))
		})
	})
}

// sameButNames compares two values of JSON, including those inside structs and lists.
func (c *trial) sameButNames(want, out string) bool {
	if want == out || out[0] == '"' && c.symbol(want) {
		return true
	}
	was, is := cellsOf(want), cellsOf(out)
	if len(was) == 0 {
		var a, b []json.RawMessage
		return json.Unmarshal([]byte(want), &a) == nil && json.Unmarshal([]byte(out), &b) == nil &&
			slices.EqualFunc(a, b, func(x, y json.RawMessage) bool { return c.sameButNames(string(x), string(y)) })
	}
	return slices.EqualFunc(was, is, func(x, y cell) bool {
		return (x.name == y.name || c.touches(x.name)) && c.sameButNames(x.value, y.value)
	})
}

// sameInAnyOrder reports whether two rows have the same cells.
func sameInAnyOrder(want, out string) bool {
	was, is := cellsOf(want), cellsOf(out)
	for _, l := range [][]cell{was, is} {
		slices.SortFunc(l, func(a, b cell) int { return strings.Compare(a.name, b.name) })
	}
	return slices.Equal(was, is)
}

// touches reports whether bytes of a word were changed or, if everything but names has checksums, bytes of a column
// name. It is called for each cell of each row, so its answers are cached.
func (c *trial) touches(word string) bool {
	key := [2]string{c.f.dir, word}
	yes, known := c.words[key]
	if !known {
		if yes = c.looks(word); c.words == nil {
			c.words = map[[2]string]bool{}
		}
		c.words[key] = yes
	}
	return yes
}

func (c *trial) looks(word string) bool {
	if c.named(word) || c.f.checked {
		return c.named(word)
	}
	return slices.ContainsFunc(c.touched, func(t touch) bool {
		b, _ := os.ReadFile(filepath.Join(c.f.dir, t.file))
		from, to := max(0, t.from-int64(len(word))+1), min(int64(len(b)), t.to+int64(len(word))-1)
		return from < to && bytes.Contains(b[from:to], []byte(word))
	})
}
