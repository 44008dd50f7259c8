package cfile_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"stoa"
	"stoa/format/cfile"
	"stoa/region"
	"stoa/store"
)

// One damaged block of a side file costs its rows, not those behind it.
func TestSideFilesReadOnBehindDamage(t *testing.T) {
	var delta, bloom bytes.Buffer
	d, err := cfile.NewDeltaWriter(&delta, false, cfile.WriterOptions{BlockSize: 512})
	if err != nil {
		t.Fatal(err)
	}
	var l cfile.ChangeList
	for row := range uint32(1000) {
		if err := d.Add(row, 7000, l.Update().Set(3, []byte{byte(row), byte(row >> 8), 0, 0})); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := cfile.NewBloomWriter(&bloom, cfile.BloomOptions{BlockBytes: 512})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		if err := b.Add([]byte{byte(i >> 8), byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{"delta": delta.Bytes(), "bloom": bloom.Bytes()} {
		whole, losses := rowsOf(t, file)
		if len(losses) != 0 || len(whole) < 5 {
			t.Fatalf("%s: %d rows, losses %v", name, len(whole), losses)
		}
		bad := bytes.Clone(file)
		bad[len(bad)/3] ^= 1
		left, losses := rowsOf(t, bad)
		if len(losses) != 1 || losses[0].Err == nil {
			t.Errorf("%s: losses %+v", name, losses)
		}
		if len(left) == 0 || len(left) >= len(whole) || left[0] != whole[0] || left[len(left)-1] != whole[len(whole)-1] {
			t.Errorf("%s: %d of %d rows, from %v to %v", name, len(left), len(whole), left[0], left[len(left)-1])
		}
		for _, r := range left {
			if !slices.Contains(whole, r) {
				t.Errorf("%s: row %s is not in the whole file", name, r)
			}
		}
	}
}

// rowsOf is the first column of a file as text, and what was lost.
func rowsOf(t *testing.T, file []byte) (rows []string, losses []region.Loss) {
	t.Helper()
	ctx := context.Background()
	tab, err := stoa.Open(ctx, "f", stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f": file})})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	spec := stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) { losses = append(losses, l) }}
	for b, err := range tab.Scan(ctx, spec) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			rows = append(rows, b.Column(0).ValueStr(i))
		}
	}
	return rows, losses
}
