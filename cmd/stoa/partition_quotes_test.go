package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPartitionsOfQuotedNames: a column of any name divides a table by any transform: in quotation marks, as other
// lists have it. The metadata have it as it is, the rows come back, and the table catches up.
func TestPartitionsOfQuotedNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"my col", "a,b", `say "hi"`, "f(x)", "bucket(16, id)", `",(`, "))", "day", `"`,
		"source", " blank ", "é=1/2"} {
		write := func(days ...string) {
			var text strings.Builder
			w := csv.NewWriter(&text)
			w.Write([]string{name, "n " + name, "v"})
			for i, d := range days {
				w.Write([]string{d, string(rune('1' + i)), "x"})
			}
			w.Flush()
			if err := os.WriteFile("in.csv", []byte(text.String()), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		n := `"n ` + quoted[1:]
		terms := "day(" + quoted + "), bucket( 16 , " + n + "),truncate(2," + n + " ) ," + n + ", month(" + quoted + ")"
		if name == "source" { // the whole text source is another thing
			terms = quoted
		}
		write("2020-01-01", "2020-01-02", "2020-02-03")
		must(t, "convert", "in.csv", "--to", "iceberg", "-o", "ice", "--partition-by", terms, "-q")
		want := []string{name + ":day", "n " + name + ":bucket[16]", "n " + name + ":truncate[2]",
			"n " + name + ":identity", name + ":month"}
		if name == "source" {
			want = []string{name + ":identity"}
		}
		if got := specOf(t, "ice/metadata/v1.metadata.json"); strings.Join(got, ";") != strings.Join(want, ";") {
			t.Errorf("%s: spec %q, want %q", terms, got, want)
		}
		must(t, "convert", "in.csv", "--to", "iceberg,delta", "-o", "both", "--partition-by", n, "-q")
		must(t, "convert", "in.csv", "--to", "parquet", "-o", "hive", "--partition-by", n+", "+quoted, "-q")
		write("2020-01-02", "2020-02-03", "2020-03-04", "2020-03-05")
		for _, out := range []string{"ice", "both"} {
			must(t, "convert", "--catch-up", "in.csv", "-o", out, "-q")
			must(t, "verify", out, "--deep", "-q")
		}
		for place, rows := range map[string]string{"ice": "4", "both": "4", "hive": "3"} {
			if got := strings.TrimSpace(must(t, "count", place)); got != rows {
				t.Errorf("%s: %s: %s rows, want %s", name, place, got, rows)
			}
			if err := os.RemoveAll(place); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, bad := range []string{`bucket(16, "a`, `day("v")x`, `day("v", "v")`, `"v`, `bucket("v")`, `day()`, `day("")`,
		`year("v"`} {
		got := said("\x00", "convert", "in.csv", "--to", "iceberg", "-o", "bad", "--partition-by", bad)
		if !strings.Contains(got, "partition-by") || strings.HasSuffix(got, "status: 0") {
			t.Errorf("%s: %s", bad, got)
		}
		if found, _ := filepath.Glob("bad*"); len(found) > 0 {
			t.Fatalf("%s: %v", bad, found)
		}
	}
}

// specOf returns the columns and transforms of the partition spec in metadata.
func specOf(t *testing.T, file string) (out []string) {
	t.Helper()
	b, err := os.ReadFile(file)
	var doc struct {
		Schemas []struct {
			Fields []struct {
				ID   int
				Name string
			}
		}
		Specs []struct {
			Fields []struct {
				Source    int `json:"source-id"`
				Transform string
			}
		} `json:"partition-specs"`
	}
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range doc.Specs[0].Fields {
		for _, c := range doc.Schemas[0].Fields {
			if c.ID == f.Source {
				out = append(out, c.Name+":"+f.Transform)
			}
		}
	}
	return out
}
