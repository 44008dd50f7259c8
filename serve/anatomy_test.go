package serve_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stoa/cmd/stoa/verbs"
	"stoa/serve"

	"stoa"
)

// corpusFiles are files of all formats that can be described, of the corpus of the repository, and of STOA_CORPUS.
func corpusFiles(t *testing.T) (files []string) {
	t.Helper()
	roots := []string{"../corpus"}
	if more := os.Getenv("STOA_CORPUS"); more != "" && !testing.Short() {
		roots = append(roots, more)
	}
	kinds := []string{".cfile", ".red", ".trv", ".carbondata", ".carbonindex", ".data", ".metadata", ".dict",
		".sortindex"}
	for _, root := range roots {
		per := map[string]int{}
		err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			kind := filepath.Ext(name)
			st, err := d.Info()
			if err == nil && slices.Contains(kinds, kind) && st.Size() > 0 && st.Size() < 4<<20 && per[kind] < 60 {
				per[kind]++
				files = append(files, filepath.ToSlash(name))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 60 {
		t.Fatalf("only %d files", len(files))
	}
	return files
}

// TestEveryByteHasAnOwner: the segments of a map are a partition of what it shows, however coarse it is; the byte of a
// segment belongs to its node; and what is summed by role is the whole file.
func TestEveryByteHasAnOwner(t *testing.T) {
	described, skipped := 0, 0
	for _, name := range corpusFiles(t) {
		st, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		a, err := serve.Describe(t.Context(), name, st.Size(),
			stoa.DescribeOptions{OpenOptions: stoa.OpenOptions{Formats: verbs.Formats()}})
		if err != nil {
			skipped++
			continue
		}
		described++
		var sum int64
		for _, r := range a.Roles {
			sum += r.Bytes
		}
		if sum != a.Size {
			t.Errorf("%s: the roles have %d bytes of %d", name, sum, a.Size)
		}
		for _, window := range [][2]int64{{0, a.Size}, {a.Size / 3, a.Size/2 + 1}, {a.Size - 1, a.Size}} {
			for _, n := range []int{1, 2, 7, 100, 1 << 20} {
				checkPartition(t, a, window[0], window[1], n)
			}
		}
	}
	t.Logf("%d files, %d more are not described", described, skipped)
	if described < 50 {
		t.Errorf("only %d files were described", described)
	}
}

func checkPartition(t *testing.T, a *serve.Anatomy, from, to int64, n int) {
	t.Helper()
	at := from
	segments := a.Map(from, to, n)
	for _, s := range segments {
		if s.From != at || s.To <= s.From {
			t.Fatalf("%s: after byte %d comes %+v", a, at, s)
		}
		if s.Node >= 0 {
			if path := a.At(s.From); len(path) == 0 || path[len(path)-1].ID != s.Node {
				t.Fatalf("%s: the owner of %+v is %+v", a, s, path)
			}
		}
		at = s.To
	}
	if at != to || len(segments) > 2*n+1 {
		t.Fatalf("%s: %d segments of %d, from %d to %d of %d", a, len(segments), n, from, at, to)
	}
}

// TestRolesAndColumns: what a file's structures are for, by the documents of the formats: Kudu's cfile.md (header of 16
// bytes, footer at the end, its length in the last 4), the RedFile's magic, Trevni's header before its columns.
func TestRolesAndColumns(t *testing.T) {
	dir := copyOf(t, map[string]string{"a.red": red, "wiki.trv": "trevni/dialects/wiki_dremel.trv"})
	carbon, err := filepath.Glob("../corpus/carbon/2.3.0/v3/*/*.carbondata")
	if more, _ := filepath.Glob("../corpus/carbon/2.3.0/v3/*/*/*.carbondata"); err == nil {
		carbon = append(carbon, more...)
	}
	if len(carbon) == 0 {
		t.Fatal("no file of CarbonData")
	}
	columns := func(name string) (out []string, roles map[serve.Role]int64) {
		st, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		a, err := serve.Describe(t.Context(), name, st.Size(), stoa.DescribeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		roles = map[serve.Role]int64{}
		for _, r := range a.Roles {
			roles[r.Role] = r.Bytes
		}
		for _, c := range a.Columns {
			out = append(out, c.Column)
		}
		slices.Sort(out)
		return out, roles
	}
	for name, want := range map[string]string{dir + "/a.red": "[i l s]", carbon[0]: "",
		dir + "/wiki.trv": "[DocId Links.Backward Links.Forward Name.Language.Code Name.Language.Country Name.Url]"} {
		got, roles := columns(name)
		if want != "" && fmt.Sprint(got) != want {
			t.Errorf("%s: the columns are %v, want %s", name, got, want)
		}
		if len(got) == 0 || roles[serve.Page] == 0 || roles[serve.Header] == 0 || roles[serve.Gap] != 0 {
			t.Errorf("%s: columns %v, roles %v", name, got, roles)
		}
		table, err := stoa.Open(t.Context(), name, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range table.Schema().Fields() {
			is := func(c string) bool { return c == f.Name || strings.HasPrefix(c, f.Name+".") }
			if !slices.ContainsFunc(got, is) {
				t.Errorf("%s: nothing belongs to column %s; columns are %v", name, f.Name, got)
			}
		}
		table.Close()
	}
}

// TestRowsOfPages: the rows that the structure gives to a page are those that verify misses when the page is damaged,
// also in the second row group, after a dictionary, and in a blocklet.
func TestRowsOfPages(t *testing.T) {
	dir := lines(t, 1000)
	run(t, "convert", "-q", dir+"/t.parquet", "-o", dir+"/t.trv", "--force")
	run(t, "convert", "-q", dir+"/t.parquet", "-o", dir+"/k.cfile", "--columns", "k", "--force")
	run(t, "convert", "-q", dir+"/t.parquet", "-o", dir+"/t.red", "--opt", "row-group-rows=300")
	for _, name := range []string{"t.parquet", "t.trv", "k.cfile", "t.red"} {
		whole, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		a, err := serve.Describe(t.Context(), filepath.Join(dir, name), int64(len(whole)), stoa.DescribeOptions{
			OpenOptions: stoa.OpenOptions{Formats: verbs.Formats()}})
		if err != nil {
			t.Fatal(err)
		}
		nodes, checked, ends := a.Parts(-1, 0, 1000), 0, map[string]int64{}
		for i := 0; i < len(nodes); i++ {
			n := nodes[i]
			nodes = append(nodes, a.Parts(n.ID, 0, 1000)...)
			if n.Role != serve.Page || n.From == nil || n.To == nil || !strings.Contains(n.Name, "[") {
				continue
			}
			if *n.From != ends[n.Column] {
				t.Errorf("%s: %s of %s begins at row %d, and the one before ends at %d", name, n.Name, n.Column,
					*n.From, ends[n.Column])
			}
			ends[n.Column] = *n.To
			at := n.Offset + n.Length - 1
			if strings.HasSuffix(name, ".red") { // without checksums: what shows is a page that cannot be read
				at = n.Offset
			}
			damaged := bytes.Clone(whole)
			damaged[at] ^= 0x40
			place := filepath.Join(dir, "damaged-"+name)
			if err := os.WriteFile(place, damaged, 0o666); err != nil {
				t.Fatal(err)
			}
			for f, err := range stoa.Verify(t.Context(), place, stoa.OpenOptions{Formats: verbs.Formats()}) {
				if err != nil || f.Rows[0] < 0 || f.At.Off < n.Offset || f.At.Off >= n.Offset+n.Length {
					continue
				}
				if checked++; f.Rows != [2]int64{*n.From, *n.To} {
					t.Errorf("%s: %s of %s has rows %d to %d, and verify misses %v: %s", name, n.Name, n.Column,
						*n.From, *n.To, f.Rows, f.Message)
				}
			}
		}
		for c, end := range ends {
			if end != 1000 {
				t.Errorf("%s: the pages of %q end with row %d", name, c, end)
			}
		}
		if checked == 0 || checked < 2 && name != "k.cfile" {
			t.Errorf("%s: only %d pages were missed", name, checked)
		}
	}
}

// TestSearch: by byte, by name, by row, by column.
func TestSearch(t *testing.T) {
	dir := copyOf(t, map[string]string{"a.red": red})
	s := newServer(t, nil, dir)
	found := func(q string) (out []string) {
		doc := answer[struct{ Nodes []serve.Node }](t, s, api("search", "name", dir+"/a.red", "q", q))
		for _, n := range doc.Nodes {
			out = append(out, fmt.Sprintf("%s@%d", n.Name, n.Offset))
		}
		return out
	}
	// a_gzip.red has two row groups of 100 rows, of three columns in pages of 40, 40 and 20 rows
	if got := found("2"); fmt.Sprint(got) != "[magic@0]" {
		t.Errorf("byte 2: %v", got)
	}
	seen := map[string]string{} // the row in which a page was found: none is in two row groups
	for row, page := range map[string]string{"row 99": "page[2]@", "row 41": "page[1]@", "row 141": "page[1]@",
		"row 199": "page[2]@", "row 100": "page[0]@"} {
		got := found(row)
		if len(got) != 3 {
			t.Errorf("%s: %v", row, got)
		}
		for _, p := range got {
			if !strings.HasPrefix(p, page) || seen[p] != "" {
				t.Errorf("%s: %s, also of %q", row, p, seen[p])
			}
			seen[p] = row
		}
	}
	if got := found("row 200"); len(got) != 0 {
		t.Errorf("past the end: %v", got)
	}
	if got := found("DATA_PAGE"); len(got) < 18 {
		t.Errorf("pages: %v", got)
	}
	for _, bad := range []string{"", "row", "row x", "9999999"} {
		if w := get(s, api("search", "name", dir+"/a.red", "q", bad)); w.Code != 400 && bad != "row" {
			t.Errorf("%q: got %d %s", bad, w.Code, w.Body)
		}
	}
}

// TestRowsAreThoseOfCat: windows of any size put together are the rows that cat prints, with and without a filter, and
// no row twice or missing.
func TestRowsAreThoseOfCat(t *testing.T) {
	dir := copyOf(t, map[string]string{"a.red": red})
	s := newServer(t, nil, dir)
	name := dir + "/a.red"
	cat := func(where string) (out [][]string) {
		w := get(s, api("export", "name", name, "form", "jsonl", "where", where))
		if w.Code != 200 {
			t.Fatal(w.Code, w.Body)
		}
		for line := range strings.Lines(w.Body.String()) {
			var row struct {
				I, L json.RawMessage
				S    json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			out = append(out, []string{string(row.I), string(row.L), string(row.S)})
		}
		return out
	}
	type rowsDoc struct {
		Total, Next int64
		End         bool
		At          []int64
		Rows        [][]*string
	}
	for _, where := range []string{"", "i > 40", "i > 1000000", "s is not null and l < 5"} {
		want := cat(where)
		for _, n := range []int{1, 7, 64, 1000} {
			var got [][]string
			for from, steps := int64(0), 0; ; steps++ {
				doc := answer[rowsDoc](t, s, api("rows", "name", name, "raw", "true", "where", where, "from",
					strconv.FormatInt(from, 10), "n", strconv.Itoa(n)))
				for i, r := range doc.Rows {
					row := []string{}
					for _, c := range r[:3] {
						if c == nil {
							row = append(row, "null")
						} else {
							row = append(row, *c)
						}
					}
					if where == "" && doc.At[i] != int64(len(got)) {
						t.Fatalf("row %d is at %d", len(got), doc.At[i])
					}
					got = append(got, row)
				}
				if doc.End {
					break
				}
				if doc.Next <= from || steps > 2000 {
					t.Fatalf("from %d goes on at %d", from, doc.Next)
				}
				from = doc.Next
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("where %q, %d at a time: got %d rows, want %d", where, n, len(got), len(want))
			}
		}
	}
	w := get(s, api("rows", "name", name, "where", "i >> 3"))
	if w.Code != 400 || !strings.Contains(w.Body.String(), `"at":`) {
		t.Errorf("a wrong filter: got %d %s", w.Code, w.Body)
	}
}

// TestFilePage: a page of one file has its data as one element that nothing in it ends, its policy names the hashes of
// its own script and style, and it refers to nothing elsewhere.
func TestFilePage(t *testing.T) {
	dir := copyOf(t, map[string]string{"a.red": red})
	b, err := os.ReadFile(dir + "/a.red")
	if err != nil {
		t.Fatal(err)
	}
	a, err := serve.Describe(t.Context(), dir+"/a.red", int64(len(b)), stoa.DescribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.Object = "</script><script>alert(1)</script>"
	var out bytes.Buffer
	if err := (&serve.FilePage{Anatomy: a, Findings: []string{"<!--</script>"}, Bytes: b}).Write(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if n := strings.Count(text, "</script>"); n != 2 {
		t.Errorf("%d scripts end, want 2", n)
	}
	_, script, _ := strings.Cut(text, "</script>\n<script>")
	script, _, _ = strings.Cut(script, "</script>")
	sum := sha256.Sum256([]byte(script))
	if want := "script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(text, want) {
		t.Errorf("the policy does not have %s", want)
	}
	_, data, _ := strings.Cut(text, `id="file">`)
	data, _, _ = strings.Cut(data, "</script>")
	var doc struct {
		Bytes  []byte
		Nodes  []serve.Node
		Leaves [][3]int64
	}
	if err := json.Unmarshal([]byte(data), &doc); err != nil || !bytes.Equal(doc.Bytes, b) {
		t.Fatal(err, len(doc.Bytes))
	}
	at := int64(0)
	for _, l := range doc.Leaves {
		if l[0] != at || l[1] <= l[0] || l[2] >= int64(len(doc.Nodes)) {
			t.Fatalf("after byte %d comes %v", at, l)
		}
		at = l[1]
	}
	if at != int64(len(b)) {
		t.Errorf("the leaves end at %d of %d", at, len(b))
	}
	if strings.Contains(text, "http://") || strings.Contains(text, "https://") {
		t.Error("the page refers to something elsewhere")
	}
}
