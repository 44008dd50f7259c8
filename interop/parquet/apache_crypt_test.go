//go:build interop

package parquet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/format"
	"stoa/format/parquet"
)

// digits returns a key as the README of apache/parquet-testing writes it, by its characters: n bytes from first on, the
// last being last.
func digits(n int, first, last byte) string {
	b := []byte(strings.Repeat("0123456789", 5)[first:])[:n]
	b[n-1] = '0' + last
	return string(b)
}

// apacheKeys returns the lines of a key file for its files with keys of n bytes.
func apacheKeys(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "footer text:%s\nkey kf text:%[1]s\n", digits(n, 0, byte((n-1)%10)))
	for k := range 8 {
		last := byte(k)
		if n == 32 {
			last = byte(k + 2)
		}
		fmt.Fprintf(&b, "key kc%d text:%s\n", k+1, digits(n, 1, last))
	}
	return b.String()
}

// TestEncryptedByApache: the encrypted files of apache/parquet-testing have the content of its uniformly encrypted
// file, as read by pyarrow, which supports no column keys. Their INT96 is beyond pyarrow's nanoseconds, and left out.
// The file whose keys a key management service wrapped is read with the unwrapped keys.
func TestEncryptedByApache(t *testing.T) {
	dir := os.Getenv("PARQUET_TESTING")
	if dir == "" {
		t.Skip("PARQUET_TESTING names no copy of apache/parquet-testing")
	}
	equal := 0
	for _, c := range []struct {
		folder string
		bytes  int
	}{{"data", 16}, {"data/aes256", 32}} {
		files, err := filepath.Glob(filepath.Join(dir, c.folder, "*.parquet.encrypted"))
		if err != nil || len(files) < 5 {
			t.Fatal(files, err)
		}
		expected := filepath.Join(t.TempDir(), "expected")
		uniform := filepath.Join(dir, c.folder, "uniform_encryption.parquet.encrypted")
		cmd := exec.Command(filepath.Join(home(t), "venv/bin/python"), "-c", `import sys, pyarrow as pa
import pyarrow.parquet as pq, pyarrow.parquet.encryption as pe
keys = pe.create_decryption_properties(sys.argv[2].encode())
t = pq.ParquetFile(sys.argv[1], decryption_properties=keys).read().drop_columns(["int96_field"])
with pa.ipc.new_file(sys.argv[3], t.schema) as w: w.write_table(t)`,
			uniform, digits(c.bytes, 0, byte((c.bytes-1)%10)), expected)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".parquet.encrypted")
			keys, prefixed := apacheKeys(c.bytes), strings.Contains(name, "_aad")
			if prefixed {
				keys += "aad-prefix text:tester\n"
			}
			switch name {
			case "encrypt_columns_and_footer_bloom_filter": // of other rows
				if got := encrypted(t, file, keys, nil); got.NumRows() != 2000 {
					t.Errorf("%s: got %d rows, want 2000", name, got.NumRows())
				}
				continue
			case "external_key_material_java":
				if what := external(encrypted(t, file, "footer 5e63ada1593fab4abb6aecbc6a82dd1a\n"+
					"column integers 6864726b09bbd978fae87df0ad4155d0\n"+
					"column strings 4f1b17c621d61b1917a356d2cf1eafcc\n", nil)); what != "" {
					t.Errorf("%s: %s", name, what)
				}
			default:
				got := encrypted(t, file, keys, []string{"boolean_field", "int32_field", "int64_field", "float_field",
					"double_field", "ba_field", "flba_field"})
				if what := compareTables(t, expected, got); what != "" {
					t.Errorf("%s: %s", name, what)
				}
			}
			equal++
		}
	}
	t.Logf("COUNT %d encrypted files of apache/parquet-testing read", equal)
}

// external returns what is wrong with the rows of the file whose keys were wrapped by a service.
func external(got arrow.Table) string {
	if got.NumRows() != 100 {
		return fmt.Sprintf("got %d rows, want 100", got.NumRows())
	}
	i := 0
	for _, c := range got.Column(1).Data().Chunks() {
		for k := range c.Len() {
			if want := fmt.Sprintf("%c%d", 'a'+i%10, i); c.ValueStr(k) != want {
				return fmt.Sprintf("row %d: got %s, want %s", i, c.ValueStr(k), want)
			}
			i++
		}
	}
	return ""
}

// encrypted reads columns of a file with the keys.
func encrypted(t *testing.T, file, keys string, columns []string) arrow.Table {
	t.Helper()
	at := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(at, []byte(keys), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := stoa.Open(t.Context(), file, stoa.OpenOptions{Formats: []format.Format{parquet.Format},
		Opts: map[string]string{"key-file": at, "int96": "us"}})
	if err != nil {
		t.Fatal(filepath.Base(file), err)
	}
	defer table.Close()
	var batches []arrow.RecordBatch
	var sc *arrow.Schema
	for b, err := range table.Scan(t.Context(), stoa.ScanSpec{Columns: columns}) {
		if err != nil {
			t.Fatal(filepath.Base(file), err)
		}
		b.Retain()
		batches, sc = append(batches, b), b.Schema()
	}
	return array.NewTableFromRecords(sc, batches)
}
