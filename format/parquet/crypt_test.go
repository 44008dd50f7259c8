package parquet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// encryptedRow returns row i of the files in testdata/encrypted (make.py there).
func encryptedRow(i int) string {
	a, l := fmt.Sprint(i), fmt.Sprintf("[%d,%d]", i, i+1)
	if i%11 == 0 {
		a = "(null)"
	}
	if i%3 == 0 {
		l = "[]"
	}
	return fmt.Sprintf("%s x%d %s", a, i%7, l)
}

// rowsText returns the rows of a scan as lines.
func rowsText(t *testing.T, b []byte, opts map[string]string, spec stoa.ScanSpec) ([]string, error) {
	t.Helper()
	ctx := context.Background()
	tree := store.NewMemory(map[string][]byte{"t": b})
	table, err := stoa.Open(ctx, "t", stoa.OpenOptions{Tree: tree, Formats: []format.Format{parquet.Format},
		Opts: opts})
	if err != nil {
		return nil, err
	}
	defer table.Close()
	var out []string
	for b, err := range table.Scan(ctx, spec) {
		if err != nil {
			return out, err
		}
		for i := range int(b.NumRows()) {
			var cells []string
			for _, c := range b.Columns() {
				cells = append(cells, c.ValueStr(i))
			}
			out = append(out, strings.Join(cells, " "))
		}
	}
	return out, nil
}

func encryptedFiles(t *testing.T) (names []string) {
	t.Helper()
	names, err := filepath.Glob("testdata/encrypted/*.parquet")
	if err != nil || len(names) != 16 {
		t.Fatal(len(names), "files", err)
	}
	return names
}

func keysOf(name string) map[string]string {
	return map[string]string{"key-file": strings.TrimSuffix(name, ".parquet") + ".keys"}
}

// TestEncrypted: files that pyarrow encrypted are read, completely and by rows, and verify has no findings.
func TestEncrypted(t *testing.T) {
	where, err := pred.Parse("a >= 70 and a < 80")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range encryptedFiles(t) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range []stoa.ScanSpec{{}, {Filter: where}} {
			rows, err := rowsText(t, b, keysOf(name), spec)
			if err != nil {
				t.Error(name, err)
				continue
			}
			var want []string
			for i := range 120 {
				if spec.Filter == nil || i >= 70 && i < 80 && i%11 != 0 {
					want = append(want, encryptedRow(i))
				}
			}
			if strings.Join(rows, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s: got %q, want %q", name, rows, want)
			}
		}
		tree := store.NewMemory(map[string][]byte{"t": b})
		target, o := format.Target{Tree: tree, Name: "t"}, format.OpenOptions{Opts: keysOf(name)}
		for f := range parquet.Format.Verify(t.Context(), target, o) {
			t.Errorf("%s: %v", name, f)
		}
		last := int64(0)
		pages := format.DescribeOptions{Pages: true, OpenOptions: o}
		for n, err := range parquet.Format.Describe(t.Context(), target, pages) {
			if err != nil || n.Kind == region.Gap {
				t.Errorf("%s: %v %v", name, n, err)
			}
			last = max(last, n.At.End())
		}
		if last != int64(len(b)) {
			t.Errorf("%s: described up to %d of %d", name, last, len(b))
		}
	}
}

// TestEncryptedWithoutKeys: without a key plain columns are read, and the others are not reported as damaged; nor are
// they with a wrong key.
func TestEncryptedWithoutKeys(t *testing.T) {
	other := filepath.Join(t.TempDir(), "keys")
	secret := strings.Repeat("ab", 16)
	if err := os.WriteFile(other, []byte("footer "+secret+"\ncolumn b "+secret+"\naad-prefix text:tab\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range encryptedFiles(t) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rowsText(t, b, nil, stoa.ScanSpec{}); !errors.Is(err, fault.Unsupported) ||
			!strings.Contains(err.Error(), "key-file") {
			t.Errorf("%s without keys: got %v", name, err)
		}
		if strings.Contains(name, "plain") && strings.Contains(name, "columns") {
			rows, err := rowsText(t, b, nil, stoa.ScanSpec{Columns: []string{"a"}})
			if err != nil || len(rows) != 120 || rows[5] != "5" {
				t.Errorf("%s, the plain column: got %d rows, %v", name, len(rows), err)
			}
		}
		rows, err := rowsText(t, b, map[string]string{"key-file": other}, stoa.ScanSpec{})
		if len(rows) > 0 || !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "another key") {
			t.Errorf("%s with wrong keys: got %d rows, %v, want class Invalid", name, len(rows), err)
		}
		target := format.Target{Tree: store.NewMemory(map[string][]byte{"t": b}), Name: "t"}
		for f := range parquet.Format.Verify(t.Context(), target, format.OpenOptions{}) {
			if f.Code != "parquet.unsupported" {
				t.Errorf("%s, verify without keys: %v", name, f)
			}
		}
	}
}

// TestKeyFiles: errors in a key file are reported without the key.
func TestKeyFiles(t *testing.T) {
	b, err := os.ReadFile("testdata/encrypted/gcm.hidden.v1.uniform.parquet")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ lines, want string }{
		{"foot 00112233445566778899aabbccddeeff", "line 1"},
		{"\n# c\nfooter 0011", "line 3: a key of 2 bytes"},
		{"footer secret", "line 1"},
		{"footer base64:!", "line 1"},
		{"column 00112233445566778899aabbccddeeff", "no key after the name"},
		{"footer text:0123456789abcdef0123456789abcdef", "AAD prefix"},
	} {
		name := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(name, []byte(x.lines+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := rowsText(t, b, map[string]string{"key-file": name}, stoa.ScanSpec{})
		if err == nil || !strings.Contains(err.Error(), x.want) ||
			strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "0011") {
			t.Errorf("%q: got %v, want %q", x.lines, err, x.want)
		}
	}
}

// TestEncryptedFlips: a flipped bit is an error, or changes nothing; with AES-GCM-CTR, whose bodies are not
// authenticated, the pages have checksums.
func TestEncryptedFlips(t *testing.T) {
	step := 1997
	if os.Getenv("STOA_LONG") != "" {
		step = 7
	}
	for _, name := range encryptedFiles(t) {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for k := 0; k < 8*len(whole); k += step {
			b := append([]byte(nil), whole...)
			b[k/8] ^= 1 << (k % 8)
			rows, err := rowsText(t, b, keysOf(name), stoa.ScanSpec{})
			if err != nil {
				failed++
			}
			for i, r := range rows {
				if r != encryptedRow(i) {
					t.Errorf("%s: bit %d of byte %d: row %d: got %s", name, k%8, k/8, i, r)
					break
				}
			}
			if err == nil && len(rows) != 120 {
				t.Errorf("%s: bit %d of byte %d: %d rows", name, k%8, k/8, len(rows))
			}
		}
		if failed == 0 {
			t.Errorf("%s: reading failed for no bit, want some", name)
		}
	}
}
