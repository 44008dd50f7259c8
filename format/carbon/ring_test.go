package carbon_test

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
)

// TestRing converts the golden files of every format to CarbonData and back. The result must equal the original;
// columns that cannot be written must be refused by name.
func TestRing(t *testing.T) {
	var names []string
	err := filepath.WalkDir("../../corpus", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "releases" { // files of stoa's own
			return fs.SkipDir
		}
		switch filepath.Ext(name) {
		case ".cfile", ".red", ".red1", ".trv", ".trevni", ".avt", ".carbondata":
			names = append(names, name)
		}
		if err == nil && d.IsDir() && strings.Contains(name, "/managed/") &&
			filepath.Base(filepath.Dir(name)) == "managed" {
			names = append(names, name)
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	done, refused := map[string]int{}, map[string]int{}
	for i, name := range names {
		if testing.Short() && i%5 != 0 {
			continue
		}
		in, err := stoa.Open(t.Context(), name, stoa.OpenOptions{})
		if err != nil { // deliberately damaged files
			continue
		}
		defer in.Close()
		out, err := ring(t, in, filepath.Join(t.TempDir(), "x.carbondata"), "carbon")
		if out == nil {
			if err != nil {
				refusal(t, name, in, err)
				refused[in.Sources()[0].Format]++
			}
			continue
		}
		done[in.Sources()[0].Format]++
		if in.Sources()[0].Format == "carbon" {
			continue
		}
		back, err := ring(t, out, filepath.Join(t.TempDir(), "x"), in.Sources()[0].Format)
		if back == nil {
			refusal(t, name+", back", in, err)
			continue
		}
		same(t, name+", back", in, back)
	}
	if want := map[string]int{"carbon": 24, "cfile": 606, "redfile": 10, "trevni": 53}; !testing.Short() &&
		!maps.Equal(done, want) {
		t.Errorf("%v, want %v", done, want)
	}
	for _, f := range slices.Sorted(maps.Keys(done)) {
		t.Logf("COUNT %s: %d tables became Carbon's and were the same, %d were refused", f, done[f], refused[f])
	}
}

// ring converts a table and opens the result; nil if it was refused, or if the table itself cannot be read.
func ring(t *testing.T, in *stoa.Table, to, format string) (*stoa.Table, error) {
	t.Helper()
	if _, err := stoa.Convert(t.Context(), in, stoa.ScanSpec{}, to, stoa.CreateOptions{To: format}); err != nil {
		if errors.Is(err, fault.Corrupt) {
			return nil, nil
		}
		return nil, err
	}
	out, err := stoa.Open(t.Context(), to, stoa.OpenOptions{})
	if err != nil {
		t.Error(to, err)
		return nil, nil
	}
	t.Cleanup(func() { out.Close() })
	same(t, to, in, out)
	return out, nil
}

func same(t *testing.T, name string, a, b *stoa.Table) {
	t.Helper()
	d, err := stoa.Diff(t.Context(), a, b, stoa.DiffOptions{})
	if err != nil {
		t.Error(name, err)
	} else if d.Changed > 0 || d.Only != [2]int64{} || d.Rows[0] != d.Rows[1] {
		t.Errorf("%s: %+v", name, d)
	}
}

// refusal checks that an error is a deliberate one, and names a column.
func refusal(t *testing.T, name string, in *stoa.Table, err error) {
	t.Helper()
	if err == nil {
		return
	}
	named := in.Schema().NumFields() == 0
	for _, f := range in.Schema().Fields() {
		named = named || strings.Contains(err.Error(), f.Name)
	}
	if !named || !errors.Is(err, fault.Unsupported) && !errors.Is(err, fault.Invalid) {
		t.Errorf("%s: %v", name, err)
	}
}
