//go:build interop

package kudu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
)

// flip changes one byte in the middle of a block, in a copy of the server's directories.
func (s *server) flip(t *testing.T, b block, dir string) {
	t.Helper()
	name, err := filepath.Rel(s.dir+"/tserver", s.path(b))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	if _, err := f.ReadAt(one, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	one[0] ^= 0x10
	if _, err := f.WriteAt(one, info.Size()/2); err != nil {
		t.Fatal(err)
	}
}

// checkReplicas makes three copies of the directories. In each of them every third block has a wrong byte in
// its middle, so that no copy is intact and each block is intact in two of them. Read together they must yield the
// table; read alone, a copy must report its losses, and yield no wrong row.
func (l *life) checkReplicas(t *testing.T, s *server, from string) {
	together := filepath.Join(filepath.Dir(filepath.Dir(from)), "replicas")
	var dirs []string
	for i := range 3 {
		dirs = append(dirs, copyDir(t, from, fmt.Sprintf("%s/r%d/tserver", together, i)))
	}
	flipped := 0
	for _, list := range s.blocks() {
		slices.SortFunc(list, func(a, b block) int { return int(int64(a.ID) - int64(b.ID)) })
		for i, b := range list {
			s.flip(t, b, dirs[i%3])
			flipped++
		}
	}
	rows, lost, asked := 0, 0, 0
	for n, tr := range l.Tables {
		rows += check(t, together+"#"+n, n+", three damaged copies", nil, tr.Latest)
		for i, d := range dirs {
			lost += l.checkAlone(t, d, n, fmt.Sprintf("%s, copy %d", n, i), tr)
			asked += checkFilters(t, d+"#"+n, nil, true, tr.Columns, tr.Latest, tr.At[l.Whole])
		}
	}
	t.Logf("COUNT %s: blocks damaged %d, rows compared of three copies together %d, losses reported for copies alone "+
		"%d, filters that these answered %d", t.Name(), flipped, rows, lost, asked)
	if lost == 0 {
		t.Error("the copies alone had no losses: the harness damages nothing")
	}
}

// checkKeys damages only what identifies rows by key: key columns, ad-hoc indexes, bloom filters. Scans of other
// columns do not read these. But changes in the log refer to rows by key, so without the keys their rows are unknown.
func (l *life) checkKeys(t *testing.T, s *server, from string) {
	place := copyDir(t, from, filepath.Join(filepath.Dir(filepath.Dir(from)), "keys", "tserver"))
	flipped, right, refused := 0, 0, 0
	for n, list := range s.blocks() {
		key := map[string]bool{}
		for _, c := range l.Tables[n].Columns {
			f := strings.Split(c, "\t")
			key[f[0]] = f[2] == "true"
		}
		for _, b := range list {
			if b.Kind == "adhoc-index" || b.Kind == "bloom" || b.Kind == "column" && key[b.Column] {
				s.flip(t, b, place)
				flipped++
			}
		}
	}
	for n, tr := range l.Tables {
		for c := range tr.Columns {
			name, _, _ := strings.Cut(tr.Columns[c], "\t")
			r, err := read(place+"#"+n, nil, stoa.ScanSpec{Columns: []string{name}, Unordered: true})
			if err != nil {
				if refused++; !errors.Is(err, fault.Corrupt) {
					t.Errorf("%s, only column %s: %v", n, name, err)
				}
				continue
			}
			var want []string
			for _, row := range tr.Latest {
				want = append(want, strings.Split(row, "\t")[c])
			}
			slices.Sort(r.rows)
			slices.Sort(want)
			if d := difference(r.rows, want); d != "" {
				t.Errorf("%s, only column %s: stoa reads %s", n, name, d)
				break
			}
			right++
		}
	}
	t.Logf("COUNT %s: blocks of keys damaged %d, columns read correctly %d, refused %d", t.Name(), flipped, right,
		refused)
}

// checkAlone reads one damaged copy. Every row and cell that it returns must be right.
func (l *life) checkAlone(t *testing.T, place, table, what string, tr truth) (lost int) {
	t.Helper()
	is := map[string]bool{}
	for _, r := range tr.Latest {
		is[r] = true
	}
	r, err := read(place+"#"+table, nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
	if err != nil {
		t.Errorf("%s, skip-rows: %v", what, err)
		return 0
	}
	for _, row := range r.rows {
		if !is[row] {
			t.Errorf("%s, skip-rows: a row that Kudu does not have: %.200s", what, row)
			break
		}
	}
	if len(r.rows) < len(tr.Latest) && len(r.lost) == 0 {
		t.Errorf("%s, skip-rows: %d of %d rows, and no loss is reported", what, len(r.rows), len(tr.Latest))
	}
	lost += len(r.lost)
	_, err = read(place+"#"+table, nil, stoa.ScanSpec{})
	if len(r.lost) > 0 && (err == nil || !errors.Is(err, fault.Corrupt)) {
		t.Errorf("%s: losses with skip-rows, but reading with policy fail gives %v", what, err)
	}
	if r, err = read(place+"#"+table, nil, stoa.ScanSpec{Damaged: stoa.NullCells}); err != nil {
		t.Errorf("%s, null-cells: %v", what, err)
		return lost
	}
	keys := 0
	for _, c := range tr.Columns {
		if strings.Split(c, "\t")[2] == "true" {
			keys++
		}
	}
	byKey := map[string][]string{}
	for _, row := range tr.Latest {
		f := strings.Split(row, "\t")
		byKey[strings.Join(f[:keys], "\t")] = f
	}
	wrong := 0
	for _, row := range r.rows {
		f := strings.Split(row, "\t")
		want, ok := byKey[strings.Join(f[:keys], "\t")]
		if slices.Contains(f[:keys], "N") {
			continue // a lost key identifies no row
		}
		for i := range f {
			if !ok || f[i] != want[i] && f[i] != "N" {
				if wrong++; wrong == 1 {
					t.Errorf("%s, null-cells: a cell that Kudu does not have, column %d of %.200s", what, i, row)
				}
				break
			}
		}
	}
	lost += len(r.lost)

	// One column without the key: the damage may be in blocks that are not read for it.
	last := len(tr.Columns) - 1
	name, _, _ := strings.Cut(tr.Columns[last], "\t")
	if r, err = read(place+"#"+table, nil, stoa.ScanSpec{Columns: []string{name}}); err == nil {
		var want []string
		for _, row := range tr.Latest {
			want = append(want, strings.Split(row, "\t")[last])
		}
		if d := difference(r.rows, want); d != "" {
			t.Errorf("%s, only column %s: stoa reads %s", what, name, d)
		}
	}
	return lost
}
