//go:build interop

package parquet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stoa"
)

// TestUnions: pyarrow makes random tables with dense and sparse unions (STOA_SEED), stoa writes them as Parquet, and
// pyarrow, DuckDB and polars find each value in the field of its member, and nothing in the others. stoa reads the
// same rows back as unions.
func TestUnions(t *testing.T) {
	const tables = 60
	dir, seed := t.TempDir(), os.Getenv("STOA_SEED")
	if seed == "" {
		seed = "1"
	}
	python := func(args ...string) string {
		cmd := exec.Command(filepath.Join(home(t), "venv/bin/python"), append([]string{"unions.py"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	python("gen", dir, seed, strconv.Itoa(tables))
	for i := range tables {
		from := filepath.Join(dir, fmt.Sprint(i, ".arrow"))
		if err := convertUnions(t, from, filepath.Join(dir, fmt.Sprint(i, ".parquet"))); err != nil {
			t.Fatalf("%s: %v", from, err)
		}
	}
	t.Logf("COUNT %s values of tables with unions", python("check", dir, strconv.Itoa(tables)))
}

// convertUnions converts a file; the output proves itself.
func convertUnions(t *testing.T, from, to string) error {
	src, err := stoa.Open(t.Context(), from, stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer src.Close()
	w, err := stoa.Create(t.Context(), to, src.Schema(),
		stoa.CreateOptions{Opts: map[string]string{"page-rows": "100"}})
	if err != nil {
		return err
	}
	for b, err := range src.Scan(t.Context(), stoa.ScanSpec{}) {
		if err == nil {
			err = w.Write(t.Context(), b)
		}
		if err != nil {
			_ = w.Abort(t.Context())
			return err
		}
	}
	sum, err := w.Close(t.Context())
	if err == nil && !sum.Checked {
		t.Errorf("%s: not proven", to)
	}
	return err
}
