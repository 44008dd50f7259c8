package altered

import (
	"encoding/json"

	"stoa/fault"
	"stoa/internal/content"
)

// Mark is where a writer paused: what had been written, and how many values had been changed to fit.
type Mark struct {
	Rows, Changed int64
	Sum           content.Sum // of the proof
}

// Paused is what was written between two marks.
type Paused struct {
	Rows  int64           `json:"rows"`
	Files json.RawMessage `json:"files"` // of the format
	Sum   *content.Sum    `json:"sum,omitempty"`
}

// Since returns the state of what was written since an earlier mark, as JSON; nil if values were changed: another
// process could not report them.
func (m Mark) Since(was Mark, files []byte, proved bool) ([]byte, error) {
	if m.Changed != was.Changed {
		return nil, nil
	}
	p := Paused{Rows: m.Rows - was.Rows, Files: files}
	if proved {
		sum := m.Sum.Since(was.Sum)
		p.Sum = &sum
	}
	return json.Marshal(p)
}

// Resume reads a state, and adds its rows to the sum of a proof, or nil.
func Resume(state []byte, proof *content.Summer) (p Paused, err error) {
	if err := json.Unmarshal(state, &p); err != nil {
		return p, fault.Invalidf("the state of an earlier run: %v", err)
	}
	if (proof == nil) != (p.Sum == nil) || proof != nil && !proof.AddSum(*p.Sum) {
		return p, fault.Invalidf("the state of an earlier run is that of another table, or of another proof")
	}
	return p, nil
}
