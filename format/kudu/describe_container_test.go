package kudu_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// TestDescribeContainer: the data file of a log container is described as a container, not as the CFile with which it
// begins: every block of its metadata where it is, and whether it was deleted. Without the metadata, the CFiles that
// can be found in it are listed, and that the metadata is missing is an error.
func TestDescribeContainer(t *testing.T) {
	files := load(t, "testdata/log")
	f, _ := layout(t, store.NewMemory(files))
	describe := func(name string) (blocks []fault.Span, dead int, kind string, failed error) {
		for n, err := range stoa.Describe(t.Context(), name, stoa.DescribeOptions{OpenOptions: stoa.OpenOptions{
			Tree: store.NewMemory(files), Formats: []format.Format{kudu.MetadataFormat, kudu.Format}}}) {
			if err != nil {
				failed = err
				continue
			}
			if n.Depth == 0 {
				kind = n.Name
			}
			if n.Depth == 1 && (n.Kind == region.Struct || n.Kind == region.Dead) {
				blocks = append(blocks, n.At)
			}
			if n.Depth == 1 && n.Kind == region.Dead {
				dead++
			}
		}
		return blocks, dead, kind, failed
	}
	tried := 0
	for _, c := range f.Containers {
		var want []fault.Span
		for _, x := range slices.Concat(c.Live, c.Dead) {
			if x.Len > 0 {
				want = append(want, fault.Span{Object: c.Data, Off: x.Off, Len: x.Len})
			}
		}
		slices.SortFunc(want, func(a, b fault.Span) int { return int(a.Off - b.Off) })
		got, dead, kind, err := describe(c.Data)
		if err != nil || kind != "container" || !slices.Equal(got, want) || dead > len(c.Dead) {
			t.Errorf("%s: %s, %v, %d dead: %v; want %v", c.Data, kind, got, dead, err, want)
		}
		tried++
	}
	if tried == 0 {
		t.Fatal("no container")
	}
	c := f.Containers[0]
	delete(files, strings.TrimSuffix(c.Data, path.Ext(c.Data))+".metadata")
	got, _, kind, err := describe(c.Data)
	if len(got) < len(c.Live) || kind != "container" || err == nil {
		t.Errorf("without metadata: %s, %d blocks, want %d: %v", kind, len(got), len(c.Live), err)
	}
}
