package parquet

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"stoa/format"
	"stoa/format/formattest"
	"stoa/region"
)

func TestDescribe(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.parquet")
	for _, f := range files {
		tree := golden(t, f)
		for _, pages := range []bool{false, true} {
			var nodes []region.Node
			for n, err := range Format.Describe(context.Background(), format.Target{Tree: tree, Name: "t"},
				format.DescribeOptions{Pages: pages}) {
				if err != nil {
					t.Fatal(f, err)
				}
				if n.Kind == region.Gap || strings.HasPrefix(n.Value, "not known") {
					t.Errorf("%s: %+v", f, n)
				}
				nodes = append(nodes, n)
			}
			formattest.Partition(t, nodes, "t", int64(len(tree.Bytes("t"))))
		}
		for x := range Format.Verify(context.Background(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{}) {
			t.Errorf("%s: %+v", f, x)
		}
	}
}

func TestVerifyDamaged(t *testing.T) {
	tree := golden(t, "testdata/plain.v2.parquet")
	r, err := openReader(context.Background(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := append([]byte{}, tree.Bytes("t")...)
	at := r.ChunkSpan(1, 0)
	clear(b[at.Off:at.End()])
	tree.Put("t", b)
	n := 0
	for x := range Format.Verify(context.Background(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{}) {
		if x.Column != "i64" || x.Rows != [2]int64{9, 18} {
			t.Errorf("%+v", x)
		}
		n++
	}
	if n == 0 {
		t.Error("nothing found")
	}
}
