package cfile_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format/cfile"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// TestAuxiliaryFilesAfterDamage: if a block of an auxiliary file is damaged, its rows are lost, but not those after it.
func TestAuxiliaryFilesAfterDamage(t *testing.T) {
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
		if len(left) == 0 || len(left) >= len(whole) || left[0] != whole[0] ||
			left[len(left)-1] != whole[len(whole)-1] {
			t.Errorf("%s: %d of %d rows, from %v to %v", name, len(left), len(whole), left[0], left[len(left)-1])
		}
		for _, r := range left {
			if !slices.Contains(whole, r) {
				t.Errorf("%s: row %s is not in the whole file", name, r)
			}
		}
	}
}

// rowsOf returns the first column of a file as text, and the losses.
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

// TestNarrowingByADamagedIndexLosesNothing: with a damaged value index, in a file without checksums, a filter returns
// the same rows as reading the whole damaged file and filtering it. Only a cell that is damaged itself may be missing,
// because it may be outside of the range in which its value is searched for.
func TestNarrowingByADamagedIndexLosesNothing(t *testing.T) {
	ctx := context.Background()
	healthy, err := os.ReadFile("../../corpus/kudu/1.18.1/key_string/k.nock.cfile")
	if err != nil {
		t.Fatal(err)
	}
	step := 5
	if testing.Short() {
		step = 53
	}
	right := allOf(t, healthy)
	compared, refused := 0, 0
	for at := 0; at < len(healthy); at += step {
		bad := bytes.Clone(healthy)
		bad[at] ^= 1 << (at % 8)
		tab, err := stoa.Open(ctx, "f", stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f": bad})})
		if err != nil {
			refused++
			continue
		}
		all, err := texts(ctx, tab, "")
		for _, q := range []struct {
			where string
			keep  func(s string) bool
		}{
			{"value >= 'k5' and value < 'k6'", func(s string) bool { return s >= "k5" && s < "k6" }},
			{"value > 'kf'", func(s string) bool { return s > "kf" }},
			{"value <= 'k1'", func(s string) bool { return s <= "k1" }},
		} {
			got, ferr := texts(ctx, tab, q.where)
			if err != nil || ferr != nil {
				refused++
				continue
			}
			var want, must []string
			for i, s := range all {
				if q.keep(s) {
					want = append(want, s)
					if i < len(right) && right[i] == s {
						must = append(must, s)
					}
				}
			}
			compared++
			if !within(got, want) || !within(must, got) {
				t.Errorf("byte %d: %s gives %d rows, reading all gives %d, of which %d are undamaged", at, q.where,
					len(got), len(want), len(must))
			}
		}
		tab.Close()
	}
	t.Logf("%d compared, %d refused", compared, refused)
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// within reports whether a is b without some of its elements.
func within(a, b []string) bool {
	for _, x := range b {
		if len(a) > 0 && a[0] == x {
			a = a[1:]
		}
	}
	return len(a) == 0
}

func allOf(t *testing.T, file []byte) []string {
	t.Helper()
	tab, err := stoa.Open(context.Background(), "f",
		stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f": file})})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	all, err := texts(context.Background(), tab, "")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// texts returns the first column for a predicate ("": all rows).
func texts(ctx context.Context, tab *stoa.Table, where string) (out []string, err error) {
	var spec stoa.ScanSpec
	if where != "" {
		if spec.Filter, err = pred.Parse(where); err != nil {
			return nil, err
		}
	}
	for b, err := range tab.Scan(ctx, spec) {
		if err != nil {
			return nil, err
		}
		for i := range int(b.NumRows()) {
			out = append(out, strings.Clone(b.Column(0).ValueStr(i)))
		}
	}
	return out, nil
}
