package pred

import "github.com/apache/arrow-go/v18/arrow"

type domain struct {
	class int
	bits  int
}
type point struct {
	at    [4]uint64
	exact bool
	side  int
}

const (
	classFloat = iota
	classBytes
)

func domainOf(t arrow.DataType) (domain, bool)      { return domain{}, false }
func (d domain) place(v Value) (p point, err error) { return p, errStub }
