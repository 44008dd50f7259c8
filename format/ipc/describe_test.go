package ipc

import (
	"context"
	"path/filepath"
	"testing"

	"stoa/format"
	"stoa/format/formattest"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

func TestDescribe(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.arrow*")
	for _, f := range files {
		described(t, f, golden(t, f))
	}
}

// described checks that the regions of a healthy file cover all its bytes, and that verify finds nothing.
func described(t *testing.T, name string, tree *store.Memory) {
	t.Helper()
	var nodes []region.Node
	for n, err := range Format.Describe(context.Background(), format.Target{Tree: tree, Name: "t"},
		format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(name, err)
		}
		nodes = append(nodes, n)
	}
	formattest.Partition(t, nodes, "t", int64(len(tree.Bytes("t"))))
	for x := range Format.Verify(context.Background(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{}) {
		t.Errorf("%s: %+v", name, x)
	}
}

func TestVerifyDamaged(t *testing.T) {
	tree := golden(t, "testdata/plain.zstd.arrow")
	r, err := openReader(context.Background(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := append([]byte{}, tree.Bytes("t")...)
	clear(b[r.foot.Batches[1].Off+int64(r.foot.Batches[1].Meta):][:r.foot.Batches[1].Body])
	tree.Put("t", b)
	var got []region.Finding
	for x := range Format.Verify(context.Background(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{}) {
		got = append(got, x)
	}
	if len(got) != 1 || got[0].Code != "arrow.batch" || got[0].Rows != [2]int64{7, 14} || got[0].Lost != 7 {
		t.Errorf("%+v", got)
	}
}

// A stream that was truncated between two messages is read, and reported to have no end mark.
func TestCutStream(t *testing.T) {
	tree := golden(t, "testdata/plain.lz4.arrows")
	b := tree.Bytes("t")
	for _, cut := range []int{0, 8} { // the end mark is 8 bytes
		tree.Put("t", b[:len(b)-cut])
		var verified []region.Finding
		for x := range Format.Verify(context.Background(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{}) {
			verified = append(verified, x)
		}
		r, err := openReader(context.Background(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rows := int64(0)
		for batch, err := range r.Batches(context.Background(), format.RowGroup{}, format.Query{Cols: []int{0}},
			vec.Range{}, nil) {
			if err != nil {
				t.Fatal(err)
			}
			rows += batch.NumRows()
		}
		for _, found := range [][]region.Finding{verified, r.Findings()} {
			if cut == 0 && len(found) != 0 || cut != 0 &&
				(len(found) != 1 || found[0].Code != "arrow.stream.end" || found[0].At.Off != int64(len(b)-cut) ||
					found[0].Severity != region.Error || found[0].Lost == 0) {
				t.Errorf("cut by %d: %+v", cut, found)
			}
		}
		if rows == 0 {
			t.Error("no rows")
		}
		r.partial = true
		if found := r.Findings(); len(found) > 0 {
			t.Errorf("partial: %+v", found)
		}
		r.Close()
		for x := range Format.Verify(context.Background(), format.Target{Tree: tree, Name: "t"},
			format.OpenOptions{Opts: map[string]string{"partial": "true"}}) {
			t.Errorf("partial: %+v", x)
		}
	}
}
