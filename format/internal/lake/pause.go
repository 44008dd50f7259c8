package lake

import (
	"context"
	"encoding/json"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet"
)

var _ format.Pauser = (*Writer)(nil)

// pausedFile is a File as JSON.
type pausedFile struct {
	Name      string        `json:"name"`
	Bytes     int64         `json:"bytes"`
	Partition []pausedValue `json:"partition,omitempty"`
	Sorted    bool          `json:"sorted,omitempty"`
	Facts     parquet.FileFacts
}

// pausedValue is the value of a term. One of the fields is set, or none for null. A string need not be UTF-8.
type pausedValue struct {
	Bool  *bool   `json:"bool,omitempty"`
	Int   *int32  `json:"int,omitempty"`
	Long  *int64  `json:"long,omitempty"`
	Text  *[]byte `json:"text,omitempty"`
	Bytes *[]byte `json:"bytes,omitempty"`
}

type pausedFiles struct {
	Files []pausedFile `json:"files"`
	Notes []string     `json:"notes,omitempty"`
}

// Pause implements format.Pauser.
func (w *Writer) Pause(ctx context.Context) ([]byte, error) {
	for len(w.recent) > 0 {
		if err := w.finish(ctx, w.recent[0]); err != nil {
			return nil, err
		}
	}
	out := pausedFiles{Notes: w.sum.Notes}
	for _, f := range w.files[w.paused:] {
		p := pausedFile{Name: f.Name, Bytes: f.Bytes, Sorted: f.Sorted, Facts: f.FileFacts}
		for _, v := range f.Partition {
			var x pausedValue
			switch v := v.(type) {
			case bool:
				x.Bool = &v
			case int32:
				x.Int = &v
			case int64:
				x.Long = &v
			case string:
				b := []byte(v)
				x.Text = &b
			case []byte:
				x.Bytes = &v
			}
			p.Partition = append(p.Partition, x)
		}
		out.Files = append(out.Files, p)
	}
	w.paused = len(w.files)
	return json.Marshal(out)
}

// Resume implements format.Pauser.
func (w *Writer) Resume(state []byte) error {
	var in pausedFiles
	if err := json.Unmarshal(state, &in); err != nil {
		return fault.Invalidf("the files of an earlier run: %v", err)
	}
	for _, p := range in.Files {
		f := File{Name: p.Name, Bytes: p.Bytes, Sorted: p.Sorted, FileFacts: p.Facts}
		for _, x := range p.Partition {
			f.Partition = append(f.Partition, x.value())
		}
		if len(f.Partition) != len(w.o.Terms) {
			return fault.Invalidf("the files of an earlier run: expected %d partition values of %s, found %d",
				len(w.o.Terms), f.Name, len(f.Partition))
		}
		w.files = append(w.files, f)
		w.sum.Rows, w.sum.Bytes, w.sum.Files = w.sum.Rows+f.Rows, w.sum.Bytes+f.Bytes, append(w.sum.Files, f.Name)
	}
	for _, note := range in.Notes {
		if !slices.Contains(w.sum.Notes, note) {
			w.sum.Notes = append(w.sum.Notes, note)
		}
	}
	w.paused = len(w.files)
	return nil
}

func (x pausedValue) value() any {
	switch {
	case x.Bool != nil:
		return *x.Bool
	case x.Int != nil:
		return *x.Int
	case x.Long != nil:
		return *x.Long
	case x.Text != nil:
		return string(*x.Text)
	case x.Bytes != nil:
		return *x.Bytes
	}
	return nil
}
