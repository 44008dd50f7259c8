package redfile_test

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"

	"stoa/format"
	"stoa/format/redfile"
	"stoa/region"
	"stoa/store"
)

// TestSwappedPartWithoutSync: two parts without sync blocks that have exchanged their names are not read for each
// other: their own metadata differs from their metadata in the table's file. A part whose own metadata has one wrong
// bit, and no checksum that shows it, loses nothing.
func TestSwappedPartWithoutSync(t *testing.T) {
	for _, opts := range []map[string]string{{}, {"crc": "false"}, {"generation": "A"},
		{"protocol": "binary", "compression": "none", "index": "false"}} {
		opts["sync"] = "0"
		whole := splitTable(t, opts)
		objects := maps.Clone(whole)
		objects["out/part-00001.red"], objects["out/part-00002.red"] = whole["out/part-00002.red"],
			whole["out/part-00001.red"]
		tg := format.Target{Tree: store.NewMemory(objects), Name: "out"}
		r, err := redfile.Format.Open(ctx, tg, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		groups, err := r.RowGroups(ctx, format.Part{}, format.Query{})
		if err != nil || len(groups) != 4 {
			t.Fatal(err, len(groups))
		}
		for _, g := range groups {
			for col := range r.Columns() {
				_, err := chunkText(r, tg, g, col)
				if bad := err != nil; bad != (g.Index == 1 || g.Index == 2) || bad &&
					!strings.Contains(err.Error(), "another part") {
					t.Errorf("%v: row group %d, column %d: %v", opts, g.Index, col, err)
				}
			}
		}
		r.Close()
		reported := map[[2]int64]int{}
		for f := range redfile.Format.Verify(ctx, tg, format.OpenOptions{Depth: format.Quick}) {
			if f.Severity == region.Error && f.Code == "redfile.column.damaged" &&
				strings.HasSuffix(f.Path, ".file_path") && strings.Contains(f.Message, "another part") {
				reported[f.Rows]++
			}
		}
		if want := map[[2]int64]int{{10, 20}: 3, {20, 30}: 3}; !maps.Equal(reported, want) {
			t.Errorf("%v: verify reports %v, want %v", opts, reported, want)
		}
	}

	whole := splitTable(t, map[string]string{}) // a part without a sync block is among parts that have one
	whole["out/part-00002.red"] = splitTable(t, map[string]string{"sync": "0"})["out/part-00001.red"]
	if _, errs := content(format.Target{Tree: store.NewMemory(whole), Name: "out"}); len(errs) != 3 ||
		!strings.Contains(errs[0].Error(), "another part") {
		t.Errorf("a part without a sync block: %v", errs)
	}

	whole = splitTable(t, map[string]string{"sync": "0", "crc": "false", "compression": "none"})
	part := slices.Clone(whole["out/part-00002.red"])
	footer := len(part) - 8 - int(binary.LittleEndian.Uint32(part[len(part)-8:]))
	for bit := range 8 * (len(part) - footer) {
		if testing.Short() && bit%7 > 0 {
			continue
		}
		objects := maps.Clone(whole)
		bad := slices.Clone(part)
		bad[footer+bit/8] ^= 1 << (bit % 8)
		objects["out/part-00002.red"] = bad
		tg := format.Target{Tree: store.NewMemory(objects), Name: "out"}
		if _, errs := content(tg); len(errs) > 0 {
			t.Errorf("bit %d of byte %d of the part's own metadata: %v", bit%8, bit/8, errs)
		}
	}
}
