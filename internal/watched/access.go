package watched

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"

	"stoa/region"
	"stoa/store"
)

// Access passes everything on to another tree and keeps the errors of files and directories to which the operating
// system refuses access. That says nothing about their bytes.
type Access struct {
	store.Tree

	mu      sync.Mutex
	refused []error
	known   map[string]bool // by the texts of refused
}

// Unwrap returns the underlying tree.
func (a *Access) Unwrap() store.Tree { return a.Tree }

func (a *Access) note(err error) {
	if !Denied(err) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[string]bool{}
	}
	if text := err.Error(); !a.known[text] {
		a.known[text] = true
		a.refused = append(a.refused, err)
	}
}

// Refused returns the first refusal that text, the message of a finding, is about; nil if it is about something else.
func (a *Access) Refused(text string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, err := range a.refused {
		if strings.Contains(text, err.Error()) {
			return err
		}
	}
	return nil
}

// Verified passes on what a verification of the tree found, without the errors that are about refused access. These end
// it instead, with what else ended it.
func (a *Access) Verified(found iter.Seq2[region.Finding, error]) iter.Seq2[region.Finding, error] {
	return func(yield func(region.Finding, error) bool) {
		var ended, refused []error
		for f, err := range found {
			if denied := a.Refused(f.Message); err == nil && denied != nil && f.Severity == region.Error {
				if !slices.Contains(refused, denied) {
					refused = append(refused, denied)
				}
			} else if err != nil {
				ended = append(ended, err)
			} else if !yield(f, nil) {
				return
			}
		}
		if len(refused) > 0 {
			ended = slices.DeleteFunc(ended, Denied)
		}
		switch ended = append(refused, ended...); len(ended) {
		case 0:
		case 1:
			yield(region.Finding{}, ended[0])
		default:
			yield(region.Finding{}, errors.Join(ended...))
		}
	}
}

func (a *Access) Open(ctx context.Context, name string) (store.Source, error) {
	src, err := a.Tree.Open(ctx, name)
	a.note(err)
	return src, err
}

func (a *Access) Stat(ctx context.Context, name string) (store.Info, error) {
	info, err := a.Tree.Stat(ctx, name)
	a.note(err)
	return info, err
}

func (a *Access) List(ctx context.Context, dir string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range a.Tree.List(ctx, dir) {
			if a.note(err); !yield(info, err) {
				return
			}
		}
	}
}
