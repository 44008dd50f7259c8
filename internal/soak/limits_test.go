package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/fault"
	"stoa/format/formattest"
	"stoa/store"
)

// TestDamageIsNoLimit: a number that a flipped bit made large is damage if the file shows that it is impossible:
// recovery continues, and does not end with an error of class Limit.
func TestDamageIsNoLimit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)}}, nil)
	s := &soak{t: t, ctx: context.Background(), r: r, schema: sc, nulls: []int{0, 20, 0}, ops: map[string]int{}}
	s.fill(12, 0)
	step := 11
	if os.Getenv("STOA_LONG") != "" {
		step = 1
	} else if testing.Short() {
		step = 101
	}
	for i := range ring {
		w := &ring[i]
		if !w.typed {
			continue
		}
		for _, opts := range []map[string]string{nil, s.choose(w), s.choose(w)} {
			t.Run(fmt.Sprint(w.name, opts), func(t *testing.T) {
				mem := store.NewMemory(nil)
				c, err := stoa.Create(s.ctx, "t", sc,
					stoa.CreateOptions{Formats: formats, To: w.name, Opts: opts, Sink: mem.Sink("t")})
				for i := 0; err == nil && i < len(s.batches); i++ {
					err = c.Write(s.ctx, s.batches[i])
				}
				if err == nil {
					_, err = c.Close(s.ctx)
				}
				if err != nil {
					t.Skip(err) // an option that this table cannot have
				}
				for _, name := range mem.Names() {
					whole := mem.Bytes(name)
					for bit := 0; bit < 8*len(whole); bit += step {
						b := append([]byte(nil), whole...)
						b[bit/8] ^= 1 << (bit % 8)
						mem.Put(name, b)
						err := salvage(s.ctx, mem, w.name)
						if w.name == "trevni" && errors.Is(err, fault.Limit) &&
							strings.Contains(err.Error(), "entries are more") {
							continue // runs of levels may really be that long
						}
						if errors.Is(err, fault.Limit) || errors.Is(err, fault.Bug) {
							t.Errorf("%s: bit %d of byte %d of %d: %v", name, bit%8, bit/8, len(whole), err)
						}
					}
					mem.Put(name, whole)
				}
			})
		}
	}
}

func salvage(ctx context.Context, tree store.Tree, from string) error {
	o := stoa.OpenOptions{Formats: formats, Tree: tree, From: from, Recover: true}
	t, err := stoa.Open(ctx, "t", o)
	if err != nil {
		return err
	}
	defer t.Close()
	for b, err := range t.Scan(ctx, stoa.ScanSpec{Damaged: stoa.SkipRows}) {
		if err != nil {
			return err
		}
		formattest.Lines(b)
	}
	return nil
}
