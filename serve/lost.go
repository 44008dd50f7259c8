package serve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stoa"
	"stoa/region"
	"stoa/vec"
)

// lossDoc is what could not be read: cells of a column, or whole rows.
type lossDoc struct {
	// Rows of the table; null: not known, as where rows may be deleted. Any cell of the column that is null may then be
	// lost, and Where says which rows of what are meant.
	From   *int64 `json:"from"`
	To     *int64 `json:"to"`
	Where  string `json:"where,omitempty"`
	Column string `json:"column,omitempty"` // "": all
	Error  string `json:"error"`
}

// maxLosses is how many losses an answer has.
const maxLosses = 5000

// lostDoc is the part of an answer that says what could not be read for it.
type lostDoc struct {
	Lost     []lossDoc `json:"lost,omitempty"`
	LostMore bool      `json:"lost_more,omitempty"` // there were more: any cell that is null may be lost
	// Noticed is damage that was noticed when the table was opened, or besides the rows that were read: rows and
	// columns that it takes are in no other number.
	Noticed []string `json:"noticed,omitempty"`
}

// losses collects what a scan could not read.
type losses struct {
	at   *stoa.Positions // nil: no position is known
	rows vec.Range       // those that are asked about; zero: all
	docs []lossDoc
	more bool // there were more than maxLosses
	// unplaced is how many positions whole rows have at most whose positions are not known.
	unplaced int64
}

// doc returns what was collected, and what was noticed in the table.
func (l *losses) doc(t *stoa.Table) lostDoc {
	d := lostDoc{Lost: l.docs, LostMore: l.more}
	for _, f := range t.Findings() {
		if f.Severity < region.Error {
			continue
		}
		text := f.Message + " (" + f.Code + ")"
		if of := cmp.Or(f.At.Object, f.Part); of != "" {
			text = of + ": " + text
		}
		if len(d.Noticed) < maxNoticed && !slices.Contains(d.Noticed, text) {
			d.Noticed = append(d.Noticed, text)
		}
	}
	return d
}

const maxNoticed = 100

// add adds a loss of a scan.
func (l *losses) add(x region.Loss) {
	d := lossDoc{Column: x.Column}
	if x.Err != nil {
		d.Error = x.Err.Error()
	}
	if l.at != nil {
		if rows, ok := l.at.Of(x); ok {
			if l.rows != (vec.Range{}) {
				rows.From, rows.To = max(rows.From, l.rows.From), min(rows.To, l.rows.To)
			}
			if rows.From < rows.To {
				d.From, d.To = &rows.From, &rows.To
				l.put(d)
			}
			return
		}
	}
	d.Where = whereOf(x)
	if l.put(d) && d.Column == "" {
		l.unplaced += max(1, x.Rows[1]-max(0, x.Rows[0]))
	}
}

// between returns the positions of the n rows of a window that came out, although whole rows are lost; nil: which ones
// is not known.
func (l *losses) between(window vec.Range, n int64) (at []int64) {
	gone := func(k int64) bool {
		return slices.ContainsFunc(l.docs, func(d lossDoc) bool {
			return d.Column == "" && d.From != nil && *d.From <= k && k < *d.To
		})
	}
	for k := window.From; k < window.To; k++ {
		if !gone(k) {
			at = append(at, k)
		}
	}
	if int64(len(at)) != n {
		return nil
	}
	return at
}

// put adds a document, unless it says what another one does. Adjacent rows that are lost for one reason are one loss.
func (l *losses) put(d lossDoc) (news bool) {
	if n := len(l.docs); n > 0 {
		last := &l.docs[n-1]
		if same := last.Column == d.Column && last.Error == d.Error; same && d.From != nil && last.To != nil &&
			*last.From <= *d.From && *d.From <= *last.To {
			to := max(*last.To, *d.To)
			last.To = &to
			return true
		} else if same && d.From == nil && last.From == nil && last.Where == d.Where {
			return false
		}
	}
	if len(l.docs) == maxLosses {
		l.more = true
		return true
	}
	l.docs = append(l.docs, d)
	return true
}

// whereOf says which stored rows of what are lost.
func whereOf(x region.Loss) string {
	words := []string{x.Part}
	switch {
	case x.Name != "":
		words = append(words, x.Name)
	case x.Group > 0:
		words = append(words, fmt.Sprintf("group %d", x.Group))
	}
	switch {
	case x.Rows[0] >= 0 && x.Rows[1] >= 0:
		words = append(words, fmt.Sprintf("stored rows %d to %d", x.Rows[0], x.Rows[1]-1))
	case x.Rows[0] >= 0:
		words = append(words, fmt.Sprintf("stored rows from %d on", x.Rows[0]))
	}
	return strings.Join(words, ", ")
}
