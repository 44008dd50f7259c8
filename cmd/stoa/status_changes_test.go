package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// TestChangesRefuseADamagedStatus: no change writes to a CarbonData table whose tablestatus cat refuses; its files stay
// as they are.
func TestChangesRefuseADamagedStatus(t *testing.T) {
	const table = "../../corpus/carbon/2.3.0/managed/managed1"
	status, err := os.ReadFile(filepath.Join(table, "Metadata/tablestatus"))
	if err != nil {
		t.Fatal(err)
	}
	swap := func(old, now string) []byte { return bytes.Replace(status, []byte(old), []byte(now), 1) }
	for what, damaged := range map[string][]byte{
		"cut": status[:len(status)/2], "empty": {}, "no JSON": append([]byte("x"), status...),
		"status": swap(`"Success"`, `"Sucsess"`), "member": swap(`"loadStatus"`, `"loadStatut"`),
		"segment": swap(`"loadName"`, `"loadNamf"`), "name": swap(`"segmentFile":"0_`, `"segmentFile":"4_`),
		"ending": swap(`.segment"`, `.segmend"`),
	} {
		dir := filepath.Join(t.TempDir(), "t")
		copyDir(t, table, dir)
		if err := os.WriteFile(filepath.Join(dir, "Metadata/tablestatus"), damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		if said := said(dir, "cat", dir, "-q"); !strings.HasSuffix(said, "status: 3") {
			t.Errorf("%s: cat: %s", what, said)
		}
		before := unlockedFiles(t, dir)
		for _, args := range [][]string{{"delete", dir, "--segment", "0"}, {"delete", dir, "--segment", "1"},
			{"load", dir, table}, {"load", dir, table, "--overwrite"}, {"compact", dir, "--major"},
			{"merge-index", dir}, {"add-column", dir, "fresh", "int"}, {"truncate", dir, "--yes"}, {"clean", dir},
			{"delete", dir, "--where", "id is not null"}, {"update", dir, "--set", "id=1", "--where", "true"},
		} {
			said := said(dir, args...)
			if !strings.HasSuffix(said, "status: 3") {
				t.Errorf("%s, %s: want status %d: %s", what, args, cli.StatusDamage, said)
			}
			if after := unlockedFiles(t, dir); !maps.Equal(before, after) {
				t.Errorf("%s: %s changed files", what, args)
				before = after
			}
		}
	}
}

// unlockedFiles returns the files below dir by name, but not locks.
func unlockedFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".lock") {
			return err
		}
		b, err := os.ReadFile(name)
		out[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
