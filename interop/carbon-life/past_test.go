//go:build interop

package carbonlife

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// moment is a time, and the ids of the rows that the table had then.
type moment struct {
	at  string
	ids []int
}

// remember adds the present to the moments that are asked for later.
func (l *life) remember() {
	time.Sleep(2 * time.Millisecond) // times in a table have no smaller unit than one
	ids := l.t.where(func(int, row) bool { return true })
	l.past = append(l.past, moment{time.Now().UTC().Format(time.RFC3339Nano), ids})
	time.Sleep(2 * time.Millisecond)
}

// remembered compares what stoa knows of the past with what was remembered: the rows at the last moment and at an
// earlier one, and what changed since. What is not known it refuses.
func (l *life) remembered() error {
	last := len(l.past) - 1
	for _, i := range slices.Compact([]int{l.r.IntN(last + 1), last}) {
		m := l.past[i]
		then, known, err := l.ids("--at", m.at)
		if err != nil || known && !slices.Equal(then[""], m.ids) {
			return fmt.Errorf("stoa's cat --at %s: ids %v, want %v, %v", m.at, then[""], m.ids, err)
		}
		changed, known, err := l.ids("--since", m.at)
		if err != nil {
			return fmt.Errorf("stoa's cat --since %s: %v", m.at, err)
		}
		if !known {
			continue
		}
		got := slices.Clone(m.ids)
		for _, id := range changed["deleted"] {
			k := slices.Index(got, id)
			if k < 0 {
				return fmt.Errorf("stoa's cat --since %s: %d is deleted, of %v", m.at, id, m.ids)
			}
			got = slices.Delete(got, k, k+1)
		}
		got = append(got, changed["added"]...)
		slices.Sort(got)
		if want := l.t.where(func(int, row) bool { return true }); !slices.Equal(got, want) {
			return fmt.Errorf("stoa's cat --since %s: %v, which makes %v of %v, want %v", m.at, changed, got, m.ids,
				want)
		}
	}
	return nil
}

// ids returns the ids that stoa reads, by what happened to them; known is false if it refuses that by name.
func (l *life) ids(option, at string) (out map[string][]int, known bool, err error) {
	text, err := l.j.run(l.t.flags("cat", l.path(), "-f", "jsonl", "--unordered", "-c", "id"+
		map[string]string{"--since": ",stoa_change"}[option], option, at)...)
	if err != nil && strings.Contains(err.Error(), "unsupported: its past: ") &&
		strings.Contains(err.Error(), "segment ") {
		l.steps["asked for the past, refused by name"]++
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	l.steps["asked for the past"]++
	out = map[string][]int{}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		var row struct {
			ID     int    `json:"id"`
			Change string `json:"stoa_change"`
		}
		if line == "" {
			continue
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			return nil, false, err
		}
		out[row.Change] = append(out[row.Change], row.ID)
	}
	for _, ids := range out {
		slices.Sort(ids)
	}
	return out, true, nil
}
