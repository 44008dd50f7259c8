package kudu

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/pb"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/store"
)

// container writes a protobuf container.
func container(version uint32, typ string, records ...[]byte) []byte {
	b := append([]byte(pbc.Magic), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b[8:], version)
	if version == 2 {
		b = binary.LittleEndian.AppendUint32(b, sum.CRC32C(b))
	}
	head := pb.AppendString(pb.AppendMessage(nil, 1, nil), 2, typ)
	for _, r := range append([][]byte{head}, records...) {
		n := binary.LittleEndian.AppendUint32(nil, uint32(len(r)))
		b = append(b, n...)
		if version == 2 {
			b = binary.LittleEndian.AppendUint32(b, sum.CRC32C(n))
		}
		b = append(b, r...)
		if version == 2 {
			b = binary.LittleEndian.AppendUint32(b, sum.CRC32C(r))
		} else {
			b = binary.LittleEndian.AppendUint32(b, sum.CRC32C(n, r))
		}
	}
	return b
}

// readAll returns the records of a container, and its errors but io.EOF.
func readAll(b []byte, o pbc.Options) (records []string, errs []error) {
	ctx := context.Background()
	src, err := store.NewMemory(map[string][]byte{"f": b}).Open(ctx, "f")
	if err != nil {
		return nil, []error{err}
	}
	r, err := pbc.Open(ctx, src, "f", o)
	if err != nil {
		errs = append(errs, err)
	}
	for r != nil {
		rec, err := r.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if got := b[rec.Body.Off:rec.Body.End()]; !bytes.Equal(got, rec.Data) || rec.At.Off >= rec.Body.Off {
			errs = append(errs, fault.Bugf("record %d is not at %v", rec.Index, rec.Body))
		}
		records = append(records, string(rec.Data))
	}
	return records, errs
}

func TestPBC(t *testing.T) {
	long := bytes.Repeat([]byte("long "), 30_000) // longer than the window
	in := [][]byte{[]byte("first"), []byte("second record"), long, []byte("last")}
	want := []string{"first", "second record", string(long), "last"}
	for _, version := range []uint32{1, 2} {
		b := container(version, "test.Type", in...)
		if got, errs := readAll(b, pbc.Options{}); !slices.Equal(got, want) || len(errs) > 0 {
			t.Fatalf("v%d: %d records, %v", version, len(got), errs)
		}
		// truncated at every byte of the last record and the first ones: the records before are read
		cuts := []int{}
		for i := 0; i < 80; i++ {
			cuts = append(cuts, i)
		}
		for i := len(b) - 60; i < len(b); i++ {
			cuts = append(cuts, i)
		}
		var ends []int // of records
		pos := pbc.HeadV1
		lens := 4
		if version == 2 {
			pos, lens = pbc.HeadV2, 8
		}
		pos += lens + len(pb.AppendString(pb.AppendMessage(nil, 1, nil), 2, "test.Type")) + 4
		start := pos
		for _, r := range in {
			pos += lens + len(r) + 4
			ends = append(ends, pos)
		}
		for _, n := range cuts {
			got, errs := readAll(b[:n], pbc.Options{})
			whole := 0
			for _, e := range ends {
				if e <= n {
					whole++
				}
			}
			if len(got) != whole || !slices.Equal(got, want[:whole]) {
				t.Errorf("v%d cut at %d: %d records, want %d", version, n, len(got), whole)
			}
			atEnd := n == start || slices.Contains(ends, n)
			if atEnd != (len(errs) == 0) {
				t.Errorf("v%d cut at %d: %v", version, n, errs)
			}
			for _, err := range errs {
				if !errors.Is(err, fault.Corrupt) || pbc.SpanOf(err).Object != "f" || n >= start && !pbc.IsTorn(err) {
					t.Errorf("v%d cut at %d: %v", version, n, err)
				}
			}
		}
	}
}

// Every bit of a container is covered by a checksum: a flip is reported, and in version 2 only its own record is lost.
func TestPBCFlips(t *testing.T) {
	in := [][]byte{[]byte("first"), []byte("second"), {}, []byte("fourth"), []byte("fifth")}
	want := []string{"first", "second", "", "fourth", "fifth"}
	for _, version := range []uint32{1, 2} {
		b := container(version, "test.Type", in...)
		for i := range b {
			for bit := range 8 {
				x := bytes.Clone(b)
				x[i] ^= 1 << bit
				got, errs := readAll(x, pbc.Options{})
				if len(errs) == 0 {
					t.Fatalf("v%d byte %d bit %d: not reported", version, i, bit)
				}
				for _, err := range errs {
					if s := pbc.SpanOf(err); !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported) ||
						s.Object != "f" {
						t.Fatalf("v%d byte %d: %v", version, i, err)
					}
				}
				for _, g := range got {
					if !slices.Contains(want, g) {
						t.Fatalf("v%d byte %d bit %d: record %q", version, i, bit, g)
					}
				}
				if lost := len(want) - len(got); version == 2 && lost > 1 && i >= pbc.HeadV1 || version == 2 &&
					i < pbc.HeadV2 && lost > 0 {
					t.Errorf("v2 byte %d bit %d: %d records are lost: %v", i, bit, lost, errs)
				}
			}
		}
	}
}

func TestPBCDamage(t *testing.T) {
	good := container(2, "t", []byte("one"), []byte("two"))
	zeros := append(bytes.Clone(good), make([]byte, 5000)...)
	if got, errs := readAll(zeros, pbc.Options{}); len(got) != 2 || len(errs) != 1 || !pbc.IsTorn(errs[0]) {
		t.Errorf("zeros at the end: %q, %v", got, errs)
	}
	zeros[len(zeros)-1] = 1
	if got, errs := readAll(zeros, pbc.Options{}); len(got) != 2 || len(errs) != 1 || pbc.IsTorn(errs[0]) {
		t.Errorf("zeros and a one: %q, %v", got, errs)
	}
	if _, errs := readAll([]byte("kuduenc\x00 and so on and on"), pbc.Options{}); len(errs) != 1 ||
		!errors.Is(errs[0], fault.Unsupported) {
		t.Errorf("encrypted: %v", errs)
	}
	if _, errs := readAll(container(3, "t"), pbc.Options{}); len(errs) != 1 {
		t.Errorf("version 3: %v", errs)
	}
	v3 := append([]byte(pbc.Magic), 3, 0, 0, 0)
	v3 = binary.LittleEndian.AppendUint32(v3, sum.CRC32C(v3))
	if _, errs := readAll(v3, pbc.Options{}); len(errs) != 1 || !errors.Is(errs[0], fault.Unsupported) {
		t.Errorf("version 3: %v", errs)
	}
	for _, s := range []string{"", "k", "kuducntr", "PAR1", "not a container at all"} {
		if _, errs := readAll([]byte(s), pbc.Options{}); len(errs) != 1 || !errors.Is(errs[0], fault.Corrupt) {
			t.Errorf("%q: %v", s, errs)
		}
	}
	small := pbc.Options{Limits: format.Limits{Metadata: 2}}
	if _, errs := readAll(good, small); len(errs) != 1 || !errors.Is(errs[0], fault.Limit) {
		t.Errorf("limit: %v", errs)
	}
	// a flipped body without verification
	bad := bytes.Clone(good)
	bad[len(bad)-5] ^= 1
	if got, errs := readAll(bad, pbc.Options{NoVerify: true}); len(got) != 2 || len(errs) > 0 || got[1] == "two" {
		t.Errorf("unverified: %q, %v", got, errs)
	}
}

// The nodes of real metadata files cover all their bytes.
func TestDescribePBC(t *testing.T) {
	ctx := context.Background()
	n := 0
	err := filepath.WalkDir("testdata", func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil || !bytes.HasPrefix(b, []byte(pbc.Magic)) {
			return err
		}
		n++
		var cover region.Coverage
		if err := fs.DescribeMetadata(ctx, store.Local{}, name, pbc.Options{Trace: cover.Add}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if gaps, overlaps := cover.Check(fault.Span{Object: name, Len: int64(len(b))}); len(gaps) > 0 ||
			len(overlaps) > 0 {
			t.Errorf("%s: gaps %v, overlaps %v", name, gaps, overlaps)
		}
		return nil
	})
	if err != nil || n < 20 {
		t.Fatalf("%d files, %v", n, err)
	}
}

func FuzzPBC(f *testing.F) {
	f.Add(container(1, "t", []byte("one"), []byte("two")))
	f.Add(container(2, "t", []byte("one"), []byte("two")))
	for _, name := range []string{"testdata/log/wal/instance",
		"testdata/log/data/data/c61469032c9c4d08b0339d754d9f5944.metadata"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, o := range []pbc.Options{{}, {NoVerify: true}} {
			_, errs := readAll(b, o)
			for _, err := range errs {
				if !errors.As(err, new(*fault.Error)) || errors.Is(err, fault.Bug) {
					t.Fatal(err)
				}
			}
			err := fs.DescribeMetadata(context.Background(), store.NewMemory(map[string][]byte{"f": b}), "f",
				pbc.Options{NoVerify: o.NoVerify, Trace: func(region.Node) {}})
			if err != nil && !errors.As(err, new(*fault.Error)) {
				t.Fatal(err)
			}
		}
	})
}

// A container on its own is listed, described and verified; every changed byte is reported, as checksums cover all.
func TestMetadataFormat(t *testing.T) {
	ctx := context.Background()
	name := "testdata/file/wal/tablet-meta/70fc465b9c534a739769e6e74c851895"
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	target := func(b []byte) format.Target {
		return format.Target{Tree: store.NewMemory(map[string][]byte{"s": b}), Name: "s"}
	}
	verify := func(b []byte) (out []region.Finding) {
		for x := range MetadataFormat.Verify(ctx, target(b), format.OpenOptions{}) {
			if x.Code != "kudu.metadata.damaged" || x.Severity != region.Error || x.At.Object != "s" ||
				x.Message == "" {
				t.Errorf("%+v", x)
			}
			out = append(out, x)
		}
		return out
	}
	if m, err := MetadataFormat.Probe(ctx, target(b)); m != format.Certain || err != nil {
		t.Error(m, err)
	}
	if m, err := MetadataFormat.Probe(ctx, target([]byte("kuducfl2"))); m != format.No || err != nil {
		t.Error(m, err)
	}
	for e, err := range MetadataFormat.List(ctx, target(b)) {
		if err != nil || e.Kind != "metadata" || e.Bytes != int64(len(b)) ||
			e.Meta[1].Value != "kudu.tablet.TabletSuperBlockPB" {
			t.Errorf("%+v, %v", e, err)
		}
	}
	var cover region.Coverage
	for n, err := range MetadataFormat.Describe(ctx, target(b), format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		cover.Add(n)
	}
	if gaps, overlaps := cover.Check(fault.Span{Object: "s", Len: int64(len(b))}); len(gaps)+len(overlaps) > 0 {
		t.Error(gaps, overlaps)
	}
	if found := verify(b); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	for at := 0; at < len(b); at += 7 {
		bad := bytes.Clone(b)
		bad[at] ^= 1 << (at % 8)
		if len(verify(bad)) == 0 {
			t.Errorf("byte %d is changed, and nothing is reported", at)
		}
		for _, err := range MetadataFormat.Describe(ctx, target(bad), format.DescribeOptions{}) {
			if err != nil && !errors.As(err, new(*fault.Error)) {
				t.Error(err)
			}
		}
	}
	for at := 0; at < len(b); at++ {
		if len(verify(b[:at])) == 0 {
			t.Errorf("truncated at %d, and nothing is reported", at)
		}
	}
}
