package flat

import (
	"strconv"

	"stoa/fault"
)

// Keys of a record batch's custom metadata by which a stream that stoa writes says where each batch belongs: its
// number, and its first row. The last batch has no rows, and says that it is the last. They are metadata of the
// message, which readers hand on by the side, or skip.
const (
	KeyBatch = "stoa.batch"
	KeyRow   = "stoa.row"
	KeyEnd   = "stoa.end"
)

// Place is what a batch says of its place in a stream.
type Place struct {
	Known bool // it says something
	Batch int64
	Row   int64
	End   bool // nothing follows
}

// placed reads a place from the pairs of a message.
func placed(t table) (p Place, err error) {
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

// text is a string field.
func (t table) text(n int) (string, error) {
	b, _, err := t.vector(n, 1, "custom_metadata")
	return string(b), err
}
