package carbon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
)

// sparkTable is a table that stoa and CarbonData change in turn. What CarbonData 2.3.0 under Spark 3.1.1 does to the
// files is done to them here: INSERT OVERWRITE and TRUNCATE TABLE mark every entry of tablestatus, also those of
// compacted loads, as deleted and record no time; a dropped partition is marked in new segment files, and its directory
// is removed. An overwrite of a partition writes such files for the loads that have ended, too, and those that it has
// written stay if it fails.
type sparkTable struct {
	t    *testing.T
	dir  string
	days bool  // it is partitioned by day
	next int32 // id of the next row
	rows map[int32]bool
	last int64 // when the last change began
}

func (s *sparkTable) now() []int32 { return slices.Sorted(maps.Keys(s.rows)) }

// load adds n rows; of one day only, if day is not negative.
func (s *sparkTable) load(n, day int32) {
	s.t.Helper()
	b := orders(int(s.next), int(s.next)+5*int(n))
	l, err := carbon.BeginLoad(s.t.Context(), s.dir, b.Schema(), carbon.LoadOptions{})
	for i := range int32(5 * n) {
		id := s.next + i
		if err == nil && (day < 0 && i < n || id%5 == day) {
			err = l.Write(s.t.Context(), b.NewSlice(int64(i), int64(i+1)))
			s.rows[id] = true
		}
	}
	if err == nil {
		_, err = l.Close(s.t.Context())
	}
	if s.next += 5 * n; err != nil {
		s.t.Fatal(err)
	}
}

// mark changes the entries of tablestatus.
func (s *sparkTable) mark(change func(list []map[string]string) []map[string]string) {
	s.t.Helper()
	b, err := json.Marshal(change(entries(s.t, s.dir)))
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "Metadata/tablestatus"), b, 0o666)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// end marks all loads as deleted, except for the last one if it overwrites them.
func (s *sparkTable) end(overwrite bool) {
	s.t.Helper()
	s.mark(func(list []map[string]string) []map[string]string {
		for i, e := range list {
			if !overwrite || i+1 < len(list) {
				e["loadStatus"] = "Marked for Delete"
			}
		}
		return list
	})
}

// drop drops a partition, or overwrites it by the last load.
func (s *sparkTable) drop(day int32, overwrite bool) {
	s.t.Helper()
	dir := "/day=" + arrow.Date32(18000+day).FormattedString()
	at := fmt.Sprint(time.Now().UnixMilli())
	s.mark(func(list []map[string]string) []map[string]string {
		for i, e := range list {
			last := overwrite && i+1 == len(list)
			ended := e["loadStatus"] != "Success"
			if last {
				e["updateStatusFileName"] = at
			} else if ended && !overwrite || e["segmentFile"] == "" || !s.without(e, dir, at) {
				continue
			}
			if e["updateDeltaStartTimestamp"] == "" {
				e["updateDeltaStartTimestamp"] = at
			}
			e["updateDeltaEndTimestamp"] = at
		}
		return list
	})
	if !overwrite {
		if err := os.RemoveAll(filepath.Join(s.dir, dir)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// fail has an overwrite of a partition fail after it has written segment files for some loads.
func (s *sparkTable) fail(day int32, some int) {
	s.t.Helper()
	began, dir := time.Now().UnixMilli(), "/day="+arrow.Date32(18000+day).FormattedString()
	for _, e := range entries(s.t, s.dir) {
		if some--; some >= 0 && e["segmentFile"] != "" {
			s.without(e, dir, fmt.Sprint(time.Now().UnixMilli()))
		}
	}
	time.Sleep(2 * time.Millisecond)
	s.nothing(began)
}

// without writes a segment file in which a partition is dropped, and reports whether others are left.
func (s *sparkTable) without(e map[string]string, dir, at string) (left bool) {
	s.t.Helper()
	var file struct {
		Locations map[string]map[string]any `json:"locationMap"`
	}
	folder := filepath.Join(s.dir, "Metadata/segments")
	b, err := os.ReadFile(filepath.Join(folder, e["segmentFile"]))
	if err == nil {
		err = json.Unmarshal(b, &file)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if f := file.Locations[dir]; f == nil || f["status"] != "Success" {
		return false
	}
	for name, f := range file.Locations {
		if name == dir {
			f["status"] = "Marked for Delete"
		}
		left = left || f["status"] == "Success"
	}
	name := e["loadName"] + "_" + at + ".segment"
	if b, err = json.Marshal(file); err == nil {
		err = os.WriteFile(filepath.Join(folder, name), b, 0o666)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if !left {
		e["loadStatus"] = "Marked for Delete" // and it keeps its segment file
		return false
	}
	e["segmentFile"] = name
	return true
}

// change does something random to the table.
func (s *sparkTable) change(r *rand.Rand) string {
	t := s.t
	t.Helper()
	live := live(t, s.dir)
	from := r.Int32N(s.next)
	to := from + r.Int32N(60)
	day := r.Int32N(5)
	began := s.last
	s.last = time.Now().UnixMilli()
	switch what := r.IntN(15); {
	case what < 2:
		s.load(1+r.Int32N(9), -1)
		return "load"
	case what == 2 && !s.days:
		s.nothing(time.Now().UnixMilli() - 1)
		return "load of nothing"
	case what == 3:
		where := fmt.Sprintf("id >= %d and id < %d", from, to)
		if _, err := carbon.DeleteRows(t.Context(), s.dir, gone(t, s.dir, where)); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(s.rows, func(id int32, _ bool) bool { return id >= from && id < to })
		return "delete " + where
	case what == 4:
		where := fmt.Sprintf("id >= %d and id < %d", from, to)
		s.update(where)
		maps.DeleteFunc(s.rows, func(id int32, _ bool) bool { return id >= from && id < to })
		s.rows[s.next-1] = true
		return "update " + where
	case what < 7 && len(live) > 1:
		plan, err := carbon.PlanCompaction(s.dir, false, live[:2])
		if err != nil {
			t.Fatal(err)
		}
		compactOrders(t, s.dir, plan[0])
		return "compact"
	case what == 7:
		s.end(false)
		clear(s.rows)
		return "truncate"
	case what == 8 && s.days:
		s.drop(day, false)
		maps.DeleteFunc(s.rows, func(id int32, _ bool) bool { return id%5 == day })
		return fmt.Sprint("drop of partition ", day)
	case what > 12 && s.days && began > 0:
		s.nothing(began)
		return "failed load beside the change before"
	case what > 10 && s.days:
		s.fail(day, r.IntN(1+len(entries(t, s.dir))))
		return fmt.Sprint("failed overwrite of partition ", day)
	case what > 7 && s.days:
		maps.DeleteFunc(s.rows, func(id int32, _ bool) bool { return id%5 == day })
		s.load(1, day)
		time.Sleep(2 * time.Millisecond)
		s.drop(day, true)
		return fmt.Sprint("overwrite of partition ", day)
	case what > 7:
		clear(s.rows)
		s.load(1+r.Int32N(9), -1)
		s.end(true)
		return "overwrite"
	}
	return "nothing"
}

// nothing adds the entry of a load without rows, or of one that failed.
func (s *sparkTable) nothing(began int64) {
	s.t.Helper()
	now := time.Now().UnixMilli()
	s.mark(func(list []map[string]string) []map[string]string {
		last := 0
		for _, e := range list {
			n, _, _ := strings.Cut(e["loadName"], ".")
			if n, err := strconv.Atoi(n); err == nil {
				last = max(last, n)
			}
		}
		return append(list, map[string]string{"loadName": strconv.Itoa(last + 1), "loadStatus": "Marked for Delete",
			"dataSize": "0", "indexSize": "0", "loadStartTime": fmt.Sprint(began), "timestamp": fmt.Sprint(now)})
	})
}

// update replaces rows by the next one.
func (s *sparkTable) update(where string) {
	s.t.Helper()
	list := gone(s.t, s.dir, where)
	b := orders(int(s.next), int(s.next)+1)
	s.next++
	l, err := carbon.BeginUpdate(s.t.Context(), s.dir, b.Schema(), carbon.LoadOptions{})
	if err == nil {
		err = l.Write(s.t.Context(), b)
	}
	if err == nil {
		_, err = carbon.UpdateRows(s.t.Context(), s.dir, list, l)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestSinceOthers changes tables in random ways, as stoa and as CarbonData. From any earlier moment, which is a time or
// the end of a load, the rows of then without the deleted ones and with the added ones are the rows of now, and option
// at reads the rows of then, or an error names a segment of which this is not known.
func TestSinceOthers(t *testing.T) {
	tables := 6
	if !testing.Short() {
		tables = 24
	}
	if os.Getenv("STOA_LONG") != "" {
		tables = 300
	}
	unsure := regexp.MustCompile(`segment [0-9.]+ (was overwritten or truncated|had partitions then)|` +
		`which partitions segment [0-9.]+ had then is not known: .* may be of an overwrite that failed|` +
		`which rows of segment [0-9.]+ were deleted then is not known`)
	known, unknown := map[bool]int{}, map[bool]int{}
	for seed := range tables {
		r := rand.New(rand.NewPCG(uint64(seed), 22))
		s := &sparkTable{t: t, days: seed%2 == 1, rows: map[int32]bool{}}
		spec := carbon.TableSpec{}
		if s.days {
			spec.Partition = []string{"day"}
		}
		s.dir = newOrders(t, spec)
		s.load(8, -1)
		past := map[string][]int32{}
		story := []string{}
		for range 7 {
			past[pause()] = s.now()
			loads := len(entries(t, s.dir))
			what := s.change(r)
			story = append(story, what)
			list := entries(t, s.dir)
			if last := list[len(list)-1]; len(list) > loads && what != "compact" {
				past[last["loadName"]] = s.now()
			}
			if got := ids(t, s.dir, nil); !slices.Equal(got, s.now()) {
				t.Fatalf("seed %d, %v: got %v, want %v", seed, story, got, s.now())
			}
			other := regexp.MustCompile("truncate|overwrite|drop").MatchString(fmt.Sprint(story))
			for at, rows := range past {
				then, err := idsAt(t.Context(), s.dir, at)
				deleted, added, serr := changesSince(t.Context(), s.dir, at)
				for _, err := range []error{err, serr} {
					if err == nil {
						known[other]++
						continue
					}
					unknown[other]++
					if !errors.Is(err, fault.Unsupported) || !unsure.MatchString(err.Error()) {
						t.Fatalf("seed %d, %v, moment %s: %v", seed, story, at, err)
					}
				}
				if err == nil && !slices.Equal(then, rows) {
					t.Fatalf("seed %d, %v, at moment %s: got %v, want %v", seed, story, at, then, rows)
				}
				if got := applied(rows, deleted, added); serr == nil && !slices.Equal(got, s.now()) {
					t.Fatalf("seed %d, %v, since moment %s: got %v by %v, %v, want %v", seed, story, at, got, deleted,
						added, s.now())
				}
			}
		}
	}
	t.Logf("%v known, %v unknown", known, unknown)
	if unknown[false] > 0 || unknown[true] == 0 || 2*known[true] < unknown[true] {
		t.Errorf("%v were known, %v were not; true: after CarbonData's own changes", known, unknown)
	}
}

// TestSinceOverwritten asks what is certain although CarbonData records no time: the rows at the end of a load, those
// when rows of it were deleted, and those at the end of a load that is still visible.
func TestSinceOverwritten(t *testing.T) {
	for _, overwrite := range []bool{true, false} {
		s := &sparkTable{t: t, dir: newOrders(t, carbon.TableSpec{}), rows: map[int32]bool{}}
		s.load(3, -1) // 0, 1, 2
		if _, err := carbon.DeleteRows(t.Context(), s.dir, gone(t, s.dir, "id = 1")); err != nil {
			t.Fatal(err)
		}
		stamp, err := strconv.ParseInt(entries(t, s.dir)[0]["updateDeltaEndTimestamp"], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		deleted := time.UnixMilli(stamp).UTC().Format(time.RFC3339Nano)
		unknown := pause()
		if !overwrite {
			s.end(false)
		}
		clear(s.rows)
		s.load(1, -1) // 15
		if overwrite {
			s.end(true)
		}
		for at, want := range map[string][]int32{"0": {0, 1, 2}, deleted: {0, 2}, "1": {15}, pause(): {15},
			unknown: nil} {
			rows, err := idsAt(t.Context(), s.dir, at)
			gone, added, serr := changesSince(t.Context(), s.dir, at)
			if want == nil {
				for _, err := range []error{err, serr} {
					if !errors.Is(err, fault.Unsupported) ||
						!strings.Contains(err.Error(), "segment 0 was overwritten") {
						t.Errorf("at %s: %v, want unsupported", at, err)
					}
				}
				continue
			}
			if err != nil || serr != nil || !slices.Equal(rows, want) ||
				!slices.Equal(applied(want, gone, added), s.now()) {
				t.Errorf("at %s: got %v, %v by %v, %v, %v, want %v", at, rows, err, gone, added, serr, want)
			}
		}
	}
}

// TestSinceDuringOverwrite: the rows that a load of stoa overwrites, all or those of a partition, are those of the
// table until the load ends.
func TestSinceDuringOverwrite(t *testing.T) {
	for _, partition := range []bool{false, true} {
		spec, o := carbon.TableSpec{}, carbon.LoadOptions{Overwrite: true}
		if partition {
			day := arrow.Date32(18002).FormattedString()
			spec.Partition, o.Partition = []string{"day"}, map[string]*string{"day": &day}
		}
		dir := newOrders(t, spec, [2]int{0, 20})
		pause()
		b := orders(22, 23)
		l, err := carbon.BeginLoad(t.Context(), dir, b.Schema(), o)
		if err == nil {
			err = l.Write(t.Context(), b)
		}
		during := pause()
		if err == nil {
			_, err = l.Close(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		rows, err := idsAt(t.Context(), dir, during)
		if err != nil || !slices.Equal(rows, span(0, 20)) {
			t.Errorf("partition %v: got %v, %v", partition, rows, err)
		}
		deleted, added, err := changesSince(t.Context(), dir, during)
		if got := applied(span(0, 20), deleted, added); err != nil || !slices.Equal(got, ids(t, dir, nil)) {
			t.Errorf("partition %v: got %v by %v, %v, %v", partition, got, deleted, added, err)
		}
	}
}

// TestSinceTruncatedStream: of a streaming segment that CarbonData truncated, no moment is known until the next load.
func TestSinceTruncatedStream(t *testing.T) {
	s := &sparkTable{t: t, dir: newOrders(t, carbon.TableSpec{}), rows: map[int32]bool{}}
	s.load(2, -1) // 0, 1
	before := pause()
	s.nothing(time.Now().UnixMilli() - 1)
	s.mark(func(list []map[string]string) []map[string]string {
		e := list[1]
		e["fileFormat"], e["loadStartTime"] = "ROW_V1", e["timestamp"]
		for _, name := range []string{"dataSize", "indexSize", "timestamp"} {
			delete(e, name)
		}
		return list
	})
	during := pause()
	s.end(false)
	clear(s.rows)
	s.load(1, -1)                                               // 10
	s.mark(func(list []map[string]string) []map[string]string { // what is asked here is about the stream
		list[0]["modificationOrDeletionTimestamp"] = list[2]["loadStartTime"]
		return list
	})
	for at, want := range map[string][]int32{before: {0, 1}, during: nil, pause(): {10}} {
		rows, err := idsAt(t.Context(), s.dir, at)
		unknown := errors.Is(err, fault.Unsupported) && strings.Contains(err.Error(), "segment 1 was")
		if want == nil && !unknown || want != nil && (err != nil || !slices.Equal(rows, want)) {
			t.Errorf("at %s: got %v, %v, want %v", at, rows, err, want)
		}
	}
}

// TestSinceFailedOverwrite: segment files that an overwrite has written before it failed were never in use.
func TestSinceFailedOverwrite(t *testing.T) {
	s := &sparkTable{t: t, days: true, rows: map[int32]bool{}}
	s.dir = newOrders(t, carbon.TableSpec{Partition: []string{"day"}})
	s.load(8, -1)
	s.load(8, -1)
	s.fail(1, 2)
	before, at := s.now(), pause()
	s.load(1, 2)
	s.drop(2, true)
	maps.DeleteFunc(s.rows, func(id int32, _ bool) bool { return id%5 == 2 && id < s.next-5 })
	if got := ids(t, s.dir, nil); !slices.Equal(got, s.now()) {
		t.Fatalf("got %v, want %v", got, s.now())
	}
	if got, err := idsAt(t.Context(), s.dir, at); err != nil || !slices.Equal(got, before) {
		t.Errorf("at that time: got %v, %v, want %v", got, err, before)
	}
	deleted, added, err := changesSince(t.Context(), s.dir, at)
	if got := applied(before, deleted, added); err != nil || !slices.Equal(got, s.now()) {
		t.Errorf("since: got %v by %v, %v, %v, want %v", got, deleted, added, err, s.now())
	}
}

// TestSinceBesideFailedLoad: while a load ran that failed, others may have changed the partitions.
func TestSinceBesideFailedLoad(t *testing.T) {
	s := &sparkTable{t: t, days: true, rows: map[int32]bool{}}
	s.dir = newOrders(t, carbon.TableSpec{Partition: []string{"day"}})
	s.load(8, -1)
	c := changerOf(t, s.dir)
	dropped := func(day int32) string {
		t.Helper()
		value := arrow.Date32(18000 + day).FormattedString()
		o := stoa.PartitionOptions{Partition: format.PartitionValues{"day": &value}}
		if _, err := c.DropPartition(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(s.rows, func(id int32, _ bool) bool { return id%5 == day })
		return pause()
	}
	began := time.Now().UnixMilli()
	moments, then := []string{dropped(1)}, [][]int32{s.now()}
	s.nothing(began)
	moments, then = append(moments, dropped(2)), append(then, s.now())
	for i, at := range moments {
		got, err := idsAt(t.Context(), s.dir, at)
		unsure := errors.Is(err, fault.Unsupported) && strings.Contains(err.Error(), "may be of an overwrite")
		if !(unsure && i == 0) && (err != nil || !slices.Equal(got, then[i])) {
			t.Errorf("at %s: got %v, %v, want %v", at, got, err, then[i])
		}
	}
}
