package attack

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxGrowth is the number of bytes by which the process may grow during one command line; the default of --memory is 1
// GiB.
const maxGrowth = 1 << 30

// trial is one case: a harmed copy of a fixture, and the answers of the verbs about it.
type trial struct {
	a        *attack
	f        *fixture
	dir      string
	touched  []touch
	finds    []string
	moved    bool     // whole files were replaced or removed
	staled   []string // files that were replaced by those of the older state, and perhaps harmed after that
	shifted  bool     // bytes were inserted into or removed from a file, and nothing else was done
	excused  bool
	guessed  bool
	reported bool
	rows     []string // rows that cat printed when it exited with 0
	ordered  bool     // cat exited with 0 and printed the original rows, apart from the order of columns
	status   map[string]int
	words    map[[2]string]bool // whether bytes of a word were changed, see touches
	// cat reported that the name of a column is not UTF-8
	misspelled bool
	altered    map[string]bool // verbs that reported that the output cannot hold a string that is not UTF-8
	duplicated bool            // verify reported duplicate column names
	refused    map[string]bool // verbs that refused a table because of such names, see refusesName
}

func (c *trial) find(law, format string, args ...any) {
	c.finds = append(c.finds, law+": "+fmt.Sprintf(format, args...))
}

// verb runs a verb on the copy, and checks the laws that hold for every verb.
func (c *trial) verb(name, verb string, args ...string) answer {
	got := c.a.verb(c.f, c.dir, verb, args...)
	c.status[name] = got.Status
	c.a.seen[name+" "+strconv.Itoa(got.Status)]++
	c.reported = c.reported || got.Status != fine
	c.misspelled = c.misspelled || name == "cat" && bytes.Contains(got.Stderr, []byte("file.name.utf8"))
	c.altered[name] = bytes.Contains(got.Stderr, []byte("output.values.utf8"))
	c.refused[name] = c.refusesName(got)
	said := bytes.TrimSpace(append(bytes.Clone(got.Stderr), got.Stdout...))
	switch {
	case got.Status == died:
		c.find("alive", "%s %s", name, got.died)
	case got.Status < fine || got.Status > damage:
		c.find("status", "%s ended with %d", name, got.Status)
	case got.Status == use && c.f.maker != nil && (c.f.maker.loose || c.f.maker.parts) &&
		bytes.Contains(said, []byte("they are not one table")):
	case got.Status == use && c.f.text && bytes.Contains(said, []byte("the schema has")):
		// the schema was passed as an option, and the header now differs from it
	case got.Status == use && bytes.Contains(said, []byte("the key is ()")):
		// the schema now has no columns and so no key; another check makes sure that verify and cat report it
	case got.Status == use && name == "get key" && bytes.Contains(said, []byte("is of type")):
		// the changed metadata say that the table is sorted by another column, which has no such value; without
		// checksums nothing contradicts that
	case got.Status == use:
		c.find("status", "%s: a harmed file is reported as wrong use: %s", name, short(got.Stderr))
	case got.Status != fine && len(said) == 0:
		c.find("word", "%s ended with %d and said nothing", name, got.Status)
	case bytes.Contains(said, []byte("runtime error")) || bytes.Contains(said, []byte("panic")):
		c.find("alive", "%s: %s", name, short(got.Stderr))
	}
	if got.Grown > maxGrowth {
		c.find("memory", "%s grew by %d MiB", name, got.Grown>>20)
	}
	return got
}

func short(b []byte) string {
	l, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return l[:min(len(l), 300)]
}

// judge runs every verb, or, if all is false, the most important ones and a random choice of the others.
func (c *trial) judge(r *rand.Rand, all bool) {
	c.aged()
	c.status, c.altered, c.refused = map[string]int{}, map[string]bool{}, map[string]bool{}
	some := func() bool { x := r.IntN(3) == 0; return all || x } // draws from r in either case
	v := c.verify("verify")
	c.duplicated = v.says("file.name.duplicate")
	c.cat(v)
	c.lossy("recover", true, "recover", "-o", filepath.Join(c.dir, "..", "out.jsonl"))
	if some() {
		c.lossy("cat skip-rows", false, "cat", "-f", "jsonl", "--damaged", "skip-rows")
	}
	if some() {
		c.lossy("cat null-cells", false, "cat", "-f", "jsonl", "--damaged", "null-cells")
	}
	if some() {
		c.verify("verify deep", "--deep")
	}
	if some() {
		c.verify("verify quick", "--quick")
	}
	if some() {
		c.count()
	}
	if some() {
		c.few(r)
	}
	if some() && c.f.able["ls"] {
		c.ls()
	}
	if some() {
		c.converts(r)
	}
	if some() {
		c.diff()
	}
	if some() {
		for _, v := range []string{"describe", "explain"} {
			if c.f.able[v] {
				c.verb(v, v)
			}
		}
		if c.f.able["stats"] {
			c.stats()
		}
	}
	if some() && c.f.able["advise"] {
		c.advise()
	}
	if c.f.format() == "parquet" && len(c.f.ref) > 0 && some() {
		c.copies(r)
	}
	if c.f.name == "carbon/table" && !c.inData() {
		c.changes()
	}
	c.oneVerdict()
}

// inData reports whether a data file is harmed: changes do not read pages, and so do not notice their damage.
func (c *trial) inData() bool {
	return slices.ContainsFunc(c.touched, func(t touch) bool { return strings.HasSuffix(t.file, ".carbondata") })
}

func (c *trial) verify(name string, args ...string) *verdict {
	got := c.verb(name, "verify", append(args, "-f", "json")...)
	v := &verdict{}
	if got.Status == died {
		return v
	}
	if err := json.Unmarshal(got.Stdout, v); err != nil && (got.Status == fine || got.Status == damage) {
		c.find("word", "%s ended with %d and printed no JSON: %v", name, got.Status, err)
	}
	if got.Status == fine && v.Errors > 0 || got.Status == damage && v.Errors == 0 {
		c.find("verdict", "%s ended with %d and %d errors", name, got.Status, v.Errors)
	}
	return v
}

// cat reads with policy fail: it prints only rows of the intact place, and with status 0 all of them.
func (c *trial) cat(v *verdict) {
	got := c.verb("cat", "cat", "-f", "jsonl")
	out := linesOf(got.Stdout)
	if got.Status == fine {
		c.rows = out
		c.whole("cat", out)
		c.ordered = slices.EqualFunc(c.f.ref, out, sameInAnyOrder)
		if c.excused && !c.moved && c.status["verify"] == fine && !v.says("file.unchecked") &&
			!v.says("trevni.checksum.zero") {
			c.find("unchecked", "verify did not say that values cannot be checked, and they are others")
		}
		return
	}
	// if only another table is left, its rows are the rows of the place
	if strange := c.foreignRows(out); strange > c.allowed() && !c.loose() && c.remains() == nil {
		c.find("fail", "cat ended with %d after %d rows that were not there: %s", got.Status, strange,
			c.firstForeign(out))
	}
}

// whole checks that a verb that exited with 0 returned every row unchanged. Without checksums, the cells of touched
// pages may differ.
func (c *trial) whole(name string, out []string) {
	ref := c.f.ref
	if slices.Equal(out, ref) {
		return
	}
	why := difference(ref, out)
	if c.loose() {
		c.excused = true
		return
	}
	if c.renamed(ref, out) || c.orphaned() && len(out) == len(ref) && c.foreignRows(out) == 0 {
		c.excused = true
		return
	}
	if c.f.checked {
		c.find("silent", "%s ended with 0, and %s", name, why)
		return
	}
	if n := c.deletions(); len(out) == len(ref) && n > 0 && c.foreignRows(out) <= n {
		c.excused = true // as many other rows are deleted as reappear
		return
	}
	if c.f.text {
		if c.foreignRows(out) <= c.lines() && c.missing(out) <= c.lines() {
			c.excused = true
			return
		}
		c.find("silent", "%s ended with 0, and in other lines than those touched %s", name, why)
		return
	}
	if len(out) != len(ref) {
		c.find("silent", "%s ended with 0, and %s", name, why)
		return
	}
	if c.shifted {
		c.find("silent", "%s ended with 0 though bytes were put in or taken out, and %s", name, why)
		return
	}
	windows, names := c.windows(out)
	if n := len(c.pagesTouched()); windows > n || names && n == 0 {
		c.find("silent", "%s ended with 0, touched are %d pages, changed are cells of %d, and %s", name, n, windows,
			why)
		return
	}
	c.excused = true
}

// inOrderOf sorts the cells of a row by the order that cells of the same names have in another row, if that row has all
// of them.
func inOrderOf(was, is []cell) {
	place := map[string]int{}
	for i, c := range was {
		place[c.name] = i
	}
	for _, c := range is {
		if _, ok := place[c.name]; !ok {
			return
		}
	}
	slices.SortStableFunc(is, func(a, b cell) int { return place[a.name] - place[b.name] })
}

// deletions returns the number of rows in the touched delete deltas of CarbonData, provided that nothing else was
// touched. Delete deltas have no checksum, and only their number of rows is recorded elsewhere, so a wrong row in place
// of another is not noticed (file.unchecked). A file beside which another was put, as by a looping link, is as it was.
func (c *trial) deletions() (n int) {
	for _, t := range c.touched {
		b, err := os.ReadFile(filepath.Join(c.f.dir, t.file))
		if is, e := os.ReadFile(filepath.Join(c.dir, t.file)); err == nil && e == nil && bytes.Equal(is, b) {
			continue
		}
		if err != nil || !strings.HasSuffix(t.file, ".deletedelta") {
			return 0
		}
		n += bytes.Count(b, []byte(",")) + 1
	}
	return n
}

// loose reports whether files were moved that form a table only because they lie together, or whether all files with
// pages, without exception, are now those of another table or of an older state of this one.
func (c *trial) loose() bool {
	return c.columnless() || c.moved && c.f.maker != nil && (c.f.maker.loose || c.isAll(c.f.stale) ||
		c.isAll(c.f.other) || c.remains() != nil && c.hasPages())
}

// hasPages reports whether the copy has all files that have pages.
func (c *trial) hasPages() bool {
	return len(c.f.pages) > 0 && !slices.ContainsFunc(c.f.pages, func(p page) bool {
		b, err := os.ReadFile(filepath.Join(c.dir, p.file))
		return err != nil || c.displaced(p.file, b)
	})
}

// pagedOfOther reports whether every file with pages belongs to another table or an older state. Of the table itself
// only the file that lists them is left, and one of the two sides is wrong.
func (c *trial) pagedOfOther() bool {
	return c.moved && len(c.f.pages) > 0 && slices.ContainsFunc([]*fixture{c.f.stale, c.f.other},
		func(f *fixture) bool {
			return f != nil && !slices.ContainsFunc(c.f.pages, func(p page) bool {
				is, err := os.ReadFile(filepath.Join(c.dir, p.file))
				was, err2 := os.ReadFile(filepath.Join(f.dir, p.file))
				return err != nil || err2 != nil || !bytes.Equal(is, was)
			})
		})
}

// aged treats the copy as one of the older state if all its files, harmed or not, are that state's: replaced files are,
// and the others are equal in both states.
func (c *trial) aged() {
	old := c.f.stale
	if !c.moved || old == nil || !slices.Equal(c.f.files, old.files) {
		return
	}
	replaced := map[string]bool{}
	for _, name := range c.f.files {
		is, err := os.ReadFile(filepath.Join(c.dir, name))
		own, err2 := os.ReadFile(filepath.Join(c.f.dir, name))
		was, err3 := os.ReadFile(filepath.Join(old.dir, name))
		switch {
		case cmp.Or(err, err2, err3) != nil:
			return
		case bytes.Equal(own, was):
		case bytes.Equal(is, was), slices.Contains(c.staled, name):
			replaced[name] = true
		default:
			return
		}
	}
	if len(replaced) > 0 {
		c.f = old
		c.touched = slices.DeleteFunc(c.touched, func(t touch) bool {
			return replaced[t.file] && (t.to >= wholeFile || !slices.Contains(c.staled, t.file))
		})
	}
}

// displaced reports whether the file with that name has the bytes of another file of the table, where one of the two
// has pages and the other, like a directory's table.json, has none. Such a file cannot be read under that name, so it
// counts as missing.
func (c *trial) displaced(name string, is []byte) bool {
	paged := func(name string) bool {
		return slices.ContainsFunc(c.f.pages, func(p page) bool { return p.file == name })
	}
	return slices.ContainsFunc(c.f.files, func(other string) bool {
		if other == name || paged(other) == paged(name) {
			return false
		}
		was, err := os.ReadFile(filepath.Join(c.f.dir, other))
		return err == nil && bytes.Equal(is, was)
	})
}

// remains returns the table to which all remaining files belong if none of them is the table's own: an older state of
// it, or another table. It returns nil if some are its own.
func (c *trial) remains() *fixture {
	if !c.moved {
		return nil
	}
	for _, f := range []*fixture{c.f.stale, c.f.other} {
		if f != nil && c.isOf(f) {
			return f
		}
	}
	return nil
}

// isOf reports whether the copy has files and each of them is a file of f that differs from the table's own.
func (c *trial) isOf(f *fixture) bool {
	n := 0
	for _, name := range c.f.files {
		is, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil || c.displaced(name, is) {
			continue
		}
		own, _ := os.ReadFile(filepath.Join(c.f.dir, name))
		k := slices.Index(c.f.files, name)
		if k >= len(f.files) || bytes.Equal(is, own) {
			return false
		}
		was, err := os.ReadFile(filepath.Join(f.dir, f.files[k]))
		if err != nil || !bytes.Equal(is, was) {
			return false
		}
		n++
	}
	return n > 0
}

// columnless reports whether the table has rows without columns, and no checksums: the number of rows is all it
// stores, and it is stored once.
func (c *trial) columnless() bool {
	return !c.f.checked && !c.f.text && !slices.ContainsFunc(c.f.ref, func(l string) bool { return l != "{}" })
}

// isAll reports whether the copy has exactly the files of f.
func (c *trial) isAll(f *fixture) bool {
	if f == nil {
		return false
	}
	for _, name := range slices.Concat(f.files, c.f.files) {
		is, err := os.ReadFile(filepath.Join(c.dir, name))
		was, err2 := os.ReadFile(filepath.Join(f.dir, name))
		if (err == nil) != (err2 == nil) || !bytes.Equal(is, was) {
			return false
		}
	}
	return true
}

// pagesTouched returns the pages with changed bytes.
func (c *trial) pagesTouched() (out []page) {
	for _, p := range c.f.pages {
		if slices.ContainsFunc(c.touched,
			func(t touch) bool { return t.file == p.file && t.from < p.to && p.from < t.to }) {
			out = append(out, p)
		}
	}
	return out
}

// allowed returns the number of rows that may differ because their pages were changed. It is 0 if bytes were only
// inserted or removed: structures are then not at the offsets that others state, and the changed page does not end
// where the next one begins.
func (c *trial) allowed() (n int) {
	if c.shifted {
		return 0
	}
	if c.f.text {
		return c.lines()
	}
	if c.f.checked {
		return 0
	}
	for _, p := range c.pagesTouched() {
		n += p.rows
	}
	return n
}

// lines returns the number of touched lines of a text, with their neighbours, counted before or after the change,
// whichever is more. In a compressed text all lines that the harmed stream still yields count as touched.
func (c *trial) lines() int {
	if c.f.maker != nil && c.f.maker.gzip {
		return max(len(c.f.ref), bytes.Count(c.unzipped(), []byte("\n"))+1)
	}
	n := 0
	for _, t := range c.touched {
		most := 0
		for _, dir := range []string{c.f.dir, c.dir} {
			b, _ := os.ReadFile(filepath.Join(dir, t.file))
			to := min(t.to, int64(len(b)))
			most = max(most, bytes.Count(b[min(t.from, to):to], []byte("\n")))
		}
		n += 3 + most
	}
	return n
}

// unzipped returns the part of a compressed text's only file that can be decompressed.
func (c *trial) unzipped() []byte {
	f, err := os.Open(filepath.Join(c.dir, c.f.files[0]))
	if err != nil {
		return nil
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil
	}
	b, _ := io.ReadAll(io.LimitReader(z, 64<<20)) // an error is expected: the stream was harmed
	return b
}

// foreignRows returns the number of rows of out that were not in the table.
func (c *trial) foreignRows(out []string) (n int) {
	left := c.f.counts()
	for _, l := range c.orphans() {
		left[l]++
	}
	for _, l := range out {
		if left[l]--; left[l] < 0 {
			n++
		}
	}
	return n
}

func (c *trial) firstForeign(out []string) string {
	left := c.f.counts()
	for i, l := range out {
		if left[l]--; left[l] < 0 {
			return fmt.Sprintf("row %d %.200s", i, l)
		}
	}
	return ""
}

func (c *trial) missing(out []string) (n int) {
	left := c.f.counts()
	for _, l := range out {
		left[l]--
	}
	for _, k := range left {
		n += max(0, k)
	}
	return n
}

func (f *fixture) counts() map[string]int {
	m := make(map[string]int, len(f.ref))
	for _, l := range f.ref {
		m[l]++
	}
	return m
}

// windows returns the smallest number of pages that can hold all changed cells, where a page is a run of rows of one
// column, as long as the largest touched page. Columns may be in another order, because their order is stored in
// metadata without checksums. names reports whether names differ, too.
func (c *trial) windows(out []string) (n int, names bool) {
	most := 0
	for _, p := range c.pagesTouched() {
		most = max(most, p.rows)
	}
	if most == 0 {
		most = 1
	}
	until := map[int]int{}
	for i, l := range out {
		if l == c.f.ref[i] {
			continue
		}
		was, is := cellsOf(c.f.ref[i]), cellsOf(l)
		if len(was) != len(is) {
			return 1 << 30, true
		}
		inOrderOf(was, is)
		for k := range was {
			if was[k].name != is[k].name {
				names = true
			}
			if was[k].value == is[k].value {
				continue
			}
			col := k
			if c.f.wide {
				col = 0
			}
			if i >= until[col] {
				n++
				until[col] = i + most
			}
		}
	}
	return n, names
}

// lossy runs a verb that reads intact data and reports the rest.
func (c *trial) lossy(name string, file bool, args ...string) {
	manifest := filepath.Join(c.dir, "..", "lost.json")
	out := filepath.Join(c.dir, "..", "out.jsonl")
	os.Remove(manifest)
	os.Remove(out)
	got := c.verb(name, args[0], append(args[1:], "--manifest", manifest)...)
	b := got.Stdout
	if file {
		b, _ = os.ReadFile(out)
		if got.Status == cannot || got.Status == died {
			if len(b) > 0 {
				c.find("output", "%s ended with %d and left an output", name, got.Status)
			}
			return
		}
	}
	rows := linesOf(b)
	m := &lost{}
	doc, err := os.ReadFile(manifest)
	if err == nil {
		err = json.Unmarshal(doc, m)
	}
	if err != nil && (got.Status == fine || got.Status == damage) {
		if got.Status == damage && len(rows) == 0 && !file { // the place could not be opened
			return
		}
		if got.Status == damage && file && len(b) == 0 {
			return
		}
		c.find("word", "%s ended with %d and wrote no manifest: %v", name, got.Status, err)
		return
	}
	if !m.unmet() {
		c.find("word", "%s: %s lists no loss for rows that may be missing", name, manifest)
	}
	switch got.Status {
	case fine:
		if len(m.Losses) > 0 {
			c.find("verdict", "%s ended with 0 and %d losses", name, len(m.Losses))
		}
		c.whole(name, rows)
	case damage:
		c.conserved(name, rows, m, strings.Contains(name, "null-cells"))
	}
}

// conserved checks that the rows returned and the rows reported as lost add up to the original rows, and that
// everything not reported as lost is unchanged.
func (c *trial) conserved(name string, out []string, m *lost, nulls bool) {
	if c.loose() || m.says("cfile.set") && c.pagedOfOther() {
		return
	}
	if f := c.remains(); f != nil { // only the missing files recorded the number of rows
		defer func(own *fixture) { c.f = own }(c.f)
		c.f = f
	}
	ref := c.f.ref
	n, exact := m.without(out).rows()
	if !m.Finished {
		return // the verb reported that it could not continue
	}
	if len(out) > len(ref) && m.says("carbon.status.damaged") { // compacted rows may then come twice
		return
	}
	// If no other delta of the block records it, the rows that a damaged delete delta deletes are unknown. They
	// reappear, which is reported, and nothing else differs.
	if len(out) > len(ref) && m.says("carbon.delete.damaged") && c.missing(out) == 0 {
		return
	}
	// one of two files belongs to another table, and it is unknown which; that is reported, and the rows of both are
	// returned
	if c.moved && (m.says("trevni.part.other") || m.says("redfile.part.other")) {
		return
	}
	// Without a footer only distances show to which row group a column chunk belongs: columns that are too far apart,
	// or of which the first is lost, are not joined, and the rows of both are reported, although they may be the same.
	if more := int64(len(out))+n > int64(len(ref)); more && m.says("output.rows.undeclared") &&
		(m.says("redfile.rows.lost") || m.says("redfile.columns.unknown")) {
		return
	}
	doubted := int(m.doubted())
	if len(out)-doubted > len(ref) && !(c.f.text && len(out) <= len(ref)+c.lines()) {
		c.find("conservation", "%s gave %d rows, expected at most %d", name, len(out), len(ref))
		return
	}
	if !nulls {
		switch sum := int64(len(out)) + n; {
		case c.f.text:
		case len(m.Losses) == 0 && len(out) < len(ref) &&
			!slices.ContainsFunc(m.Findings, func(f finding) bool { return f.Severity == "error" }):
			c.find("conservation", "%s gave %d rows of %d and reported no loss", name, len(out), len(ref))
		case exact && sum < int64(len(ref)) && !c.reportsLoss(m), !c.f.changed && exact &&
			sum-int64(doubted) > int64(len(ref)):
			c.find("conservation", "%s gave %d rows and reported %d as lost, expected %d in all", name, len(out), n,
				len(ref))
		}
	}
	if m.guessed() && c.foreignRows(out) > 0 && !c.sameShape(out) {
		c.guessed = true
		if len(out) == len(ref) && !nulls {
			c.alike(name, out)
		}
		return
	}
	// the finding is about something else: a changed name without a checksum is excused, as it is when cat exits with 0
	if c.foreignRows(out) > 0 && c.renamedSome(ref, out) {
		c.excused = true
		return
	}
	// so are as many other rows deleted by a delete delta as reappear
	if n := c.deletions(); len(m.Losses) == 0 && len(out) == len(ref) && n > 0 && c.foreignRows(out) <= n {
		c.excused = true
		return
	}
	if nulls {
		c.nulled(name, out, m)
		return
	}
	if strange := c.foreignRows(out); strange > c.allowed() {
		c.find("stays", "%s ended with 3, and gave %d rows that were not there (%d are allowed): %s", name,
			strange, c.allowed(), c.firstForeign(out))
		return
	} else if strange > 0 {
		c.excused = true
		return
	}
	if !c.f.text && !c.moved && !subsequence(ref, out) {
		if c.allowed() > 0 && len(c.f.counts()) < len(ref) { // changed without notice, but equal to other rows
			c.excused = true
			return
		}
		c.find("stays", "%s ended with 3, and the rows are in another order", name)
		return
	}
	if c.strict() && exact && len(m.Losses) > 0 {
		var want, sure []string // sure excludes rows that an error calls doubtful
		for i, l := range ref {
			if m.has(i, "") {
				continue
			}
			if want = append(want, l); !m.doubts(i) {
				sure = append(sure, l)
			}
		}
		if n := differing(want, out); n > 0 && n <= c.allowed()-(len(ref)-len(want)) {
			c.excused = true // in a changed page that still decodes, beside the pages that are lost
			return
		}
		if !slices.Equal(want, out) && !slices.Equal(sure, out) {
			c.find("stays", "%s: other rows came out than those that were not reported as lost: %s", name,
				difference(want, out))
		}
	}
}

// differing returns the number of rows that differ; -1 if there are not as many.
func differing(want, out []string) (n int) {
	if len(want) != len(out) {
		return -1
	}
	for i := range want {
		if want[i] != out[i] {
			n++
		}
	}
	return n
}

// reportsLoss reports whether there is an error finding, not one about rows that were read: besides the reported
// losses, an unknown number of rows may then be lost.
func (c *trial) reportsLoss(m *lost) bool {
	return slices.ContainsFunc(m.Findings,
		func(f finding) bool { return f.Severity == "error" && (f.Lost == nil || *f.Lost != 0) })
}

// strict reports whether the place is a single row group, so that row numbers in losses are row numbers of the table.
func (c *trial) strict() bool {
	return len(c.f.files) == 1 && (c.f.format() == "cfile" || strings.HasPrefix(c.f.format(), "trevni"))
}

// sameShape reports whether rows still have their original columns, by name and, as far as JSON shows, by type. If some
// rows are lost, rows cannot be matched, so the values of a column are compared with all its original values.
func (c *trial) sameShape(out []string) bool {
	if len(out) == 0 || len(c.f.ref) == 0 {
		return true
	}
	was, is := shapesOf(c.f.ref), shapesOf(out)
	if !slices.EqualFunc(was, is, func(a, b columnShape) bool { return a.name == b.name }) {
		return false
	}
	for k := range is {
		for shape := range is[k].shapes {
			for other := range was[k].shapes {
				if !sameKind(other, shape) {
					return false
				}
			}
		}
		if binaryOf(was[k].values, is[k].values) {
			return false
		}
	}
	return true
}

// alike checks rows whose names, types and order of columns may differ, but whose numbers may not.
func (c *trial) alike(name string, out []string) {
	others, where := 0, ""
	for i, l := range c.f.ref {
		was, is := cellsOf(l), cellsOf(out[i])
		width := len(was)
		for _, w := range was[:width] { // a struct may have become columns
			for _, in := range cellsOf(w.value) {
				was = append(was, cell{w.name + "." + in.name, in.value})
			}
		}
		for k, x := range is {
			j := slices.IndexFunc(was, func(w cell) bool { return w.name == x.name })
			if j < 0 && width == len(is) {
				j = k
			}
			if j >= 0 && was[j].value != x.value && kindOf(was[j]) == '0' && kindOf(x) == '0' {
				others++
				where = fmt.Sprintf("row %d, column %s is %s, was %s", i, x.name, x.value, was[j].value)
				break
			}
		}
	}
	if others > c.allowed() {
		c.find("stays", "%s ended with 3, and %d rows have other numbers (%d are allowed): %s", name, others,
			c.allowed(), where)
	}
}

// nulled checks that all rows are returned, except those whose cells are all lost, and that a cell that differs is null
// and reported as lost.
func (c *trial) nulled(name string, out []string, m *lost) {
	ref := c.f.ref
	if len(out) != len(ref) {
		if len(m.Losses) == 0 && !c.reportsLoss(m) {
			c.find("conservation", "%s gave %d rows of %d and reported no loss", name, len(out), len(ref))
		}
		return
	}
	// Lines have no numbers. If one line was joined with the next and another was cut in two, the number of lines stays
	// the same, and those in between are shifted by one. So lines are only counted, as they are when cat exits with 0.
	if c.f.text && c.foreignRows(out) <= c.lines() && c.missing(out) <= c.lines() {
		c.excused = true
		return
	}
	if c.moved && c.reportsLoss(m) && c.foreignRows(out) == 0 {
		return // files were exchanged, which was reported: rows are in another order
	}
	others := 0
	cells := map[string]int{}
	for i := range ref {
		if ref[i] == out[i] {
			continue
		}
		was, is := cellsOf(ref[i]), cellsOf(out[i])
		if len(was) < len(is) && len(m.Losses) > 0 && c.regrouped(ref[i], out[i], true) {
			c.excused = true // the name of the lost column was changed as well
			continue
		}
		if c.unparented(ref[i], out[i], m, i) {
			c.excused = true
			continue
		}
		if len(was) != len(is) {
			c.find("stays", "%s: row %d has %d columns of %d", name, i, len(is), len(was))
			return
		}
		other := false
		for k := range was {
			if was[k].value == is[k].value {
				continue
			}
			null := is[k].value == "null" || strings.ContainsAny(was[k].value[:1], "[{") &&
				strings.Contains(is[k].value, "null")
			called := was[k].name
			if c.touches(called) { // losses are reported under the name that is stored now
				called = is[k].name
			}
			if !null || c.strict() && !m.has(i, called) {
				other = true
			}
			cells[is[k].name]++ // also under the name that is stored now
		}
		if other {
			others++
			if others > c.allowed() {
				c.find("stays", "%s: %s, and that was not reported", name, difference(ref[i:i+1], out[i:i+1]))
				return
			}
		}
	}
	if others > 0 {
		c.excused = true
		return
	}
	for col, n := range cells {
		if c.allowed() > 0 { // a changed page may have different nulls
			break
		}
		reported := int64(0)
		for _, l := range m.Losses {
			if l.Column != "" && l.Column != col {
				continue
			}
			if l.From == nil || l.To == nil || *l.To < 0 {
				reported = 1 << 40
				continue
			}
			reported += *l.To - *l.From
		}
		if int64(n) > reported {
			c.find("stays", "%s: %d cells of column %s are null that were not, %d are reported", name, n, col, reported)
			return
		}
	}
}
