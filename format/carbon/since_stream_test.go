package carbon_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"stoa"
	"stoa/fault"
	"stoa/format/carbon"
)

// TestSinceHandOff: tables with streaming segments that stoa and CarbonData hand off, with ordinary loads between. From
// any earlier moment, the rows of then and the changes since make the rows of now, and option at reads the rows of
// then; only after clean may either be unknown, and then that is an error. CarbonData 2.3.0 records no time for a
// segment that it hands off.
func TestSinceHandOff(t *testing.T) {
	known := 0
	for seed := range 8 {
		r := rand.New(rand.NewPCG(uint64(seed), 23))
		s := &sparkTable{t: t, rows: map[int32]bool{},
			dir: newOrders(t, carbon.TableSpec{Properties: map[string]string{"streaming": "true"}})}
		s.load(1, -1)
		past, story := map[string][]int32{}, []string{}
		for range 8 {
			past[pause()] = s.now()
			what := s.stream(r)
			story = append(story, what)
			if got := ids(t, s.dir, nil); !slices.Equal(got, s.now()) {
				t.Fatalf("seed %d, %v: got %v, want %v", seed, story, got, s.now())
			}
			for at, rows := range past {
				then, err := idsAt(t.Context(), s.dir, at)
				deleted, added, serr := changesSince(t.Context(), s.dir, at)
				if err == nil && !slices.Equal(then, rows) {
					t.Fatalf("seed %d, %v, at moment %s: got %v, want %v", seed, story, at, then, rows)
				}
				if got := applied(rows, deleted, added); serr == nil && !slices.Equal(got, s.now()) {
					t.Fatalf("seed %d, %v, since moment %s: got %v by %v, %v, want %v", seed, story, at, got, deleted,
						added, s.now())
				}
				for _, err := range []error{err, serr} {
					if err == nil {
						known++
					} else if !errors.Is(err, fault.Unsupported) || !slices.Contains(story, "clean") {
						t.Fatalf("seed %d, %v, moment %s: %v", seed, story, at, err)
					}
				}
			}
		}
	}
	if known < 200 {
		t.Errorf("%d answers, want 200 or more", known)
	}
}

// stream changes a table with streaming segments in a random way, and returns its name.
func (s *sparkTable) stream(r *rand.Rand) string {
	s.t.Helper()
	c, err := stoa.OpenChanger(s.t.Context(), s.dir, stoa.OpenOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	what := []string{"stream", "stream", "stream", "load", "hand-off", "hand-off of CarbonData", "clean"}[r.IntN(7)]
	switch before := entries(s.t, s.dir); what {
	case "stream":
		b := orders(int(s.next), int(s.next)+1+r.IntN(9))
		_, err = c.Append(s.t.Context(), b.Schema(), once(b), rowLayout())
		for range b.NumRows() {
			s.rows[s.next] = true
			s.next++
		}
	case "load":
		s.load(1, -1)
	case "clean":
		_, err = carbon.Clean(s.t.Context(), s.dir, false)
	default:
		if err = compactStreams(s.t.Context(), c); what == "hand-off" || err != nil {
			break
		}
		s.mark(func(list []map[string]string) []map[string]string {
			for i, e := range list {
				if i < len(before) && e["loadStatus"] == "Compacted" && before[i]["loadStatus"] != "Compacted" {
					delete(e, "modificationOrDeletionTimestamp")
				}
			}
			return list
		})
	}
	if err != nil && !strings.Contains(err.Error(), "no streaming segment") {
		s.t.Fatal(err)
	}
	return what
}

// TestSinceArriving: while the rows of a stream of CarbonData came, which they did one after the other, no moment is
// known, whether the stream was handed off since or not.
func TestSinceArriving(t *testing.T) {
	for _, handed := range []bool{false, true} {
		s := &sparkTable{t: t, rows: map[int32]bool{},
			dir: newOrders(t, carbon.TableSpec{Properties: map[string]string{"streaming": "true"}})}
		s.load(2, -1) // 0, 1
		pause()
		began := fmt.Sprint(time.Now().UnixMilli())
		during := pause()
		c, err := stoa.OpenChanger(t.Context(), s.dir, stoa.OpenOptions{})
		if err == nil {
			b := orders(10, 12)
			_, err = c.Append(t.Context(), b.Schema(), once(b), rowLayout())
		}
		if err == nil && handed {
			err = compactStreams(t.Context(), c)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.mark(func(list []map[string]string) []map[string]string {
			list[1]["loadStartTime"] = began
			return list
		})
		for at, want := range map[string][]int32{"0": {0, 1}, during: nil, pause(): {0, 1, 10, 11}} {
			rows, err := idsAt(t.Context(), s.dir, at)
			_, _, serr := changesSince(t.Context(), s.dir, at)
			for _, err := range []error{err, serr} {
				if unknown := errors.Is(err, fault.Unsupported) && strings.Contains(err.Error(),
					"segment 1 were streamed"); unknown != (want == nil) || !unknown && err != nil {
					t.Errorf("handed off: %v, %s: %v", handed, at, err)
				}
			}
			if want != nil && !slices.Equal(rows, want) {
				t.Errorf("handed off: %v, at %s: got %v, want %v", handed, at, rows, want)
			}
		}
	}
}

// TestPastOfEmptyTable: a table that nothing was loaded into had no rows at any moment.
func TestPastOfEmptyTable(t *testing.T) {
	for _, partition := range [][]string{nil, {"day"}} {
		dir := newOrders(t, carbon.TableSpec{Partition: partition})
		rows, err := idsAt(t.Context(), dir, pause())
		deleted, added, serr := changesSince(t.Context(), dir, pause())
		if err := errors.Join(err, serr); err != nil || len(rows)+len(deleted)+len(added) > 0 {
			t.Errorf("partition %v: got %v, deleted %v, added %v, %v", partition, rows, deleted, added, err)
		}
	}
}
