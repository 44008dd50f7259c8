//go:build interop

package parquet

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestAnnotations: pyarrow finds the logical types without an Arrow type in files of stoa, and reads the values.
func TestAnnotations(t *testing.T) {
	mark := func(text string) arrow.Metadata {
		return arrow.NewMetadata([]string{"PARQUET:logical_type"}, []string{text})
	}
	var cols []column
	fields := map[string]arrow.Metadata{
		"enum": mark(`{"type":"ENUM"}`), "bson": mark(`{"type":"BSON"}`),
		"geometry":  mark(`{"type":"GEOMETRY","crs":"srid:5070"}`),
		"geography": mark(`{"type":"GEOGRAPHY","crs":"OGC:CRS84","algorithm":"KARNEY"}`),
	}
	for name := range fields {
		cols = append(cols, column{name: name, typ: arrow.BinaryTypes.Binary, full: true,
			cell: func(i int) any { return []byte(name) }})
	}
	f := annotatedFile(t, filepath.Join(t.TempDir(), "x.parquet"), cols, fields, nil)
	const show = "import sys, pyarrow.parquet as pq\n" +
		"f = pq.ParquetFile(sys.argv[1], arrow_extensions_enabled=False)\n" +
		"for c in f.schema: print(c.name, c.logical_type)\n" +
		"print(f.read().num_rows)\n"
	out, err := exec.Command(filepath.Join(home(t), "venv/bin/python"), "-c", show, f).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"enum Enum", "bson BSON", "geometry Geometry(crs=srid:5070)",
		"geography Geography(crs=OGC:CRS84, algorithm=karney)", "700"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("pyarrow: got %s, want %q", out, want)
		}
	}
	t.Logf("COUNT pyarrow found %d logical types without an Arrow type", len(fields))
}
