package text

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"stoa/format"
	"stoa/store"
)

// lost is a tree in which nothing can be opened.
type lost struct{ *store.Memory }

func (lost) Open(context.Context, string) (store.Source, error) { return nil, fs.ErrPermission }

// TestCodes: every finding code of a text, with location, rows and message.
func TestCodes(t *testing.T) {
	doubt := "; the only checksum is that of the whole text: any row before may have other values"
	big := strings.Repeat("x", 150<<10) // two of them exceed the 256 KiB that are read at once
	for _, c := range []struct {
		f    format.Format
		text string
		opts string // schema
		want string // code, place, path, rows, lost: message
	}{
		{CSV, "a,b\n1,2\n3\n4,5\n", "", `csv.row t[8+2] "line 3" [1 2] 1: 1 fields, the table has 2 columns: the ` +
			`row cannot be cut into columns`},
		{TSV, "a\tb\n1\t2\n3\n4\t5\n", "",
			`tsv.row t[8+2] "line 3" [1 2] 1: 1 fields, the table has 2 columns: the row cannot be cut into columns`},
		{CSV, "a\n300\n", "a: int8", `csv.row t[2+3] "line 2, column \"a\"" [0 1] 1: "300" is not a value of type ` +
			`int8`},
		{CSV, "a,b\n\"x\"y,\"m\nn\"\n1,2\n", "",
			`csv.row t[4+3] "line 2" [0 1] 1: a closing quote is followed by 'y' instead of a separator or the end ` +
				`of the line; the record is assumed to end with line 3`},
		{CSV, "a,b\n1,\"x\"y\n", "", `csv.row t[6+3] "line 2" [0 1] 1: a closing quote is followed by 'y' instead ` +
			`of a separator or the end of the line`},
		{CSV, "a,b\n1,2\n3,\"x", "", `csv.text t[10+2] "line 3" [-1 -1] -1: the quote that is opened here is not ` +
			`closed`},
		{TSV, "a\t\"b\n1\t2\n", "", `tsv.text t[2+7] "line 1" [-1 -1] -1: the quote that is opened here is not closed`},
		{CSV, zipped("a,b\n1,2\n")[:30], "", `csv.text t "gzip" [-1 -1] -1: unexpected EOF` + doubt},
		{JSONL, zipped("{\"a\":1}\n")[:30], "", `jsonl.text t "gzip" [-1 -1] -1: unexpected EOF` +
			doubt},
		{CSV, "", "", `csv.empty t "" [-1 -1] -1: the file is empty, without even a header`},
		{TSV, "", "", `tsv.empty t "" [-1 -1] -1: the file is empty, without even a header`},
		{CSV, "a,b\n" + big + big, "", `csv.unreadable t[4+262140] "record" [-1 -1] -1: the record that begins at ` +
			`byte 4 of the text is longer than 16384 bytes, an eighth of the page limit; a quote may be missing`},
		{TSV, "a\rb\r", "", `tsv.unreadable t[0+4] "line 1" [-1 -1] -1: a line ends in CR alone; only LF and CR LF ` +
			`end lines here (tr '\r' '\n' makes them of it)`},
		{JSONL, "1,2\n{\"a\":1,}\n", "",
			`jsonl.row t[1+1] "line 1" [0 1] 1: no line is a JSON object; if the text is of another format, ` +
				`the format can be forced: ',' after the value`},
		{JSONL, "{\"a\":1}\n{\"a\":1,}\n", "",
			`jsonl.row t[15+1] "line 2" [1 2] 1: '}' where a name in quotes is expected`},
		{JSONL, "{\"a\":1}\n{\"a\":\"x\",\"b\":[1]}\n", "a: int64, b: list<int64>",
			`jsonl.row t[13+1] "line 2, column \"a\"" [1 2] 1: "x" is not a value of type int64`},
	} {
		o := format.OpenOptions{Limits: format.Limits{Page: 128 << 10}}
		if c.opts != "" {
			o.Opts = map[string]string{"schema": c.opts}
		}
		var got []string
		for f := range c.f.Verify(context.Background(), format.Target{Tree: tree(c.text), Name: "t"}, o) {
			got = append(got, fmt.Sprintf("%s %s %q %v %d: %s", f.Code, f.At, f.Path, f.Rows, f.Lost, f.Message))
		}
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.text[:min(len(c.text), 40)], got, c.want)
		}
	}
	for f, want := range map[*format.Format]string{&CSV: "csv.unreadable", &TSV: "tsv.unreadable",
		&JSONL: "jsonl.unreadable"} {
		n := 0
		for x := range f.Verify(context.Background(), format.Target{Tree: lost{tree("")}, Name: "t"},
			format.OpenOptions{}) {
			if n++; x.Code != want || !strings.Contains(x.Message, fs.ErrPermission.Error()) || x.Lost != -1 {
				t.Errorf("%+v", x)
			}
		}
		if n != 1 {
			t.Errorf("expected one finding, %s, found %d", want, n)
		}
	}
}
