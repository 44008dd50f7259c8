//go:build interop

package kudu

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
)

// removeTablet removes a tablet from a tablet server's directories, except its blocks.
func removeTablet(t *testing.T, dir, id string) {
	t.Helper()
	for _, p := range []string{"wal/wals/", "wal/tablet-meta/", "wal/consensus-meta/", "meta/tablet-meta/",
		"meta/consensus-meta/"} {
		if err := os.RemoveAll(filepath.Join(dir, p+id)); err != nil {
			t.Fatal(err)
		}
	}
}

// listed returns the tables that stoa lists.
func listed(t *testing.T, place string) (names []string) {
	t.Helper()
	for e, err := range stoa.List(context.Background(), place, stoa.OpenOptions{}) {
		if e.Place != "" && e.Format == "" && errors.Is(err, fault.Unsupported) {
			continue // a text log of Kudu's
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Table != "sys.catalog" {
			names = append(names, e.Table)
		}
	}
	slices.Sort(names)
	return names
}

// checkMissing removes tablets that the master's directory still lists.
func (l *life) checkMissing(t *testing.T, s *server, from string) {
	place := filepath.Join(filepath.Dir(filepath.Dir(from)), "missing")
	tserver := copyDir(t, from, place+"/tserver")
	copyDir(t, s.dir+"/master", place+"/master")
	var names []string
	for _, x := range l.tables {
		name, _, _ := strings.Cut(x, "\t")
		names = append(names, name)
	}
	slices.Sort(names)
	for _, p := range []string{place, tserver} {
		if got := listed(t, p); !slices.Equal(got, names) {
			t.Errorf("%s: the tables are %q, Kudu's %q", filepath.Base(p), got, names)
		}
	}
	if want := slices.Sorted(maps.Keys(l.Tables)); !slices.Equal(want, names) {
		t.Fatalf("the client knows %q, but read %q", names, want)
	}
	rows := check(t, place+"#types", "types, beside the master's directory", nil, l.Tables["types"].Latest)

	// One of two tablets is missing: with partial the rest is read, otherwise the error names the missing one.
	first, _, _ := strings.Cut(l.Tables["types"].Tablets[0], "\t")
	second, _, _ := strings.Cut(l.Tables["types"].Tablets[1], "\t")
	parts := map[string][]string{}
	for _, id := range []string{first, second} {
		r, err := read(from+"#types", map[string]string{"tablet": id}, stoa.ScanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		parts[id] = r.rows
	}
	if d := difference(slices.Concat(parts[first], parts[second]), l.Tables["types"].Latest); d != "" {
		t.Errorf("types, tablet by tablet: stoa reads %s", d)
	}
	removeTablet(t, tserver, first)
	for _, p := range []string{place, tserver} {
		reported, err := missingTablets(p + "#types")
		if err != nil || reported == "" {
			t.Errorf("%s: a table without one of its tablets is read without a report: %v", filepath.Base(p), err)
		} else if p == place && !strings.Contains(reported, first) {
			t.Errorf("the master's directory names the missing tablet, stoa does not: %s", reported)
		}
		rows += check(t, p+"#types", filepath.Base(p)+", partial", map[string]string{"partial": "true"}, parts[second])
	}

	// All tablets of a table are missing: only the master has its name.
	for _, x := range l.Tables["parts"].Tablets {
		id, _, _ := strings.Cut(x, "\t")
		removeTablet(t, tserver, id)
	}
	// Their blocks still exist: rows of no known tablet are an entry of their own.
	if got, want := listed(t, place), append([]string{"?"}, names...); !slices.Equal(got, want) {
		t.Errorf("with the master's directory and without the tablets of parts the tables are %q, Kudu's %q", got,
			want)
	}
	if got := listed(t, tserver); slices.Contains(got, "parts") || !slices.Contains(got, "?") {
		t.Errorf("without any tablet of parts, and without the master's directory, the tables are %q", got)
	}
	if _, err := read(place+"#parts", nil, stoa.ScanSpec{}); err == nil {
		t.Error("a table without tablets is read without a report")
	}
	t.Logf("COUNT %s: rows compared %d", t.Name(), rows)
}

// missingTablets is stoa's message about the tablets that a table lacks; "" if there is none.
func missingTablets(place string) (string, error) {
	t, err := stoa.Open(context.Background(), place, stoa.OpenOptions{})
	if err != nil {
		return "", err
	}
	defer t.Close()
	for _, x := range t.Findings() {
		if x.Code == "kudu.tablet.missing" {
			return x.Message, nil
		}
	}
	return "", nil
}
