package ipc

import (
	"errors"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/store"
)

// TestBatchNeeds: real batches of every type list exactly the nodes and buffers counted for their schema; one buffer
// less is damage.
func TestBatchNeeds(t *testing.T) {
	for _, name := range []string{"plain.lz4.arrows", "rare.lz4.arrows", "rare.arrow", "v4.arrow", "legacy.arrows",
		"replaced.arrows", "delta.arrow"} {
		o, err := openReader(t.Context(), format.Target{Tree: store.Local{}, Name: "testdata/" + name},
			format.OpenOptions{Limits: formattest.HostileLimits})
		if err != nil {
			t.Fatal(name, err)
		}
		batches := 0
		for at := o.after; ; {
			m, end, err := o.next(t.Context(), at, 0)
			if err != nil {
				t.Fatal(name, err)
			}
			if m == nil {
				break
			}
			at = end
			if m.Kind != 3 {
				continue
			}
			batches++
			var n batchNeeds
			for _, f := range o.schema.Fields() {
				n.add(f.Type, m.Version)
			}
			views := len(m.Batch.Buffers) - n.buffers // each view column may have any number of additional buffers
			if len(m.Batch.Nodes) != n.nodes || views < 0 || views > 0 && n.views == 0 || m.Batch.Views != n.views {
				t.Errorf("%s: %d nodes, %d buffers, %d views, counted %+v", name, len(m.Batch.Nodes),
					len(m.Batch.Buffers), m.Batch.Views, n)
			}
			if err := o.checkBatch(m); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			m.Batch.Buffers = slices.Clone(m.Batch.Buffers[:n.buffers-1])
			if err := o.checkBatch(m); !errors.Is(err, fault.Corrupt) {
				t.Errorf("%s: one buffer less: %v", name, err)
			}
		}
		if batches == 0 {
			t.Errorf("%s has no batches", name)
		}
		o.Close()
	}
}

// TestLimitedAllocator: the library gets no more memory than the messages hold.
func TestLimitedAllocator(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a gigabyte was given")
		}
	}()
	room := int64(1000)
	c := limitedAllocator{memory.NewGoAllocator(), &room}
	c.Allocate(1 << 15)
	c.Allocate(1 << 30)
}
