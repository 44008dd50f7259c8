package carbon_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stoa"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// only returns the findings of a code.
func only(found []region.Finding, code string) []region.Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f region.Finding) bool { return f.Code != code })
}

// managedDel returns a table written by the real writer, with deletes. Segment 0 was loaded with k from 0 to 9 and
// comes first in tablestatus.
func managedDel(t *testing.T) *store.Memory {
	return loaded(t, filepath.Join(golden2, "managed/managed_del"))
}

// TestVerifySegmentSizes compares the sizes of a segment's files with those in tablestatus.
func TestVerifySegmentSizes(t *testing.T) {
	if found := only(verdict(t, managedDel(t)), "carbon.segment.size"); len(found) > 0 {
		t.Fatalf("a healthy table: %+v", found)
	}
	for what, change := range map[string][2]string{
		"data":  {`"dataSize":"877"`, `"dataSize":"878"`},
		"index": {`"indexSize":"553"`, `"indexSize":"500"`},
	} {
		tree := managedDel(t)
		swap(t, tree, "Metadata/tablestatus", change[0], change[1])
		found := only(verdict(t, tree), "carbon.segment.size")
		if len(found) != 1 || found[0].Severity != region.Warning ||
			found[0].At.Object != "t/Metadata/tablestatus" || found[0].Path != what+"Size" {
			t.Errorf("%s: %+v", what, found)
		}
	}
}

// TestVerifyEntries: an invalid time and an invalid size in tablestatus are reported, although no row depends on them.
func TestVerifyEntries(t *testing.T) {
	const code = "carbon.segment.entry"
	if found := only(verdict(t, managedDel(t)), code); len(found) > 0 {
		t.Fatalf("a healthy table: %+v", found)
	}
	times := regexp.MustCompile(`"(timestamp|loadStartTime|updateDelta\w+Timestamp|dataSize|indexSize)":"(\d+)"`)
	const name = "Metadata/tablestatus"
	whole := managedDel(t).Bytes("t/" + name)
	for _, at := range times.FindAllSubmatchIndex(whole, -1) {
		tree := managedDel(t)
		field, last := string(whole[at[2]:at[3]]), at[5]-1
		tree.Put("t/"+name, slices.Concat(whole[:last], []byte("q"), whole[last+1:]))
		found := only(verdict(t, tree), code)
		if len(found) != 1 || found[0].Severity != region.Error || !strings.HasSuffix(found[0].Path, "]."+field) {
			t.Errorf("%s: %+v", field, found)
		}
	}
}

// bounds modifies the object segmentMetaDataInfo in the segment file of a segment.
func bounds(t *testing.T, tree *store.Memory, segment string, change func(object []byte) []byte) {
	t.Helper()
	for _, n := range tree.Names() {
		if !strings.HasPrefix(n, "t/Metadata/segments/"+segment+"_") {
			continue
		}
		var file map[string]any
		if err := json.Unmarshal(tree.Bytes(n), &file); err != nil {
			t.Fatal(err)
		}
		zipped, err := base64.StdEncoding.DecodeString(file["segmentMetaDataInfo"].(string))
		if err != nil {
			t.Fatal(err)
		}
		r, err := gzip.NewReader(bytes.NewReader(zipped))
		if err != nil {
			t.Fatal(err)
		}
		object, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		w.Write(change(object))
		w.Close()
		file["segmentMetaDataInfo"] = base64.StdEncoding.EncodeToString(out.Bytes())
		b, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		tree.Put(n, b)
		return
	}
	t.Fatal("no segment file of", segment)
}

// TestVerifySegmentBounds: the minimums and maximums in a segment file are compared with those of the segment's
// blocklets.
func TestVerifySegmentBounds(t *testing.T) {
	alter := func(t *testing.T) *store.Memory { return loaded(t, filepath.Join(golden2, "managed/managed_alter")) }
	if found := only(verdict(t, alter(t)), "carbon.segment.minmax"); len(found) > 0 {
		t.Fatalf("a healthy table: %+v", found)
	}
	replace := func(old, now string) func([]byte) []byte {
		return func(b []byte) []byte {
			if bytes.Count(b, []byte(old)) != 1 {
				t.Fatalf("got %q %d times", old, bytes.Count(b, []byte(old)))
			}
			return bytes.Replace(b, []byte(old), []byte(now), 1)
		}
	}
	// Segment 0 has names from n0 to n9 and ids from 0 to 29; in the object the maximum comes before the minimum.
	for what, change := range map[string]func([]byte) []byte{
		"min text": replace("\x00\x02n0", "\x00\x02n1"),
		"max text": replace("\x00\x02n9", "\x00\x02n8"),
		"max number": replace("\x00\x08\x00\x00\x00\x00\x00\x00\x00\x1d",
			"\x00\x08\x00\x00\x00\x00\x00\x00\x00\x1c"),
		"column":      replace("e9c25f48", "e9c25f49"),
		"cut":         func(b []byte) []byte { return b[:len(b)-3] },
		"not Java":    func([]byte) []byte { return []byte("{}") },
		"other class": replace("segmentmeta.SegmentMetaDataInfo", "segmentmeta.SegmentMetaDataInfx"),
	} {
		tree := alter(t)
		bounds(t, tree, "0", change)
		found := only(verdict(t, tree), "carbon.segment.minmax")
		if len(found) != 1 || found[0].Severity != region.Error ||
			!strings.HasPrefix(found[0].At.Object, "t/Metadata/segments/0_") ||
			!strings.HasPrefix(found[0].Path, "segmentMetaDataInfo") {
			t.Errorf("%s: %+v", what, found)
		}
	}
	wide := alter(t)
	bounds(t, wide, "0", replace("\x00\x02n0", "\x00\x02m0"))
	if found := only(verdict(t, wide), "carbon.segment.minmax"); len(found) > 0 {
		t.Errorf("bounds that are merely wide: %+v", found)
	}
}

// TestVerifySegmentBoundsOfChanged: bounds of a segment file that leave rows out are an error if the segment was loaded
// as one data file. A segment with deleted rows may have lost files since, and CarbonData's bounds of several files are
// often wrong (min above max, too): that is a warning, and the table is healthy. The time of the deletion need not be
// in the segment's entry.
func TestVerifySegmentBoundsOfChanged(t *testing.T) {
	for _, timed := range []bool{true, false} {
		boundsOfChanged(t, timed)
	}
}

func boundsOfChanged(t *testing.T, timed bool) {
	t.Helper()
	for segment, want := range map[string][2]int{"0": {0, 1}, "1": {0, 1}, "2": {1, 0}} { // rows of 0 and 1 are deleted
		tree := managedDel(t)
		last := map[string]string{"0": "\x00\x08\x00\x00\x00\x00\x00\x00\x01)",
			"1": "\x00\x08\x00\x00\x00\x00\x00\x00\x01)",
			"2": "\x00\x08\x00\x00\x00\x00\x00\x00\x00K"}[segment]
		bounds(t, tree, segment, func(b []byte) []byte { // a maximum below every value
			if bytes.Count(b, []byte(last)) != 1 {
				t.Fatalf("segment %s has the maximum %d times", segment, bytes.Count(b, []byte(last)))
			}
			return bytes.Replace(b, []byte(last), []byte("\x00\x08\xff\xff\xff\xff\xff\xff\xff\xf0"), 1)
		})
		if status := "t/Metadata/tablestatus"; !timed {
			tree.Put(status, regexp.MustCompile(`"updateDelta(Start|End)Timestamp":"[0-9]+",`).ReplaceAll(
				tree.Bytes(status), nil))
		}
		found := verdict(t, tree)
		bad, odd := only(found, "carbon.segment.minmax"), only(found, "carbon.segment.bounds")
		if len(bad) != want[0] || len(odd) != want[1] || len(errorsIn(found)) != want[0] {
			t.Errorf("segment %s, with times: %v: %d errors and %d warnings, want %v: %v", segment, timed, len(bad),
				len(odd), want, found)
		}
	}
}

// TestVerifyExchangedSegmentFiles: a segment file that was overwritten with another segment's, or swapped with it,
// names the wrong directory. It is not followed.
func TestVerifyExchangedSegmentFiles(t *testing.T) {
	for _, both := range []bool{true, false} {
		tree := loaded(t, filepath.Join(golden2, "managed/managed_alter"))
		var names []string
		for _, n := range tree.Names() {
			if strings.HasPrefix(n, "t/Metadata/segments/") {
				names = append(names, n)
			}
		}
		if len(names) != 2 {
			t.Fatal(names)
		}
		a, b := tree.Bytes(names[0]), tree.Bytes(names[1])
		want := 1
		tree.Put(names[0], b)
		if both {
			tree.Put(names[1], a)
			want = 2
		}
		found := only(verdict(t, tree), "carbon.segment.missing")
		if len(found) != want || found[0].Severity != region.Error || found[0].At.Object != names[0] ||
			!strings.HasPrefix(found[0].Path, "locationMap.") {
			t.Errorf("both %v: %+v", both, found)
		}
		refused(t, "exchanged segment files", tree, "carbon.segment.missing")
	}
}

// TestVerifyLeftovers: superseded update statuses and delete deltas, and compacted segments, are reported as leftovers,
// one finding per kind.
func TestVerifyLeftovers(t *testing.T) {
	tree := managedDel(t)
	found := only(verdict(t, tree), "carbon.leftover")
	if len(found) != 2 || found[0].Severity != region.Note ||
		!strings.Contains(found[0].Message, "tableupdatestatus-1795249941031") ||
		!strings.Contains(found[0].Message, "1 more") || !strings.HasSuffix(found[1].At.Object, ".deletedelta") {
		t.Errorf("%+v", found)
	}
	tree.Put("t/Metadata/tableupdatestatus-1795249941031", []byte("[{"))
	if found := only(verdict(t, tree), "carbon.leftover"); len(found) != 3 ||
		found[0].At.Object != "t/Metadata/tableupdatestatus-1795249941031" &&
			found[1].At.Object != "t/Metadata/tableupdatestatus-1795249941031" {
		t.Errorf("damaged: %+v", found)
	}
	found = only(verdict(t, loaded(t, filepath.Join(golden2, "managed/managed_compact"))), "carbon.leftover")
	if len(found) != 1 || !strings.Contains(found[0].Message, "Segment_0 (Compacted), Segment_1 (Compacted)") {
		t.Errorf("%+v", found)
	}
}

// TestVerifyEarlierStatus: a tablestatus that names an update status older than the newest one makes deleted rows
// reappear.
func TestVerifyEarlierStatus(t *testing.T) {
	tree := managedDel(t)
	swap(t, tree, "Metadata/tablestatus", "tableupdatestatus-1795249942958", "tableupdatestatus-1795249941724")
	found := only(verdict(t, tree), "carbon.update.newer")
	if len(found) != 2 || found[0].Severity != region.Warning ||
		found[1].At.Object != "t/Metadata/tableupdatestatus-1795249942958" {
		t.Errorf("%+v", found)
	}
}

// TestRecoverOthersIndex: an index that was overwritten with another segment's is damage but loses no rows, because the
// footers of the data files have all its information.
func TestRecoverOthersIndex(t *testing.T) {
	for _, name := range []string{"managed/managed1", "managed/managed_del", "managed/managed_alter"} {
		tree := loaded(t, filepath.Join(golden2, name))
		_, right, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		indexes := map[string]string{} // by the segment
		for _, n := range tree.Names() {
			if strings.HasSuffix(n, ".carbonindexmerge") {
				indexes[path.Dir(n)] = n
			}
		}
		tried := 0
		for dir, own := range indexes {
			for other, foreign := range indexes {
				if dir == other {
					continue
				}
				tried++
				tree := loaded(t, filepath.Join(golden2, name))
				tree.Put(own, tree.Bytes(foreign))
				refused(t, own+" is "+foreign, tree, "carbon.segment.missing")
				rows, _, err := recovered(t, tree, "t")
				if d := differ(rows, right, true); err != nil || d != "" {
					t.Errorf("%s is %s: %v, %s", own, foreign, err, d)
				}
			}
		}
		if tried == 0 {
			t.Errorf("%s: want two segments with a merged index: %v", name, indexes)
		}
	}
}

// TestRecoverExchangedIndexes: the same if the index is from another partition's directory of the same segment, if a
// name in it is damaged, and in old tables, where file names do not contain the segment and the time in the names
// decides.
func TestRecoverExchangedIndexes(t *testing.T) {
	part := loaded(t, filepath.Join(golden2, "managed/managed_part"))
	const a, b = "t/country=c1/y=2019/0_1795249943470.carbonindexmerge",
		"t/country=c1/y=2020/0_1795249943470.carbonindexmerge"
	x, y := part.Bytes(a), part.Bytes(b)
	part.Put(a, y)
	part.Put(b, x)

	old := store.NewMemory(goldenFiles(t, "v2_b2000"))
	own := ""
	for _, n := range old.Names() {
		if strings.HasSuffix(n, ".carbonindex") {
			own = n
		}
	}
	other := bytes.ReplaceAll(old.Bytes(own), []byte("-1480000000000.carbondata"), []byte("-1480000000009.carbondata"))
	if bytes.Equal(other, old.Bytes(own)) {
		t.Fatal("the index names another file")
	}
	old.Put(own, other)

	bucket := loaded(t, filepath.Join(golden2, "managed/managed_bucket")) // one name of four
	swap(t, bucket, ".carbonindexmerge", "part-0-0_batchno0-2-0-", "part-0-1_batchno0-2-0-")

	for _, c := range []struct {
		what string
		tree *store.Memory
		rows int
	}{{"partitions", part, 65}, {"format 2", old, 5000}, {"a name", bucket, 300}} {
		refused(t, c.what, c.tree, "carbon.segment.missing")
		rows, found, err := recovered(t, c.tree, "t")
		if err != nil || len(rows) != c.rows || !has(found, "carbon.index.damaged") {
			t.Errorf("%s: %d rows of %d, %v, %v", c.what, len(rows), c.rows, err, found)
		}
	}
}

// TestVerifyUnnamedSegment: an out-of-date tablestatus does not name a segment that was loaded completely; segments
// that were compacted or deleted, or are being loaded, have an entry, and the result of a compaction had one.
func TestVerifyUnnamedSegment(t *testing.T) {
	for _, name := range []string{"managed1", "managed_del", "managed_compact", "managed_part", "managed_alter"} {
		tree := loaded(t, filepath.Join(golden2, "managed", name))
		if found := only(verdict(t, tree), "carbon.segment.unnamed"); len(found) > 0 {
			t.Errorf("%s, healthy: %+v", name, found)
		}
		var entries []map[string]string
		if err := json.Unmarshal(tree.Bytes("t/Metadata/tablestatus"), &entries); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(entries[:len(entries)-1])
		if err != nil {
			t.Fatal(err)
		}
		tree.Put("t/Metadata/tablestatus", b)
		refused(t, name, tree, "carbon.segment.vanished")
	}
}

// TestDuplicateSegmentFile: two entries of tablestatus that name the same segment file are damage of tablestatus,
// whatever the other entries have; recovery finds each segment's own files.
func TestDuplicateSegmentFile(t *testing.T) {
	tree := managedDel(t)
	_, right, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	swap(t, tree, "Metadata/tablestatus", `"segmentFile":"1_1795249940876.segment"`,
		`"segmentFile":"0_1795249940621.segment"`)
	refused(t, "a segment file is named twice", tree, "carbon.status.damaged")
	if rows, _, err := recovered(t, tree, "t"); err != nil || differ(rows, right, true) != "" {
		t.Error(err, differ(rows, right, true))
	}
	var one []map[string]string
	if err := json.Unmarshal(managedDel(t).Bytes("t/Metadata/tablestatus"), &one); err != nil {
		t.Fatal(err)
	}
	many := make([]map[string]string, 20000)
	for i := range many {
		many[i] = maps.Clone(one[0])
		many[i]["loadName"] = strconv.Itoa(i)
	}
	b, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	tree.Put("t/Metadata/tablestatus", b)
	if found := only(verdict(t, tree), "carbon.status.damaged"); len(found) != 1 || found[0].Path != "[1].segmentFile" {
		t.Errorf("%d findings: %+v", len(found), found[:min(len(found), 2)])
	}
}

// TestOthersIndexInPartition: in the directory of a partition, an index that is a copy of another segment's names files
// that exist, but of that segment. It is damage, and loses no rows.
func TestOthersIndexInPartition(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{Partition: []string{"day"}}, [2]int{0, 60}, [2]int{60, 90}, [2]int{90, 120})
	whole, tried := loaded(t, dir), 0
	for _, own := range whole.Names() {
		for _, foreign := range whole.Names() {
			if !strings.HasSuffix(own, ".carbonindexmerge") || !strings.HasSuffix(foreign, ".carbonindexmerge") ||
				path.Dir(own) != path.Dir(foreign) || own == foreign {
				continue
			}
			tried++
			tree := loaded(t, dir)
			tree.Put(own, whole.Bytes(foreign))
			if found := only(verdict(t, tree), "carbon.index.damaged"); len(found) != 1 || found[0].At.Object != own {
				t.Errorf("%s is %s: %+v", own, foreign, found)
			}
			rows, _, err := recovered(t, tree, "t")
			if err != nil || len(rows) != 120 {
				t.Errorf("%s is %s: %d rows of 120, %v", own, foreign, len(rows), err)
			}
			tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: tree, Formats: formats})
			if err != nil {
				t.Fatal(err)
			}
			read := int64(0)
			for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
				if err != nil {
					t.Fatal(err)
				}
				read += b.NumRows()
			}
			if told := only(tab.Findings(), "carbon.index.damaged"); read != 120 || len(told) != 1 {
				t.Errorf("%s is %s: read %d rows of 120, and told %+v", own, foreign, read, told)
			}
			tab.Close()
		}
	}
	if tried < 6 {
		t.Errorf("tried %d pairs, want some of each partition", tried)
	}
}
