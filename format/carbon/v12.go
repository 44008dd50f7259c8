package carbon

import (
	"stoa/fault"
	"stoa/pred"
	"stoa/vec"
)

type keyWidths struct{}

func (f *dataFile) cardinalities()                                                   {}
func (f *dataFile) checkBlocklet2(b *blockletInfo, at fault.Span, path string) error { return nil }
func (f *dataFile) checkBlocklet1(b *blockletInfo, at fault.Span, path string) error { return nil }
func (k *keyWidths) unpack(b []byte, a *vec.Arena) ([]uint32, error)                 { return nil, nil }
func (k *keyWidths) rowIDs(ids, starts []byte, n int, a *vec.Arena) ([]uint32, error) {
	return nil, nil
}
func (c *content) measure12(dst *vec.Vector) error         { return nil }
func (c *chunk) bounds(p *storedPage) (*pred.Bounds, bool) { return nil, false }
