package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// unfinished is the content of such an object.
type unfinished struct {
	Stoa    string    `json:"stoa"` // "unfinished"
	ID      string    `json:"id"`
	Begun   time.Time `json:"begun"`
	Objects []string  `json:"objects"` // in the directory
}

const unfinishedKind = "unfinished"

// now is the time, in seconds, as stores keep it.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// commitDir makes the objects of a directory visible, the one that was created last at the end: that is what makes a
// table of the others. The caller holds mu.
func (s *sink) commitDir(ctx context.Context) (err error) {
	doc := unfinished{Stoa: unfinishedKind, ID: newID(), Begun: now()}
	for _, o := range s.objects {
		doc.Objects = append(doc.Objects, strings.TrimPrefix(o.key, prefixOf(s.key)))
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	if err := s.vacant(ctx); err != nil {
		return at("create", s.name, err)
	}
	mark := path.Join(s.key, Unfinished)
	c := Condition{Absent: !s.o.SingleWriter}
	_, err = s.root.put(ctx, mark, bytes.NewReader(text), int64(len(text)), c)
	if errors.Is(err, fs.ErrExist) {
		err = errUnfinished
	} else if err == nil && !s.o.SingleWriter {
		if err = s.root.heeding(ctx, mark, text); err != nil {
			err = errors.Join(err, s.root.remove(context.WithoutCancel(ctx), mark))
		}
	}
	if err != nil {
		return at("create", s.name, err)
	}
	last := len(s.objects) - 1
	if err = s.appear(ctx, s.objects[:last]); err == nil {
		err = s.objects[last].appear(ctx, Condition{})
	}
	if err != nil {
		return errors.Join(err, s.takeBack(context.WithoutCancel(ctx), mark))
	}
	return at("remove", s.name+"/"+Unfinished, s.root.remove(context.WithoutCancel(ctx), mark))
}

// takeBack removes the objects that have appeared, the last one first, and then what says that they are not all.
func (s *sink) takeBack(ctx context.Context, mark string) error {
	for _, o := range slices.Backward(s.objects) {
		if o.put.Key == "" {
			continue
		}
		if err := s.root.remove(ctx, o.key); err != nil {
			return at("remove", o.name, err)
		}
	}
	return at("remove", s.name+"/"+Unfinished, s.root.remove(ctx, mark))
}

// appear makes objects visible, several at a time, until one fails.
func (s *sink) appear(ctx context.Context, objects []*outgoing) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, 2*inFlight)
	var work sync.WaitGroup
	for _, o := range objects {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		work.Go(func() {
			if err := o.appear(ctx, Condition{}); err != nil {
				cancel(err)
			}
			<-places
		})
	}
	work.Wait()
	return context.Cause(ctx)
}
