package carbon_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/fault"
	"stoa/format/carbon"
)

// changesSince returns the ids of the deleted and added rows since a moment.
func changesSince(ctx context.Context, dir, moment string) (deleted, added []int32, err error) {
	tab, err := stoa.Open(ctx, dir, stoa.OpenOptions{Formats: formats, Opts: map[string]string{"since": moment}})
	if err != nil {
		return nil, nil, err
	}
	defer tab.Close()
	for b, err := range tab.Scan(ctx, stoa.ScanSpec{Columns: []string{"id", "stoa_change"}}) {
		if err != nil {
			return nil, nil, err
		}
		for i, id := range b.Column(0).(*array.Int32).Int32Values() {
			switch what := b.Column(1).(*array.String).Value(i); {
			case what == "added":
				added = append(added, id)
			case what != "deleted":
				return nil, nil, fmt.Errorf("stoa_change is %q", what)
			case len(added) > 0:
				return nil, nil, errors.New("a deleted row after an added one")
			default:
				deleted = append(deleted, id)
			}
		}
	}
	return deleted, added, nil
}

// idsAt returns the ids of the rows at a moment, ascending.
func idsAt(ctx context.Context, dir, moment string) (out []int32, err error) {
	tab, err := stoa.Open(ctx, dir, stoa.OpenOptions{Formats: formats, Opts: map[string]string{"at": moment}})
	if err != nil {
		return nil, err
	}
	defer tab.Close()
	for b, err := range tab.Scan(ctx, stoa.ScanSpec{Columns: []string{"id"}}) {
		if err != nil {
			return nil, err
		}
		out = append(out, b.Column(0).(*array.Int32).Int32Values()...)
	}
	slices.Sort(out)
	return out, nil
}

// pause waits until another millisecond begins: times in a table have no smaller unit.
func pause() string {
	time.Sleep(2 * time.Millisecond)
	at := time.Now().UTC()
	time.Sleep(2 * time.Millisecond)
	return at.Format(time.RFC3339Nano)
}

// TestSince changes tables in random ways. From any earlier moment, the rows of then without the deleted ones and with
// the added ones are the rows of now, and option at reads the rows of then. Only after clean may either be unknown, and
// then that is an error.
func TestSince(t *testing.T) {
	tables := 4
	if !testing.Short() {
		tables = 20 // a dropped partition of a compaction is in the seventeenth
	}
	if os.Getenv("STOA_LONG") != "" {
		tables = 60
	}
	known, unknown, some, read, lost := 0, 0, 0, 0, 0
	for seed := range tables {
		r := rand.New(rand.NewPCG(uint64(seed), 21))
		spec := carbon.TableSpec{}
		if seed%3 == 1 {
			spec.Partition = []string{"day"}
		}
		dir := newOrders(t, spec, [2]int{0, 60}, [2]int{60, 90})
		type then struct {
			at      string
			rows    []int32
			cleaned bool
		}
		var past []then
		story, next := []string{}, 90
		for range 7 {
			past = append(past, then{at: pause(), rows: ids(t, dir, nil)})
			what := change(t, r, dir, &next, spec.Partition != nil)
			story = append(story, what)
			now := ids(t, dir, nil)
			for i := range past {
				p := &past[i]
				p.cleaned = p.cleaned || what == "clean"
				switch then, err := idsAt(t.Context(), dir, p.at); {
				case errors.Is(err, fault.Unsupported) && p.cleaned && strings.Contains(err.Error(), "clean"):
					lost++
				case err != nil:
					t.Fatalf("seed %d, %v, at moment %d: %v", seed, story, i, err)
				case !slices.Equal(then, p.rows):
					t.Fatalf("seed %d, %v, at moment %d: got %v, want %v", seed, story, i, then, p.rows)
				default:
					read++
				}
				deleted, added, err := changesSince(t.Context(), dir, p.at)
				if errors.Is(err, fault.Unsupported) && p.cleaned && strings.Contains(err.Error(), "clean") {
					unknown++
					continue
				}
				if err != nil {
					t.Fatalf("seed %d, %v, since moment %d: %v", seed, story, i, err)
				}
				known++
				some += len(deleted) + len(added)
				if got := applied(p.rows, deleted, added); !slices.Equal(got, now) {
					t.Fatalf("seed %d, %v, since moment %d: got %v by %v, %v; want %v", seed, story, i, got, deleted,
						added, now)
				}
				if slices.Equal(p.rows, now) && what != "compact" && len(deleted) > len(now) {
					t.Errorf("seed %d, %v: %d rows deleted and added again", seed, story, len(deleted))
				}
			}
		}
		healthy(t, dir)
	}
	t.Logf("%d known, %d unknown, %d rows; %d moments read, %d lost", known, unknown, some, read, lost)
	if read < 2*lost {
		t.Errorf("%d moments could be read, %d could not", read, lost)
	}
	if known < 10*unknown/4 || some == 0 {
		t.Errorf("changes were known %d times, unknown %d times, and had %d rows", known, unknown, some)
	}
}

// applied returns rows, ascending, without the deleted ones and with the added ones. A deleted row that is not there is
// a row -1.
func applied(rows, deleted, added []int32) []int32 {
	out := slices.Clone(rows)
	for _, id := range deleted {
		i := slices.Index(out, id)
		if i < 0 {
			return []int32{-1, id}
		}
		out = slices.Delete(out, i, i+1)
	}
	out = append(out, added...)
	slices.Sort(out)
	return out
}

// change changes a table in a random way, and returns its name.
func change(t *testing.T, r *rand.Rand, dir string, next *int, partitioned bool) string {
	t.Helper()
	from := r.IntN(*next)
	where := fmt.Sprintf("id >= %d and id < %d", from, from+r.IntN(40))
	switch r.IntN(9) {
	case 0, 1:
		n := 1 + r.IntN(30)
		loadOrders(t, dir, *next, *next+n)
		*next += n
		return "load"
	case 2, 3:
		if _, err := carbon.DeleteRows(t.Context(), dir, gone(t, dir, where)); err != nil {
			t.Fatal(err)
		}
		return "delete " + where
	case 4:
		list := gone(t, dir, where)
		b := orders(*next, *next+5)
		*next += 5
		l, err := carbon.BeginUpdate(t.Context(), dir, b.Schema(), carbon.LoadOptions{})
		if err == nil {
			err = l.Write(t.Context(), b)
		}
		if err == nil {
			_, err = carbon.UpdateRows(t.Context(), dir, list, l)
		}
		if err != nil {
			t.Fatal(err)
		}
		return "update " + where
	case 5:
		segments := live(t, dir)
		if len(segments) < 2 {
			return "nothing"
		}
		r.Shuffle(len(segments), func(i, k int) { segments[i], segments[k] = segments[k], segments[i] })
		plan, err := carbon.PlanCompaction(dir, false, segments[:2])
		if err != nil {
			t.Fatal(err)
		}
		compactOrders(t, dir, plan[0])
		return "compact"
	case 6:
		if _, err := carbon.Clean(t.Context(), dir, false); err != nil {
			t.Fatal(err)
		}
		return "clean"
	case 7:
		if !partitioned {
			if list := live(t, dir); len(list) > 1 {
				if err := carbon.DeleteSegments(t.Context(), dir, list[:1]); err != nil {
					t.Fatal(err)
				}
				return "delete of segment " + list[0]
			}
			return "nothing"
		}
		c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		day := arrow.Date32(18000 + r.IntN(5)).FormattedString()
		_, err = c.DropPartition(t.Context(), stoa.PartitionOptions{Partition: map[string]*string{"day": &day}})
		if err != nil && !errors.Is(err, fault.Invalid) { // it has been dropped
			t.Fatal(err)
		}
		return "drop of partition " + day
	}
	if _, err := carbon.MergeIndexes(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	return "merge-index"
}

// live returns the segments that count.
func live(t *testing.T, dir string) (out []string) {
	t.Helper()
	for _, e := range entries(t, dir) {
		if e["loadStatus"] == "Success" {
			out = append(out, e["loadName"])
		}
	}
	return out
}

// TestSinceOptions: the moment is the end of a segment's load or a time, and what has no changes is refused.
func TestSinceOptions(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 10})
	pause()
	loadOrders(t, dir, 10, 20)
	if _, err := carbon.DeleteRows(t.Context(), dir, gone(t, dir, "id = 3")); err != nil {
		t.Fatal(err)
	}
	deleted, added, err := changesSince(t.Context(), dir, "0")
	if err != nil || !slices.Equal(deleted, []int32{3}) || !slices.Equal(added, span(10, 20)) {
		t.Errorf("since segment 0: got %v, %v, %v", deleted, added, err)
	}
	deleted, added, err = changesSince(t.Context(), dir, "2001-02-03")
	if err != nil || len(deleted) > 0 || len(added) != 19 {
		t.Errorf("since a time before all: got %v, %v, %v", deleted, added, err)
	}
	for _, bad := range []map[string]string{{"since": "7"}, {"since": "yesterday"}, {"since": "0", "segment": "1"},
		{"since": "0", "deleted": "true"}} {
		x, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{Formats: formats, Opts: bad})
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("%v: got %v, %v; want an error", bad, x, err)
		}
	}
}
