package stoa

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/fieldnames"
	"stoa/internal/scan"
	"stoa/internal/share"
	"stoa/store"

	"github.com/apache/arrow-go/v18/arrow"
)

// run is scan.Run of the source, whose files must not have changed since it was opened. Damage in a file that has
// changed is reported as the change.
func (s *source) run(ctx context.Context, spec scan.Spec, passed *int64) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		if s.closed.Load() {
			yield(nil, fault.Invalidf("%s: the table is closed", s.name))
			return
		}
		if err := s.checkNames(spec); err != nil {
			yield(nil, err)
			return
		}
		for b, err := range scan.Run(ctx, s.scan, spec, passed) {
			if errors.Is(err, fault.Corrupt) {
				if changed := s.checkUnchanged(ctx); changed != nil {
					err = changed
				}
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
		if err := s.checkUnchanged(ctx); err != nil {
			yield(nil, err)
		}
	}
}

// checkNames returns an error if a name in the schema is not UTF-8 and the scan ends at the first damage: otherwise the
// scan would yield rows under a name that the undamaged table does not have.
func (s *source) checkNames(spec scan.Spec) error {
	if spec.Damaged != scan.Fail {
		return nil
	}
	sc, err := scan.Schema(s.reader, spec)
	if err != nil {
		return nil // the scan itself reports it
	}
	for _, f := range fieldnames.Findings(sc, s.file) {
		return fault.Corruptf(f.At, "", "%s (%s)", f.Message, f.Code)
	}
	return nil
}

// checkUnchanged returns an error if the source's own file, or another file with its pages, has changed since before it
// was opened. So that single-row look-ups need not wait for this each time, the result is reused for a moment, which is
// also the resolution of file times, or longer with very many files, so that checking costs little.
func (s *source) checkUnchanged(ctx context.Context) error {
	if shared, ok := s.reader.(format.Shared); ok && shared.Shared() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	if began.Sub(s.checked) < s.pause {
		return nil
	}
	names := s.scan.Objects.Names()
	if s.stamp != "" {
		names = append(names, s.file)
	}
	for _, name := range names {
		if err := s.data.Unchanged(ctx, name); err != nil {
			return &fault.Error{Class: fault.Invalid, At: fault.Span{Object: name}, Cause: err}
		}
	}
	s.checked = time.Now()
	s.pause = max(time.Millisecond, 20*s.checked.Sub(began))
	return nil
}

// source is one of a table's files or places.
type source struct {
	name   string
	file   string // the name without a table
	stamp  string // of the file when it was opened; "": not known, or a directory
	format *format.Format
	// returns the number of rows that it declares without recovery; see Table.Account
	declared func(ctx context.Context) (int64, error)
	reader   format.Reader
	meta     *store.Cache
	data     *store.OpenLimiter // through which meta and scan read
	scan     scan.Source
	closed   atomic.Bool
	share    share.Share                                // that a plan divides
	reopen   func(ctx context.Context) (*source, error) // set if it is closed until it is planned
	as       string                                     // planned() of such a source

	mu      sync.Mutex
	checked time.Time     // when it was last found unchanged
	pause   time.Duration // how long that remains valid
}

func (s *source) close() error {
	if s.closed.Swap(true) && s.reopen != nil {
		return nil
	}
	s.scan.Dicts.Close()
	return errors.Join(s.reader.Close(), s.scan.Objects.Close(), s.meta.Close())
}

// planned identifies the state of a source, so that later changes show: the stamp of its file, and a hash of its
// columns.
func (s *source) planned() string {
	if s.reopen != nil {
		return s.as
	}
	sum := sha256.Sum256([]byte(s.reader.Schema().String()))
	return strings.TrimSpace(s.stamp + " columns " + hex.EncodeToString(sum[:6]))
}

func changedSince(when, object, was, is string) error {
	return &fault.Error{Class: fault.Invalid, At: fault.Span{Object: object},
		Cause: fmt.Errorf("it %w since %s: it was %s, now it is %s", store.ErrChanged, when, was, is)}
}
