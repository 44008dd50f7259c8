package page

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/vec"
)

// keepsText reports whether a column's values are texts though its type is another: so are dimensions without a
// dictionary in formats 1 and 2.
func (p *StoredPage) keepsText(t arrow.DataType) bool {
	return p.Version < 3 && p.Col.Dimension && !p.Encoders.Has(layout.EncDictionary) && t.ID() != arrow.STRING &&
		t.ID() != arrow.BINARY
}

// textLeaf sets entry i to the value that a text means.
func (c *Content) textLeaf(dst *vec.Vector, i int, text []byte) error {
	v, err := schema.ParseValue(c.P.Col, string(text), time.UTC)
	if err != nil {
		return Relative(err)
	}
	v.Put(dst, i)
	return nil
}
