package kudu

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/region"
	"stoa/store"
)

// TestVerifyPartition changes the hash bucket in the superblock of a real tablet: its rows hash to another one.
func TestVerifyPartition(t *testing.T) {
	files := loadTree(t, "testdata/log", "")
	const name = "wal/tablet-meta/e231c66227dd49ef833943949158dbbc"
	records, errs := readAll(files[name], pbc.Options{})
	if len(errs) > 0 || len(records) != 1 {
		t.Fatal(len(records), errs)
	}
	reported := func(record string) (out []region.Finding) {
		files[name] = container(2, "kudu.tablet.TabletSuperBlockPB", []byte(record))
		for x := range Format.Verify(t.Context(), format.Target{Tree: store.NewMemory(files)}, format.OpenOptions{}) {
			if x.Code == "kudu.keys.partition" {
				out = append(out, x)
			}
		}
		return out
	}
	if found := reported(records[0]); len(found) > 0 {
		t.Fatalf("a healthy tablet: %+v", found)
	}
	// bucket 0, from the beginning of bucket 0 to that of 1
	const partition = "\n\x01\x00\x12\x04\x00\x00\x00\x00\x1a\x04\x00\x00\x00\x01"
	if strings.Count(records[0], partition) != 1 {
		t.Fatalf("the superblock does not hold the expected partition: %q", records[0])
	}
	found := reported(strings.Replace(records[0], partition, "\n\x01\x01"+partition[3:], 1))
	if len(found) != 1 || found[0].Severity != region.Error || found[0].At.Len == 0 ||
		!strings.Contains(found[0].Message, "the keys of row 0 and 137 more hash to bucket 0, the tablet's is 1") {
		t.Errorf("%+v", found)
	}
}

// TestPartitionFilter: keys in and outside of a range, and of the columns of two hash dimensions.
func TestPartitionFilter(t *testing.T) {
	le := func(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
	sc := tableOf(cfile.Int32, cfile.Int32)
	for i := range sc.Columns {
		sc.Columns[i].Key = true
	}
	tb := &meta.Tablet{Schema: *sc}
	tb.Partitioning = meta.PartitionSchema{Stored: true, Range: []int32{sc.Columns[1].ID}}
	// from 10 to 20; keys have the sign bit inverted
	tb.Partition = meta.Partition{Start: []byte{0x80, 0, 0, 10}, End: []byte{0x80, 0, 0, 20}}
	for v, in := range map[uint32]bool{9: false, 10: true, 19: true, 20: false, 0xffffffff: false} {
		if why := meta.NewPartitionFilter(tb).Outside([][]byte{le(1), le(v)}); (why == "") != in {
			t.Errorf("%d: %q", int32(v), why)
		}
	}
	d := meta.HashDimension{Columns: []int32{sc.Columns[0].ID}, Buckets: 7}
	own := d.Bucket([]byte{0x80, 0, 0, 1})
	tb.Partitioning.Hash = []meta.HashDimension{d}
	bucket := binary.BigEndian.AppendUint32(nil, uint32(own))
	tb.Partition = meta.Partition{Buckets: []int32{own}, Start: bytes.Clone(bucket), End: bytes.Clone(bucket)}
	if why := meta.NewPartitionFilter(tb).Outside([][]byte{le(1), le(5)}); why != "" {
		t.Error(why)
	}
	tb.Partition.Buckets[0] = (own + 1) % 7
	if why := meta.NewPartitionFilter(tb).Outside([][]byte{le(1), le(5)}); why == "" {
		t.Error("another bucket is not noticed")
	}
}
