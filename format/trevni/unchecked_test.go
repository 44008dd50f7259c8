package trevni_test

import (
	"bytes"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
)

// TestUncheckedHeader: for files whose blocks have checksums, verify reports that their header has none, because a
// changed name would go unnoticed. It does not report this for our own files, whose header has a checksum.
func TestUncheckedHeader(t *testing.T) {
	says := func(data []byte) bool {
		tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.trv": data}), Name: "f.trv"}
		what, err := trevni.Format.Unchecked(t.Context(), tg, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(what, "over the header")
	}
	for _, name := range []string{"dialects/wiki_dremel.trv", "v1.12.2/all_snappy_crc32.trv"} {
		if !says(corpusFile(t, name)) {
			t.Errorf("%s: that its header has no checksum is not reported", name)
		}
	}
	for name, data := range samples(t) {
		if says(data) {
			t.Errorf("%s: its header has a checksum", name)
		}
	}
}

// TestKeysWithOtherBytes: a key with most bytes of one of the format's keys counts as a damaged copy of it and is an
// error; any other key is assumed to be an application's.
func TestKeysWithOtherBytes(t *testing.T) {
	data := corpusFile(t, "v1.12.2/array_of_array.trv")
	right, err := scanAll(t.Context(), data, scan.Spec{}, false)
	if err != nil {
		t.Fatal(err)
	}
	for key, near := range map[string]bool{"xxxxxx.parent": false, "trevni.xxxxxx": false, "trxxni.pxrexx": false,
		"trevni.pxxxxt": true, "xxxvni.parent": true} {
		bad := bytes.Replace(data, []byte("trevni.parent"), []byte(key), 1)
		got, _, err := recovered(t, bad)
		if reported := errorsOf(t, bad) > 0; near && (err != nil || got != right || !reported) {
			t.Errorf("%s: reported %v, %v, the rows are as they were: %v", key, reported, err, got == right)
		}
		if _, err := scanAll(t.Context(), bad, scan.Spec{}, false); !near && err == nil {
			t.Errorf("%s is not taken for a user's key", key)
		}
	}
}

// TestRowsOfNoBlock: if no column agrees with the header, descriptors whose blocks are not in the file do not determine
// the number of rows.
func TestRowsOfNoBlock(t *testing.T) {
	data := corpusFile(t, "v1.12.2/avro_dremel.trv")[:1480]
	bad := append(append(bytes.Clone(data[:1390]), 0x4e, 0x2c, 0xd4, 0x27, 0x39, 0xf0), data[1390:]...)
	lost := int64(0)
	_, err := scanAll(t.Context(), bad, scan.Spec{Damaged: scan.SkipRows, Lost: func(l region.Loss) {
		lost = max(lost, l.Rows[1])
	}}, true)
	if err != nil || lost > 2 {
		t.Errorf("2 rows were there, %d are reported as lost: %v", lost, err)
	}
}

// TestStatsOfSharedBlocks: an array of values with children is one stored column but appears as two columns; its blocks
// count once, so columns do not take more than the file.
func TestStatsOfSharedBlocks(t *testing.T) {
	data := corpusFile(t, "v1.12.2/array_of_array.trv")
	tree := store.NewMemory(map[string][]byte{"f.trv": data})
	tab, err := stoa.Open(t.Context(), "f.trv", stoa.OpenOptions{Tree: tree})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	stats, err := tab.Stats(t.Context(), stoa.Fail, nil)
	if err != nil {
		t.Fatal(err)
	}
	stored, twice := int64(0), map[string]int{}
	for _, s := range stats {
		twice[s.Name]++
		stored += s.Stored
	}
	if stored > int64(len(data)) || stored < int64(len(data))/2 {
		t.Errorf("the columns take %d bytes of %d", stored, len(data))
	}
	if twice["v"] != 2 {
		t.Errorf("column v is shown %d times", twice["v"])
	}
}

// TestSchemaIsText: a schema that is no longer UTF-8 is an error, whatever else can be read from it.
func TestSchemaIsText(t *testing.T) {
	data := corpusFile(t, "v1.12.2/avro_array_of_enum_fixed.trv")
	at := bytes.Index(data, []byte(`"B"`))
	if at < 0 || errorsOf(t, data) > 0 {
		t.Fatal("not the file that it was")
	}
	data[at+1] |= 0x80
	if _, reported, _ := recovered(t, data); errorsOf(t, data) == 0 || !reported {
		t.Error("a symbol that is no UTF-8 is no error")
	}
}
