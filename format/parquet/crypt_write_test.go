package parquet_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// ways returns encryption options, each with the lines of its key file.
func ways() map[string]map[string]string {
	const foot = "footer text:0123456789012345\n"
	const cols = foot + "column b text:1234567890123450\ncolumn l.list.element text:012345678901234567890123456789ab\n"
	out := map[string]map[string]string{
		"uniform": {"keys": foot}, "prefix": {"keys": foot + "aad-prefix text:tab\n"}, "columns": {"keys": cols},
		"named":   {"keys": cols + "key kf text:0123456789012345\nkey kb text:1234567890123450\n"},
		"supply":  {"keys": cols + "aad-prefix text:tab\n", "store-aad-prefix": "false"},
		"partial": {"keys": cols, "plain-columns": "a"},
	}
	for name, o := range maps.Clone(out) {
		signed := maps.Clone(o)
		signed["plain-footer"] = "true"
		out[name+".signed"] = signed
	}
	for name, o := range maps.Clone(out) {
		ctr := maps.Clone(o)
		ctr["encryption"] = "gcm-ctr"
		out[name+".ctr"] = ctr
	}
	return out
}

// secretRows returns encryptedRow for 120 rows as a table.
func secretRows() arrow.RecordBatch {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "b", Type: arrow.BinaryTypes.String},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	for i := range 120 {
		if i%11 == 0 {
			b.Field(0).AppendNull()
		} else {
			b.Field(0).(*array.Int64Builder).Append(int64(i))
		}
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("secret", i%7))
		l := b.Field(2).(*array.ListBuilder)
		if l.Append(true); i%3 > 0 {
			l.ValueBuilder().(*array.Int32Builder).AppendValues([]int32{int32(i), int32(i + 1)}, nil)
		}
	}
	return b.NewRecordBatch()
}

// secretFile writes secretRows with options, in which "keys" are lines of a key file, and returns the file and the
// options that open it.
func secretFile(t *testing.T, opts map[string]string) (b []byte, keys map[string]string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(name, []byte(opts["keys"]), 0o600); err != nil {
		t.Fatal(err)
	}
	opts = maps.Clone(opts)
	delete(opts, "keys")
	opts["key-file"] = name
	tree, batch := store.NewMemory(nil), secretRows()
	w, err := parquet.Format.Create(t.Context(), tree.Sink("t"), batch.Schema(),
		format.WriteOptions{Rows: -1, Opts: opts})
	if err == nil {
		if err = w.Write(t.Context(), batch); err == nil {
			_, err = w.Close(t.Context())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return tree.Bytes("t"), map[string]string{"key-file": name}
}

func secretRow(i int) string { return strings.Replace(encryptedRow(i), " x", " secret", 1) }

// TestWrittenEncrypted: a file that was written with keys is read with them, completely and by filters that use
// statistics, page indexes and Bloom filters; verify has no findings; describe claims every byte; and neither values
// nor names are in the file in plain text.
func TestWrittenEncrypted(t *testing.T) {
	for name, way := range ways() {
		for _, page := range []map[string]string{{"compression": "none"}, {"page-version": "2", "compression": "zstd"},
			{"dictionary": "false", "page-index": "false", "compression": "none"},
			{"crc": "false", "row-group-rows": "1000"}} {
			opts := map[string]string{"page-size": "100", "row-group-rows": "50", "bloom": "a,b,l.list.element"}
			maps.Copy(opts, way)
			maps.Copy(opts, page)
			t.Run(fmt.Sprint(name, page), func(t *testing.T) {
				b, keys := secretFile(t, opts)
				checkSecret(t, b, keys)
				if bytes.Contains(b, []byte("secret")) {
					t.Error("got a value in plain text in the file")
				}
				if way["plain-footer"] == "" && bytes.Contains(b, []byte("element")) {
					t.Error("got a name of the schema in plain text in the file")
				}
			})
		}
	}
}

// checkSecret reads a file of secretRows in several ways.
func checkSecret(t *testing.T, b []byte, keys map[string]string) {
	t.Helper()
	for where, is := range map[string]func(i int) bool{
		"":                      func(int) bool { return true },
		"a >= 70 and a < 80":    func(i int) bool { return i >= 70 && i < 80 && i%11 > 0 },
		"a = 71":                func(i int) bool { return i == 71 },
		"b = 'secret9'":         func(int) bool { return false },
		"b = 'secret3'":         func(i int) bool { return i%7 == 3 },
		"a in (3, 77, 111, -1)": func(i int) bool { return i == 3 || i == 111 },
	} {
		var spec stoa.ScanSpec
		if where != "" {
			var err error
			if spec.Filter, err = pred.Parse(where); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := rowsText(t, b, keys, spec)
		var want []string
		for i := range 120 {
			if is(i) {
				want = append(want, secretRow(i))
			}
		}
		if err != nil || strings.Join(rows, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got %q, %v, want %q", where, rows, err, want)
		}
	}
	target := format.Target{Tree: store.NewMemory(map[string][]byte{"t": b}), Name: "t"}
	o := format.OpenOptions{Opts: keys, Depth: format.Deep}
	for f := range parquet.Format.Verify(t.Context(), target, o) {
		t.Error(f)
	}
	r, err := parquet.Format.Open(t.Context(), target, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	passed := 0
	for i := range 60 { // between the bounds, so that only the Bloom filter can exclude it
		e, err := pred.Parse(fmt.Sprintf("b = 'secret3%d'", i))
		if err == nil {
			e, err = pred.Bind(e, r.Schema())
		}
		if err != nil {
			t.Fatal(err)
		}
		rows, err := r.(format.Narrower).Narrow(t.Context(), format.RowGroup{Index: 0}, e)
		if err != nil {
			t.Fatal(err)
		}
		passed += int(min(rows.Len(), 1))
	}
	if passed > 10 {
		t.Errorf("Bloom filter: got %d of 60 absent values passed", passed)
	}
	at := int64(0)
	for n, err := range parquet.Format.Describe(t.Context(), target,
		format.DescribeOptions{Pages: true, OpenOptions: o}) {
		if err != nil || n.Kind == region.Gap {
			t.Errorf("%v %v", n, err)
		}
		at = max(at, n.At.End())
	}
	if at != int64(len(b)) {
		t.Errorf("describe: got bytes up to %d, want %d", at, len(b))
	}
}

// TestWrittenEncryptedWrongKeys: encrypted columns are not read with wrong keys or without keys, and this is not
// reported as damage.
func TestWrittenEncryptedWrongKeys(t *testing.T) {
	for name, way := range ways() {
		b, _ := secretFile(t, way)
		_, err := rowsText(t, b, nil, stoa.ScanSpec{Columns: []string{"b"}})
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "key-file") {
			t.Errorf("%s without keys: got %v", name, err)
		}
		if strings.Contains(name, "named") && !strings.Contains(err.Error(), `"k`) {
			t.Errorf("%s: got %v, want the key's name", name, err)
		}
		other := filepath.Join(t.TempDir(), "keys")
		lines := strings.NewReplacer("text:0", "text:9", "text:1", "text:8").Replace(way["keys"])
		if err := os.WriteFile(other, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		rows, err := rowsText(t, b, map[string]string{"key-file": other}, stoa.ScanSpec{})
		if len(rows) > 0 || !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "another key") {
			t.Errorf("%s with wrong keys: got %d rows, %v, want class Invalid", name, len(rows), err)
		}
		if strings.HasPrefix(name, "partial.signed") {
			rows, err = rowsText(t, b, nil, stoa.ScanSpec{Columns: []string{"a"}})
			if err != nil || len(rows) != 120 || rows[5] != "5" {
				t.Errorf("%s, the plain column: got %d rows, %v", name, len(rows), err)
			}
		}
	}
}

// TestWrittenEncryptedFlips: a flipped bit is an error, or changes nothing.
func TestWrittenEncryptedFlips(t *testing.T) {
	step := 1013
	if os.Getenv("STOA_LONG") != "" {
		step = 7
	}
	for name, way := range ways() {
		opts := map[string]string{"bloom": "a,b", "page-size": "100"}
		maps.Copy(opts, way)
		whole, keys := secretFile(t, opts)
		failed := 0
		for k := 0; k < 8*len(whole); k += step {
			b := bytes.Clone(whole)
			b[k/8] ^= 1 << (k % 8)
			rows, err := rowsText(t, b, keys, stoa.ScanSpec{})
			if err != nil {
				failed++
				continue
			}
			for i, r := range rows {
				if r != secretRow(i) {
					t.Errorf("%s: bit %d of byte %d: row %d: got %s", name, k%8, k/8, i, r)
					break
				}
			}
			if len(rows) != 120 {
				t.Errorf("%s: bit %d of byte %d: %d rows", name, k%8, k/8, len(rows))
			}
		}
		if failed == 0 {
			t.Errorf("%s: reading failed for no bit, want some", name)
		}
	}
}

// TestCreateEncrypted: an encrypted output passes its check, and wrong options are refused.
func TestCreateEncrypted(t *testing.T) {
	dir, batch := t.TempDir(), secretRows()
	keys := filepath.Join(dir, "keys")
	create := func(lines string, opts map[string]string) error {
		if err := os.WriteFile(keys, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := stoa.Create(t.Context(), filepath.Join(dir, "x.parquet"), batch.Schema(),
			stoa.CreateOptions{Opts: opts, Formats: []format.Format{parquet.Format}})
		if err != nil {
			return err
		}
		if err := w.Write(t.Context(), batch); err != nil {
			return err
		}
		_, err = w.Close(t.Context())
		return err
	}
	const foot = "footer text:0123456789012345\n"
	if err := create(foot, map[string]string{"key-file": keys}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lines string
		opts  map[string]string
		want  string
	}{
		{"column b text:0123456789012345\n", map[string]string{"key-file": keys}, "no line footer"},
		{foot + "column nix text:0123456789012345\n", map[string]string{"key-file": keys}, "no column nix"},
		{foot, map[string]string{"key-file": keys, "plain-columns": "l"}, "no such column"},
		{foot + "column b text:0123456789012345\n", map[string]string{"key-file": keys, "plain-columns": "b"},
			"has a key"},
		{foot, map[string]string{"encryption": "gcm"}, "without key-file"},
		{foot, map[string]string{"key-file": keys, "encryption": "rot13"}, "gcm-ctr"},
		{foot, map[string]string{"key-file": keys, "plain-footer": "yes"}, "true or false"},
		{"footer 00\n", map[string]string{"key-file": keys}, "line 1"},
	} {
		if err := create(c.lines, c.opts); !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %v: got %v, want %q", c.lines, c.opts, err, c.want)
		}
	}
}
