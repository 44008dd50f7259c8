package stoa

import (
	"context"
	"encoding/json"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/content"
)

// pausedState is the state of Pause.
type pausedState struct {
	Rows  int64           `json:"rows"`
	Files json.RawMessage `json:"files"`
	Sum   *content.Sum    `json:"sum,omitempty"` // of the proof
}

// Pause ends the files that were begun, so that another process can go on after them, and returns what its Resume has
// to be given: JSON, with all that was written since the last Pause. It is nil if values were changed to fit since
// then: another process could not report them. Formats with one file a table cannot pause (class Unsupported).
//
// The files are not visible as a table, and remain only in a CreateOptions.Sink that keeps them.
func (w *Writer) Pause(ctx context.Context) ([]byte, error) {
	p, ok := w.w.(format.Pauser)
	if !ok || w.done || w.failed != nil {
		return nil, fault.Unsupportedf(fault.Span{Object: w.uri}, "", "this writer cannot pause")
	}
	files, err := p.Pause(ctx)
	if err != nil {
		w.failed = err
		return nil, err
	}
	state := pausedState{Rows: w.rows - w.paused.rows, Files: files}
	now := pauseMark{rows: w.rows}
	if w.fit != nil {
		now.changed = w.fit.Replaced()
	}
	for _, c := range w.altered.Columns() {
		now.changed += c.Values
	}
	if w.proof != nil {
		now.sum = w.proof.in.Sum()
		sum := now.sum.Since(w.paused.sum)
		state.Sum = &sum
	}
	was := w.paused
	if w.paused = now; was.changed != now.changed {
		return nil, nil
	}
	return json.Marshal(state)
}

// pauseMark is where a writer paused last.
type pauseMark struct {
	rows, changed int64
	sum           content.Sum
}

// Resume takes over what another writer of the same table wrote until a Pause, before any rows are written. It is
// called once for every Pause.
func (w *Writer) Resume(state []byte) error {
	var s pausedState
	p, ok := w.w.(format.Pauser)
	if !ok || w.rows > w.paused.rows {
		return fault.Unsupportedf(fault.Span{Object: w.uri}, "", "this writer cannot resume")
	}
	if err := json.Unmarshal(state, &s); err != nil {
		return fault.Invalidf("%s: the state of an earlier run: %v", w.uri, err)
	}
	if (w.proof != nil) != (s.Sum != nil) || w.proof != nil && !w.proof.in.AddSum(*s.Sum) {
		return fault.Invalidf("%s: the state of an earlier run is of another table", w.uri)
	}
	w.rows += s.Rows
	w.paused.rows = w.rows
	if w.proof != nil {
		w.paused.sum = w.proof.in.Sum()
	}
	if w.fit != nil {
		w.fit.Skip(s.Rows)
	}
	return p.Resume(s.Files)
}
