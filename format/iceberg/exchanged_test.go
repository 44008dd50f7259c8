package iceberg_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/iceberg"
)

// TestExchangedManifests: in tables that pyiceberg, Spark, Iceberg's own library and stoa wrote, every whole manifest
// and manifest list that has taken the name of another one of its kind is damage, or changes nothing.
func TestExchangedManifests(t *testing.T) {
	ours, _ := write(t, sample(t, 20), nil)
	places := []string{ours}
	for _, name := range strings.Fields("defaults equality equality-parted evolved parted spark-v1 spark-v23") {
		places = append(places, filepath.Join("testdata", name))
	}
	told := 0
	for _, from := range places {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		want, err := rowsOf(dir)
		if err != nil {
			t.Fatal(from, err)
		}
		names, err := filepath.Glob(filepath.Join(dir, "metadata", "*.avro"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			good, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, other := range names {
				list := func(name string) bool { return strings.HasPrefix(filepath.Base(name), "snap-") }
				if other == name || list(other) != list(name) {
					continue
				}
				b, err := os.ReadFile(other)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, b, 0o644); err != nil {
					t.Fatal(err)
				}
				switch got, err := rowsOf(dir); {
				case err != nil && !errors.Is(err, fault.Corrupt):
					t.Errorf("%s as %s: %v", other, name, err)
				case err != nil:
					told++
				case got != want:
					t.Errorf("%s as %s: got %s, want %s or an error", other, name, got, want)
				}
			}
			if err := os.WriteFile(name, good, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if told < 20 {
		t.Errorf("%d exchanges were told, want more", told)
	}
}

// rowsOf returns all rows of a table as text.
func rowsOf(dir string) (string, error) {
	ctx := context.Background()
	table, err := stoa.Open(ctx, dir, stoa.OpenOptions{Formats: []format.Format{iceberg.Format}})
	if err != nil {
		return "", err
	}
	defer table.Close()
	var text strings.Builder
	for b, err := range table.Scan(ctx, stoa.ScanSpec{}) {
		if err != nil {
			return "", err
		}
		line, err := b.MarshalJSON()
		if err != nil {
			return "", err
		}
		text.Write(line)
	}
	return text.String(), nil
}
