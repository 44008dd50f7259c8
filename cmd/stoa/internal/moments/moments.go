// Package moments finds the moments of a table's past at which it is read, one after the other.
package moments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/look"
	"stoa/fault"
	"stoa/internal/sorted"
)

// Moment is a moment at which a table is read.
type Moment struct {
	At string // as in --at; "" is the present
	MS int64  // its time, in milliseconds since 1970
}

// Source is the table.
type Source struct {
	Paths   []string
	Options stoa.OpenOptions
	Open    func(ctx context.Context, at string) (*stoa.Table, error)
}

// Left are the moments that are left out, as the rows of then cannot be read any more.
type Left struct {
	Segments bool // they are named by these
	At       []string
	Why      error // of the first one
}

// String says which they are, and how many; "" if there are none.
func (l Left) String() string {
	const most = 10
	n := len(l.At)
	if n == 0 {
		return ""
	}
	names := strings.Join(l.At[:min(n, most)], ", ")
	if n > most {
		names += ", …"
	}
	what := display.Count(int64(n), "moment") + " of its past"
	if l.Segments {
		what = display.Count(int64(n), "load")
		names = "segments " + names
	}
	return fmt.Sprintf("left out %s, as the rows of then cannot be read any more: %s (%s)", what, names,
		cli.InFlags(cli.Line(l.Why)))
}

// Named returns the moments of a list, in order.
func (s Source) Named(ctx context.Context, list []string) (out []Moment, err error) {
	loads, _, err := s.loads(ctx)
	if err != nil {
		return nil, err
	}
	for _, at := range list {
		ms, ok := loads[at]
		if !ok {
			if ms, err = msOf(at); err != nil {
				return nil, err
			}
		}
		out = append(out, Moment{at, ms})
	}
	inOrder(out)
	for i := 1; i < len(out); i++ {
		if out[i].MS == out[i-1].MS {
			return nil, cli.WrongUse("--snapshots: %s and %s are in the same millisecond, which is the unit of Iceberg",
				out[i-1].At, out[i].At)
		}
	}
	return out, nil
}

func inOrder(list []Moment) {
	sorted.StablyBy(list, func(a, b Moment) int { return cmp.Compare(a.MS, b.MS) })
}

// Formats of tables whose past is known.
const (
	kudu   = "kudu"
	carbon = "carbon"
)

// bySegment is the value of --every for a moment at the end of each load of a CarbonData table.
const bySegment = "segment"

// Every returns a moment for each step of a duration, or for each load, and then the present.
func (s Source) Every(ctx context.Context, every string) (out []Moment, left Left, err error) {
	loads, of, err := s.loads(ctx)
	switch {
	case err != nil:
	case of == carbon:
		return s.ofLoads(ctx, every, loads)
	case of != kudu && every != bySegment:
		err = cli.WrongUse("--every is for tables of Kudu and CarbonData, whose past is known: %s is none",
			strings.Join(s.Paths, ", "))
	case every == bySegment:
		err = cli.WrongUse("--every segment is for tables of CarbonData: %s is none", strings.Join(s.Paths, ", "))
	default:
		out, err = s.series(ctx, every)
	}
	return out, left, err
}

// loads returns when the loads of a CarbonData table ended whose rows it ever showed, by their segments, and of which
// format the table is.
func (s Source) loads(ctx context.Context) (out map[string]int64, of string, err error) {
	out = map[string]int64{}
	t, err := s.Open(ctx, "")
	if err != nil {
		return nil, "", err
	}
	for _, src := range t.Sources() {
		if of == "" || src.Format == carbon {
			of = src.Format
		}
	}
	if err := t.Close(); err != nil || of != carbon {
		return out, of, err
	}
	// with a moment it knows loads that clean has removed; one to come is certain, whatever has no time
	t, err = s.Open(ctx, time.Now().UTC().Add(time.Hour).Format(time.RFC3339Nano))
	if errors.Is(err, fault.Unsupported) { // nor can its past be read
		t, err = s.Open(ctx, "")
	}
	if err != nil {
		return nil, of, err
	}
	defer t.Close()
	for _, src := range t.Sources() {
		for _, kv := range src.Meta {
			name, ok := strings.CutPrefix(kv.Key, "segment.")
			_, end, ended := strings.Cut(kv.Value, ", to ")
			if end, _, _ = strings.Cut(end, ","); !ok || !ended || src.Format != carbon {
				continue
			}
			if at, err := time.Parse(time.RFC3339Nano, end); err == nil {
				out[name] = at.UnixMilli()
			}
		}
	}
	return out, of, nil
}

// ofLoads returns the moments of a CarbonData table from the end of its first load on, and the present.
func (s Source) ofLoads(ctx context.Context, every string, loads map[string]int64) (out []Moment, left Left,
	err error) {
	now := time.Now().UnixMilli()
	left.Segments = every == bySegment
	var all []Moment
	first := now
	for name, ms := range loads {
		first = min(first, ms)
		if left.Segments {
			all = append(all, Moment{name, ms})
		}
	}
	if !left.Segments {
		step, err := cli.Duration(every)
		if err != nil {
			return nil, left, err
		}
		if all, err = steps(every, step, time.UnixMilli(first), time.UnixMilli(now)); err != nil {
			return nil, left, err
		}
	}
	inOrder(all)
	for i, m := range all {
		if i+1 < len(all) && all[i+1].MS == m.MS { // the rows at the end of both are the same
			continue
		}
		t, err := s.Open(ctx, m.At)
		if errors.Is(err, fault.Unsupported) {
			left.At, left.Why = append(left.At, m.At), cmp.Or(left.Why, err)
			continue
		}
		if err == nil {
			err = t.Close()
		}
		if err != nil {
			return nil, left, err
		}
		out, now = append(out, m), max(now, m.MS+1)
	}
	return append(out, Moment{"", now}), left, nil
}

// msOf returns the milliseconds of a moment: of a hybrid time of Kudu, or of a time or a day. They are not before it.
func msOf(at string) (int64, error) {
	const logicalBits = 12
	if n, err := strconv.ParseInt(at, 10, 64); err == nil {
		return (n + 1000<<logicalBits - 1) / (1000 << logicalBits), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
		time.DateOnly} {
		if t, err := time.Parse(layout, at); err == nil {
			return t.Add(time.Millisecond - 1).UnixMilli(), nil
		}
	}
	return 0, cli.WrongUse("--snapshots: expected a time such as 2024-02-29T12:00:00Z, a day, a segment of a "+
		"CarbonData table, or a hybrid time, found %s", at)
}

// series returns the moments from the first one of which a Kudu table is known exactly, and that of its last operation.
func (s Source) series(ctx context.Context, every string) (out []Moment, err error) {
	step, err := cli.Duration(every)
	if err != nil {
		return nil, err
	}
	histories, _, err := look.HistoryOf(ctx, s.Paths, s.Options)
	if err != nil {
		return nil, err
	}
	if len(histories) != 1 || histories[0].Exact == nil || histories[0].Last == nil {
		return nil, cli.WrongUse("--every: no moments of %s are known; --snapshots lists them",
			strings.Join(s.Paths, ", "))
	}
	from, err := time.Parse(time.RFC3339Nano, histories[0].Exact.Time)
	to, err2 := time.Parse(time.RFC3339Nano, histories[0].Last.Time)
	if err = errors.Join(err, err2); err != nil {
		return nil, err
	}
	if out, err = steps(every, step, from, to); err != nil {
		return nil, err
	}
	// the state after the last operation is that of the present: where the log is not here, no later moment is known
	return append(out, Moment{"", to.Add(time.Millisecond).UnixMilli()}), nil
}

// steps returns the moments between two times that are multiples of a step.
func steps(every string, step time.Duration, from, to time.Time) (out []Moment, err error) {
	const most = 10_000
	for at := from.Truncate(step).Add(step); at.Before(to.Truncate(time.Millisecond)); at = at.Add(step) {
		if len(out) >= most {
			return nil, cli.WrongUse("--every %s would be more than %d snapshots", every, most)
		}
		out = append(out, Moment{at.UTC().Format(time.RFC3339Nano), at.UnixMilli()})
	}
	return out, nil
}
