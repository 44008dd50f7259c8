package attack

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// broken is the command with a deliberate fault, which the attack must notice.
type broken struct {
	command
	wrong func(args []string, got *answer)
}

func (b *broken) run(args ...string) answer {
	got := b.command.run(args...)
	b.wrong(args, &got)
	return got
}

// output is the value of -o or --manifest.
func output(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 {
		return args[i+1]
	}
	return ""
}

// lines changes the output of a verb that reads rows, on standard output or in its file.
func lines(args []string, got *answer, change func([]string) []string) {
	edit := func(b []byte) []byte {
		if l := linesOf(b); len(l) > 1 {
			return []byte(strings.Join(change(l), "\n") + "\n")
		}
		return b
	}
	if args[0] == "cat" {
		got.Stdout = edit(got.Stdout)
	}
	if o := output(args, "-o"); args[0] == "recover" && o != "" {
		if b, err := os.ReadFile(o); err == nil {
			os.WriteFile(o, edit(b), 0o666)
		}
	}
}

var faults = []struct {
	name, law string // law by which the attack notices the fault
	wrong     func(args []string, got *answer)
}{
	{"a row is dropped", "conservation", func(args []string, got *answer) {
		if got.Status == damage {
			lines(args, got, func(l []string) []string { return l[:len(l)-1] })
		}
	}},
	{"a row is dropped without damage", "silent", func(args []string, got *answer) {
		if got.Status == fine && args[0] == "recover" {
			lines(args, got, func(l []string) []string { return l[1:] })
		}
	}},
	{"a row comes twice", "stays", func(args []string, got *answer) {
		if args[0] == "recover" && got.Status == damage {
			lines(args, got, func(l []string) []string { l[len(l)-1] = l[0]; return l })
		}
	}},
	{"a value is changed", "stays", func(args []string, got *answer) {
		if got.Status == damage {
			lines(args, got, func(l []string) []string { l[0] = strings.Replace(l[0], ":", ":1", 1); return l })
		}
	}},
	{"a row is made up before cat fails", "fail", func(args []string, got *answer) {
		if got.Status == damage && args[0] == "cat" && output(args, "--damaged") == "" {
			got.Stdout = append(got.Stdout, `{"id":-1}`+"\n"...)
		}
	}},
	{"recover swallows its status", "silent", func(args []string, got *answer) {
		if args[0] == "recover" && got.Status == damage {
			got.Status = fine
			if m := output(args, "--manifest"); m != "" {
				os.WriteFile(m, []byte(`{"finished": true}`), 0o666)
			}
		}
	}},
	{"losses are not reported", "conservation", func(args []string, got *answer) {
		if m := output(args, "--manifest"); m != "" && got.Status == damage {
			os.WriteFile(m, []byte(`{"finished": true}`), 0o666)
		}
	}},
	{"verify finds nothing", "verdict", func(args []string, got *answer) {
		if args[0] == "verify" {
			got.Status, got.Stdout = fine, []byte("{}")
		}
	}},
	{"cat says nothing of damage", "word", func(args []string, got *answer) {
		if args[0] == "cat" && got.Status == damage {
			got.Stdout, got.Stderr = nil, nil
		}
	}},
	{"another status", "status", func(args []string, got *answer) {
		if got.Status == damage {
			got.Status = 7
		}
	}},
	{"much memory", "memory", func(_ []string, got *answer) { got.Grown = 3 << 30 }},
	{"a panic", "alive", func(args []string, got *answer) {
		if got.Status == damage {
			got.Status, got.died = died, "died: panic"
		}
	}},
	{"count counts too few", "silent", func(args []string, got *answer) {
		if args[0] == "count" && got.Status == fine {
			var n struct{ Rows int }
			json.Unmarshal(got.Stdout, &n)
			got.Stdout = bytes.Replace(got.Stdout, []byte(`:`), []byte(`: 1`), 1)
		}
	}},
	{"get gives the first row", "silent", func(args []string, got *answer) {
		if args[0] == "get" && got.Status == fine {
			got.Stdout = []byte("{\"id\":-3}\n")
		}
	}},
	{"ls forgets the table", "conservation", func(args []string, got *answer) {
		if args[0] == "ls" && got.Status == fine {
			got.Stdout = []byte("[]")
		}
	}},
}

// TestNoticed: the attack finds deliberate faults; without this, finding nothing would prove nothing.
func TestNoticed(t *testing.T) {
	good := build(t)
	m := &makers[slices.IndexFunc(makers, func(m maker) bool { return m.name == "trevni/crc32" })]
	whole := newAttack(good, t.TempDir())
	f, err := whole.fixtureOf(m, 3)
	if err != nil {
		t.Fatal(err)
	}
	block := f.pages[len(f.pages)-1]
	for _, x := range faults {
		t.Run(x.name, func(t *testing.T) {
			a := newAttack(&broken{good, x.wrong}, t.TempDir())
			var laws []string
			for _, harms := range [][]harm{ // damage in a block, no damage, and damage that affects everything
				{{op: "flip", n: [3]int64{block.from + 20, 3}}},
				{{op: "over", n: [3]int64{0, 0, 0}}},
				{{op: "cut", n: [3]int64{block.from}}},
			} {
				c, err := a.try(f, harms, 1, true)
				if err != nil || c == nil {
					t.Fatalf("%v does not fit: %v", harms, err)
				}
				for _, say := range c.finds {
					laws = append(laws, strings.SplitN(say, ":", 2)[0])
				}
				if slices.Contains(laws, x.law) {
					break
				}
			}
			if !slices.Contains(laws, x.law) {
				t.Errorf("expected a find of law %q, got %q", x.law, laws)
			}
		})
	}
	t.Run("nothing is broken", func(t *testing.T) {
		c, err := whole.try(f, []harm{{op: "flip", n: [3]int64{block.from + 20, 3}}}, 1, true)
		if err != nil || c == nil || len(c.finds) > 0 || c.status["cat"] != damage {
			t.Errorf("%v: %+v", err, c)
		}
	})
	// one exits at once, the other never answers
	for program, want := range map[string]string{"true": "died", "yes": "no answer"} {
		t.Run("a process that "+want, func(t *testing.T) {
			s := &served{binary: program, limit: time.Second}
			defer s.stop()
			if got := s.run("x"); got.Status != died || !strings.Contains(got.died, want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestWindowsByName: a different order of columns does not count as changed cells, and a changed cell is still found in
// it.
func TestWindowsByName(t *testing.T) {
	c := &trial{f: &fixture{ref: []string{`{"a":1,"b":2}`, `{"a":3,"b":4}`}}}
	for _, x := range []struct {
		out   []string
		n     int
		names bool
	}{
		{[]string{`{"b":2,"a":1}`, `{"b":4,"a":3}`}, 0, false},
		{[]string{`{"b":1,"a":2}`, `{"b":4,"a":3}`}, 2, false},
		{[]string{`{"b":2,"a":1}`, `{"b":5,"a":3}`}, 1, false},
		{[]string{`{"c":1,"b":2}`, `{"a":3,"b":4}`}, 0, true},
	} {
		if n, names := c.windows(x.out); n != x.n || names != x.names {
			t.Errorf("%v: %d, %v", x.out, n, names)
		}
	}
}

// TestRenamedOnly: a changed name is excused if its stored bytes were changed and verify reported that names have no
// checksum; a changed value is not excused, nor a name whose stored bytes are unchanged.
func TestRenamedOnly(t *testing.T) {
	row := []string{`{"id":1,"N":[{"L":[{"C":"x","D":null}]}]}`}
	for _, x := range []struct {
		out               string
		checked, nameless bool
		want              bool
	}{
		{`{"id":1,"N":[{"L":[{"C":"x","E":null}]}]}`, true, true, true},
		{`{"id":1,"N":[{"L":{"C":["x"]},"M":[{"D":null}]}]}`, true, true, true}, // names define structs
		{`{"id":1,"N":[{"L":[{"C":"x","E":null}]}]}`, true, false, false},
		{`{"id":1,"N":[{"L":[{"C":"y","E":null}]}]}`, true, true, false},
		{`{"id":2,"N":[{"L":[{"C":"x","E":null}]}]}`, true, true, false},
		{`{"ID":1,"N":[{"L":[{"C":"x","D":null}]}]}`, true, true, false},
		{`{"N":[{"L":[{"C":"x","D":null}]}],"id":1}`, true, true, false},
		{`{"id":1,"N":[{"L":[{"C":"x","E":null}]}]}`, false, false, true},
	} {
		c := &trial{f: &fixture{name: "trevni/x", ref: row, checked: x.checked, nameless: x.nameless,
			names: []storedName{{"f", 10, 12, "id"}, {"f", 20, 27, "N.L.C"}, {"f", 30, 37, "N.L.D"}}},
			touched: []touch{{"f", 33, 34}}}
		if got := c.renamed(row, []string{x.out}); got != x.want {
			t.Errorf("%s, checked %v, nameless %v: %v", x.out, x.checked, x.nameless, got)
		}
	}
}

// TestRenamedAndLost: a column whose stored name was changed, and which is lost, may stand elsewhere as null; another
// column may not change, nor may any if its stored name is unchanged.
func TestRenamedAndLost(t *testing.T) {
	row := `{"id":1,"L":{"A":[1,2],"B":[3]}}`
	for _, x := range []struct {
		out     string
		touched touch
		want    bool
	}{
		{`{"id":1,"L":{"A":[1,2]},"M":null}`, touch{"f", 33, 34}, true},
		{`{"id":1,"L":{"A":[1,2]},"M":{"B":[3]}}`, touch{"f", 33, 34}, true},
		{`{"id":1,"L":{"A":[1,2]},"M":{"B":[4]}}`, touch{"f", 33, 34}, false},
		{`{"id":2,"L":{"A":[1,2]},"M":null}`, touch{"f", 33, 34}, false},
		{`{"id":1,"L":{"A":[1,7]},"M":null}`, touch{"f", 33, 34}, false},
		{`{"id":1,"L":{"A":[1,2]},"M":null}`, touch{"f", 23, 24}, false},
	} {
		c := &trial{f: &fixture{name: "trevni/x", ref: []string{row}, nameless: true, names: []storedName{
			{"f", 10, 12, "id"}, {"f", 20, 27, "L.A"}, {"f", 30, 37, "L.B"}}}, touched: []touch{x.touched}}
		if got := c.regrouped(row, x.out, true); got != x.want {
			t.Errorf("%s, %v: %v", x.out, x.touched, got)
		}
	}
}

// TestUnparented: a column whose metadata was changed after its name may be null outside of its array and missing
// inside, if it is reported as lost; nothing else may differ.
func TestUnparented(t *testing.T) {
	row := `{"m":[{"m[]":[{"m[][]":[1]}]},{"m[]":[]}],"v":2}`
	told, other := `{"losses":[{"column":"m[][]","from":0,"to":9}]}`, `{"losses":[{"column":"v","from":0,"to":9}]}`
	parent := touch{"f", 23, 30}
	for _, x := range []struct {
		out, manifest string
		touched       touch
		want          bool
	}{
		{`{"m":[{"m[]":[null]},{"m[]":[]}],"m[][]":null,"v":2}`, told, parent, true},
		{`{"m":[{"m[]":[null]},{"m[]":[]}],"m[][]":null,"v":2}`, other, parent, false},
		{`{"m":[{"m[]":[null]},{"m[]":[]}],"m[][]":null,"v":2}`, told, touch{"f", 40, 41}, false},
		{`{"m":[{"m[]":[null]},{"m[]":[]}],"m[][]":[1],"v":2}`, told, parent, false},
		{`{"m":[{"m[]":[null]},{"m[]":[]}],"m[][]":null,"v":3}`, told, parent, false},
		{`{"m":[{"m[]":[null,null]},{"m[]":[]}],"m[][]":null,"v":2}`, told, parent, false},
		{`{"m":[{"m[]":[]},{"m[]":[]}],"m[][]":null,"v":2}`, told, parent, false},
		{`{"m":[{"m[]":[null]},{"m[]":[]}],"v":2}`, told, parent, false},
	} {
		c := &trial{f: &fixture{name: "trevni/x", ref: []string{row}, names: []storedName{{"f", 4, 5, "m"},
			{"f", 10, 13, "m[]"}, {"f", 18, 23, "m[][]"}, {"f", 38, 39, "v"}}}, touched: []touch{x.touched}}
		m := &lost{}
		if err := json.Unmarshal([]byte(x.manifest), m); err != nil {
			t.Fatal(err)
		}
		if got := c.unparented(row, x.out, m, 0); got != x.want {
			t.Errorf("%s, %s, %v: %v", x.out, x.manifest, x.touched, got)
		}
	}
}

// TestKeysAsCat: a result of get by key is excused only if it equals the output of cat, and cat was excused.
func TestKeysAsCat(t *testing.T) {
	one, two, other := `{"id":1,"n":2}`, `{"id":1,"n":3}`, `{"id":4,"n":3}`
	key := cellsOf(one)[0]
	for i, x := range []struct {
		rows, out []string
		excused   bool
		want      bool
	}{
		{[]string{one, two}, []string{one, two}, true, true},
		{[]string{one, other}, []string{one}, true, true},
		{[]string{one, two}, []string{one, two}, false, false},
		{[]string{one, two}, []string{one}, true, false},
		{[]string{one, other}, []string{one, two}, true, false},
		{[]string{one, other}, []string{one, other}, true, false},
		{nil, nil, true, false},
	} {
		c := &trial{rows: x.rows, excused: x.excused}
		if got := c.asCat(key, x.out); got != x.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// TestLikeCut: only a removal from the blocks of a column that shortens the file at least to where these blocks should
// end is like a cut.
func TestLikeCut(t *testing.T) {
	f := &fixture{name: "trevni/x", dir: t.TempDir(), files: []string{"f"}, pages: []page{{"f", 20, 40, 1},
		{"f", 56, 70, 1}, {"f", 70, 100, 1}}}
	if err := os.WriteFile(filepath.Join(f.dir, "f"), make([]byte, 100), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		at, n int64
		want  bool
	}{{10, 1, false}, {20, 1, false}, {39, 1, false}, {45, 1, false}, {55, 1, false}, {56, 1, true}, {69, 1, true},
		{99, 1, true}, {20, 60, false}, {20, 61, true}, {45, 55, false}} {
		at := x.at
		if got := f.likeCut(harm{op: "drop", n: [3]int64{at, x.n}}); got != x.want {
			t.Errorf("drop of %d at %d: %v", x.n, at, got)
		}
		if f.likeCut(harm{op: "insert", n: [3]int64{at, 1}}) {
			t.Errorf("an insert at %d is like a cut", at)
		}
	}
}

// TestNameIsAnAnswer: refusing a table because of equal names is allowed if bytes of names, or of the schema around
// them, were changed, no checksum covers them, and verify reported it; or because of a name that CarbonData does not
// accept, in a harmed CarbonData file; and for no other reason.
func TestNameIsAnAnswer(t *testing.T) {
	refusal := answer{Status: cannot, Stderr: []byte(
		"stoa: unsupported: two columns, or two fields of a struct, have this name: an object cannot have a key twice")}
	other := answer{Status: cannot, Stderr: []byte("stoa: unsupported: a type")}
	damaged := answer{Status: damage, Stderr: refusal.Stderr}
	head := touch{"f", 50, 51}
	for i, x := range []struct {
		got        answer
		touched    touch
		duplicated bool
		checked    bool
		want       bool
	}{
		{refusal, head, true, false, true},
		{refusal, touch{"f", 30, 33}, true, false, true},
		{other, head, true, false, false},
		{damaged, head, true, false, false},
		{refusal, head, false, false, false},
		{refusal, head, true, true, false},
		{refusal, touch{"f", 100, 400}, true, false, false},
		{refusal, touch{"f", 32, 40}, true, false, false},
		{refusal, touch{"g", 50, 51}, true, false, false},
	} {
		c := &trial{f: &fixture{name: "arrow/x", checked: x.checked, heads: []storedName{{"f", 40, 100, ""}},
			names: []storedName{{"f", 30, 32, "id"}}}, touched: []touch{x.touched}, duplicated: x.duplicated}
		if got := c.refusesName(x.got); got != x.want {
			t.Errorf("%d: %v", i, got)
		}
	}
	unfit := answer{Status: cannot, Stderr: []byte("stoa: unsupported: CarbonData needs a name without dots")}
	for i, x := range []struct {
		got     answer
		name    string
		touched []touch
		want    bool
	}{
		{unfit, "carbon/v2", []touch{head}, true},
		{unfit, "carbon/v2", nil, false},
		{unfit, "trevni/x", []touch{head}, false},
		{other, "carbon/v2", []touch{head}, false},
		{answer{Status: damage, Stderr: unfit.Stderr}, "carbon/v2", []touch{head}, false},
	} {
		if got := (&trial{f: &fixture{name: x.name}, touched: x.touched}).refusesName(x.got); got != x.want {
			t.Errorf("unfit %d: %v", i, got)
		}
	}
}

// TestDeletionsOnly: exchanged rows are excused only if nothing but delete deltas was touched, and only as many as
// these deltas have.
func TestDeletionsOnly(t *testing.T) {
	f := &fixture{name: "carbon/x", dir: t.TempDir()}
	for name, text := range map[string]string{"a.deletedelta": `{"deletedRows":[3,13]}`, "b.carbondata": "1,2,3,4,5"} {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		files []string
		want  int
	}{
		{[]string{"a.deletedelta"}, 2},
		{[]string{"a.deletedelta", "b.carbondata"}, 0},
		{[]string{"b.carbondata"}, 0},
		{nil, 0},
	} {
		c := &trial{f: f}
		for _, name := range x.files {
			c.touched = append(c.touched, touch{name, 0, 1})
		}
		if got := c.deletions(); got != x.want {
			t.Errorf("%v: got %d rows, want %d", x.files, got, x.want)
		}
	}
}

// TestZippedLines: in a compressed text at most as many lines may differ as it originally had, or as its harmed stream
// still yields.
func TestZippedLines(t *testing.T) {
	f := &fixture{dir: t.TempDir(), maker: &maker{gzip: true}, files: []string{"t.csv.gz"}, text: true}
	f.ref = []string{"{}", "{}", "{}"}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte("a\n1\n2\n3\n4\n5\n"))
	z.Close()
	wrong := bytes.Clone(b.Bytes())
	wrong[len(wrong)-8]++ // of the checksum
	for name, x := range map[string]struct {
		content []byte
		want    int
	}{
		"wrong checksum":  {wrong, 7},
		"no stream":       {[]byte("a\n1\n2\n3\n4\n5\n"), 3},
		"only its header": {wrong[:10], 3},
	} {
		c := &trial{f: f, dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(c.dir, "t.csv.gz"), x.content, 0o666); err != nil {
			t.Fatal(err)
		}
		if got := c.allowed(); got != x.want {
			t.Errorf("%s: %d lines may differ, want %d", name, got, x.want)
		}
	}
}

// TestSymbolOnly: a changed text is excused only if its bytes were changed in an Avro schema, and only as a text.
func TestSymbolOnly(t *testing.T) {
	f := &fixture{name: "trevni/x", dir: t.TempDir()}
	//                0         10        20        30        40
	content := []byte(`0123456789{"symbols":["north","south"]} "east" north`)
	if err := os.WriteFile(filepath.Join(f.dir, "f"), content, 0o666); err != nil {
		t.Fatal(err)
	}
	f.schemas = []storedName{{"f", 10, 40, ""}}
	north := int64(bytes.Index(content, []byte("north")))
	for _, x := range []struct {
		touched touch
		was, is string
		want    bool
	}{
		{touch{"f", north + 1, north + 2}, `"north"`, `"nxrth"`, true},
		{touch{"f", north + 1, north + 2}, `["a","north"]`, `["a","nxrth"]`, true},
		{touch{"f", north + 1, north + 2}, `"south"`, `"sxuth"`, false},             // another symbol's bytes
		{touch{"f", north + 1, north + 2}, `"west"`, `"wxst"`, false},               // no symbol
		{touch{"f", north + 1, north + 2}, `"north"`, `7`, false},                   // no longer a text
		{touch{"f", north + 1, north + 2}, `"north"`, `null`, false},                // null is no symbol
		{touch{"f", north + 1, north + 2}, `["a","north"]`, `["b","nxrth"]`, false}, // one cell more
		{touch{"f", 0, 3}, `"north"`, `"nxrth"`, false},                             // not the schema
		{touch{"g", north + 1, north + 2}, `"north"`, `"nxrth"`, false},             // another file
		{touch{"f", 41, 42}, `"east"`, `"exst"`, false},                             // a text, but not in the schema
		{touch{"f", north + 5, north + 6}, `"north"`, `"nxrth"`, true},              // its quote
		{touch{"f", north + 6, north + 7}, `"north"`, `"nxrth"`, false},             // the comma after it
	} {
		c := &trial{f: f, touched: []touch{x.touched}}
		f.checked = true
		if got := c.sameButNames(x.was, x.is); got != x.want {
			t.Errorf("%v: %s becomes %s: %v", x.touched, x.was, x.is, got)
		}
	}
}

// TestDeletions: rows of a harmed delete delta are counted only if no other file of the table is harmed.
func TestDeletions(t *testing.T) {
	const delta, lock, data = "t/a.deletedelta", "t/b.lock", "t/c.carbondata"
	was, is := t.TempDir(), t.TempDir()
	for dir, text := range map[string]string{was: "[3,13,23]", is: "[3,12,23]"} {
		for name, b := range map[string]string{delta: text, lock: "", data: "rows"} {
			if err := errors.Join(os.MkdirAll(filepath.Join(dir, "t"), 0o777),
				os.WriteFile(filepath.Join(dir, name), []byte(b), 0o666)); err != nil {
				t.Fatal(err)
			}
		}
	}
	one, beside, other := touch{delta, 4, 5}, touch{lock, 0, wholeFile}, touch{data, 0, 1}
	c := &trial{f: &fixture{dir: was}, dir: is}
	for i, x := range []struct {
		touched []touch
		want    int
	}{{[]touch{one}, 3}, {[]touch{one, beside}, 3}, {[]touch{beside}, 0}} {
		if c.touched = x.touched; c.deletions() != x.want {
			t.Errorf("%d: %d rows, want %d", i, c.deletions(), x.want)
		}
	}
	if err := os.WriteFile(filepath.Join(is, data), []byte("sows"), 0o666); err != nil {
		t.Fatal(err)
	}
	if c.touched = []touch{one, other}; c.deletions() != 0 {
		t.Errorf("with harmed data: %d rows", c.deletions())
	}
}

// TestMetadataDecideOneColumn: in RedFile without checksums, changed metadata of a column chunk excuse other values of
// one column, and of no second one; with checksums, and in other formats, they excuse nothing.
func TestMetadataDecideOneColumn(t *testing.T) {
	for _, x := range []struct {
		name, node string
		checked    bool
		want       bool
	}{
		{"redfile/real", "column_metadata", false, true},
		{"redfile/real", "column_metadata", true, false},
		{"redfile/real", "file_metadata", false, false},
		{"trevni/real", "column_metadata", false, false},
	} {
		if got := (&fixture{name: x.name, checked: x.checked}).decides(x.node); got != x.want {
			t.Errorf("%s %s: %v", x.name, x.node, got)
		}
	}
	ref := []string{`{"i":1,"l":7}`, `{"i":2,"l":8}`}
	f := &fixture{name: "redfile/x", ref: ref, pages: []page{{"f", 100, 120, 2}}}
	for _, x := range []struct {
		touched touch
		out     []string
		finds   int
	}{
		{touch{"f", 102, 103}, []string{`{"i":1.5,"l":7}`, `{"i":2.5,"l":8}`}, 0},
		{touch{"f", 102, 103}, []string{`{"i":1.5,"l":9}`, `{"i":2.5,"l":8}`}, 1},
		{touch{"f", 120, 121}, []string{`{"i":1.5,"l":7}`, `{"i":2,"l":8}`}, 1},
	} {
		c := &trial{f: f, touched: []touch{x.touched}}
		if c.whole("cat", x.out); len(c.finds) != x.finds {
			t.Errorf("%v: %v", x.out, c.finds)
		}
	}
}
