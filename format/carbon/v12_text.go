package carbon

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/vec"
)

// keepsText reports whether a column's values are texts though its type is another: so are dimensions without a dictionary in
// formats 1 and 2.
func (p *storedPage) keepsText(t arrow.DataType) bool {
	return p.version < 3 && p.col.dimension && !p.encoders.has(encDictionary) && t.ID() != arrow.STRING && t.ID() != arrow.BINARY
}

// textLeaf sets entry i to the value that a text means.
func (c *content) textLeaf(dst *vec.Vector, i int, text []byte) error {
	v, err := parseValue(c.p.col, string(text), time.UTC)
	if err != nil {
		return relative(err)
	}
	v.put(dst, i)
	return nil
}
