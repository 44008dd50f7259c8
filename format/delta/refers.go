package delta

import (
	"context"
	"net/url"
	"path"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/delta/internal/log"
	"stoa/store"
)

// refers implements Format.Refers. Files that were removed count, too: they are part of older versions.
func refers(ctx context.Context, tg format.Target, o format.OpenOptions, names map[string][]store.Info) error {
	op, err := openVersion(ctx, tg, o)
	if err != nil {
		return err
	}
	if slices.Contains(op.protocol.WriterFeatures, "vacuumProtocolCheck") { // what may be removed is up to writers, too
		if err := op.changeable(); err != nil {
			return err
		}
	}
	if n := op.newest(); op.last > n {
		return fault.Corruptf(fault.Span{Object: path.Join(op.dir, log.Dir)}, "", "the log has files of version %d, "+
			"but no version after %d: it is lost, and so is what files it had", op.last, n)
	}
	drop := func(p string) {
		delete(names, path.Base(p))
		if plain, err := url.PathUnescape(p); err == nil {
			delete(names, path.Base(plain))
		}
	}
	for _, a := range op.adds() {
		drop(a.Path)
	}
	for _, name := range op.versions {
		if len(names) == 0 {
			return nil
		}
		s := &state{files: map[string]*log.Add{}, memory: o.Limits.Memory(), limits: o.Limits, named: drop}
		if err := s.readJSON(ctx, op.tree, name); err != nil {
			return err
		}
	}
	for _, files := range op.checkpoints {
		s := &state{files: map[string]*log.Add{}, memory: o.Limits.Memory(), limits: o.Limits, named: drop}
		for _, name := range wholeCheckpoint(files) {
			if len(names) == 0 {
				return nil
			}
			if err := s.readCheckpoint(ctx, op.logFiles, name, o); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
