package flat

import (
	"strconv"

	"stoa/fault"
)

// Keys of a record batch's custom metadata for its position in a stream written by stoa: its number, and its first row.
// The last batch has no rows and the key KeyEnd. Other readers return custom metadata of messages separately, or skip
// it.
const (
	KeyBatch = "stoa.batch"
	KeyRow   = "stoa.row"
	KeyEnd   = "stoa.end"
)

// Place is the position of a batch in its stream, from its custom metadata.
type Place struct {
	Known bool // the batch has one of the keys
	Batch int64
	Row   int64 // of the stream
	End   bool  // it is the last batch
}

// parsePlace parses a Place from the custom metadata of a message.
func parsePlace(t table) (p Place, err error) {
	err = t.tables(4, "custom_metadata", func(kv table) error {
		key, err := kv.text(0)
		if err != nil {
			return err
		}
		var to *int64
		switch key {
		case KeyBatch:
			to = &p.Batch
		case KeyRow:
			to = &p.Row
		case KeyEnd:
			p.Known, p.End = true, true
			return nil
		default:
			return nil
		}
		text, err := kv.text(1)
		if err != nil {
			return err
		}
		p.Known = true
		if *to, err = strconv.ParseInt(text, 10, 64); err != nil || *to < 0 {
			return fault.Rel(kv.pos, 4, "custom_metadata", "%s is %q", key, text)
		}
		return nil
	})
	return p, err
}

// text returns a string field.
func (t table) text(n int) (string, error) {
	b, _, err := t.vector(n, 1, "custom_metadata")
	return string(b), err
}
