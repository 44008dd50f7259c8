//go:build interop

package parquet

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secret is the keys of a file, for stoa and for pyarrow.
type secret struct {
	Footer string            `json:"footer"` // hexadecimal
	Prefix string            `json:"prefix"`
	Named  map[string]string `json:"named"` // by the name of a master key
	lines  string            // of stoa's key file
}

// material is the key metadata of Arrow and parquet-mr: JSON that names the master key that wraps the key.
func material(footer bool, master string) string {
	kms := ""
	if footer {
		kms = `,"kmsInstanceID":"DEFAULT","kmsInstanceURL":"DEFAULT"`
	}
	return fmt.Sprintf(`{"keyMaterialType":"PKMT1","internalStorage":true,"isFooterKey":%v%s,"masterKeyID":"%s",`+
		`"wrappedDEK":"%s","doubleWrapping":false}`, footer, kms, master, master)
}

// secrets are keys of all kinds for the columns of the grid.
func secrets() map[string]secret {
	key := func(c string, n int) string { return hex.EncodeToString([]byte(strings.Repeat(c, n))) }
	one := secret{Footer: key("f", 16), lines: "footer " + key("f", 16) + "\n"}
	long, prefix, named := one, one, one
	long.Footer, long.lines = key("g", 32), "footer "+key("g", 32)+"\n"
	prefix.Prefix, prefix.lines = "orders", one.lines+"aad-prefix text:orders\n"
	named.Named = map[string]string{"mf": key("f", 16), "ma": key("a", 16), "mb": key("b", 32)}
	named.lines += "key " + material(true, "mf") + " " + key("f", 16) + "\n" +
		"key " + material(false, "ma") + " " + key("a", 16) + "\n" +
		"key " + material(false, "mb") + " " + key("b", 32) + "\n"
	for c, k := range map[string]string{"id": key("a", 16), "s": key("b", 32), "dict": key("a", 16),
		"st.y.z": key("b", 32), "l.list.element": key("a", 16), "m.key_value.value": key("b", 32)} {
		named.lines += "column " + c + " " + k + "\n"
	}
	return map[string]secret{"uniform": one, "256bits": long, "prefix": prefix, "named": named}
}

// TestEncrypted: pyarrow reads every cell of files that stoa encrypts with the same keys, even through a filter, and
// refuses them with wrong keys.
func TestEncrypted(t *testing.T) {
	dir, all := t.TempDir(), columns()
	var files, wrong []string
	for name, s := range secrets() {
		for _, algorithm := range []string{"gcm", "gcm-ctr"} {
			for _, signed := range []string{"false", "true"} {
				for shape, more := range map[string]map[string]string{
					"dict": {"bloom": "id,s,st.y.z"}, "v2": {"page-version": "2", "compression": "zstd"},
					"minimal": {"dictionary": "false", "page-index": "false", "crc": "false", "compression": "none"},
					"tiny":    {"page-size": "300", "row-group-rows": "100"},
					"part":    {"plain-columns": "i64,lls.list.element.list.element"}} {
					opts := map[string]string{"encryption": algorithm, "plain-footer": signed,
						"key-file": filepath.Join(dir, name+".keys")}
					maps.Copy(opts, more)
					if err := os.WriteFile(opts["key-file"], []byte(s.lines), 0o600); err != nil {
						t.Fatal(err)
					}
					base := strings.Join([]string{name, algorithm, signed, shape}, ".")
					f := file(t, dir, base, all, opts)
					files = append(files, f)
					writeKeys(t, f, s)
					if name != "named" { // the same file with a wrong key
						b, err := os.ReadFile(f)
						if err == nil {
							f = filepath.Join(dir, base+".wrong")
							err = os.WriteFile(f, b, 0o600)
						}
						if err != nil {
							t.Fatal(err)
						}
						s.Footer = strings.Repeat("00", len(s.Footer)/2)
						writeKeys(t, f, s)
						wrong = append(wrong, f)
						s = secrets()[name]
					}
				}
			}
		}
	}
	got, cells := ask(t, "pyarrow-keys", files), 0
	for _, f := range files {
		if len(got[f]) != rows {
			t.Errorf("%s: got %d rows, want %d", filepath.Base(f), len(got[f]), rows)
			continue
		}
		for _, c := range all {
			for i, row := range got[f] {
				if err := same("pyarrow", c.typ, row[c.name], c.cell(i)); err != nil {
					t.Errorf("%s: row %d, column %s: %v", filepath.Base(f), i, c.name, err)
					break
				}
				cells++
			}
		}
	}
	for f, rows := range ask(t, "pyarrow-filter", files) {
		if len(rows) != 1 || fmt.Sprint(rows[0]["id"]) != fmt.Sprint(-500+3*123) {
			t.Errorf("%s: a filter: got %d rows, want 1", filepath.Base(f), len(rows))
		}
	}
	for f, rows := range ask(t, "pyarrow-refuses", wrong) {
		if len(rows) != 1 || rows[0]["refused"] != true {
			t.Errorf("%s: a wrong key: got %v, want it refused", filepath.Base(f), rows)
		}
	}
	t.Logf("COUNT pyarrow read %d encrypted files: %d cells; %d with a wrong key refused", len(files), cells,
		len(wrong))
}

// writeKeys writes the keys of a file for judge.py.
func writeKeys(t *testing.T, file string, s secret) {
	t.Helper()
	b, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(file+".json", b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
